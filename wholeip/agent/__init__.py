"""Keeps the kernel's table as the cluster wants it, and reports on it.

Pure but for agent.py, flow_ender.py, following.py and run.py.
"""
