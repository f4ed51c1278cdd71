"""Keeps the kernel's table equal to what the cluster asks for, and reports on it.

Pure but for api_addresses.py, flow_ender.py, following.py, program.py and reconciler.py.
"""
