"""Keeps the kernel's table as the cluster wants it, and reports on it.

Pure but for flow_ender.py, following.py, program.py and reconciler.py.
"""
