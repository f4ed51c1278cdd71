"""Keeps the kernel's table equal to what the cluster asks for, and reports on it.

Pure but for api_addresses.py, comparison.py, flow_ender.py, following.py, notifications.py, operator_log.py,
program.py, reconciler.py and written_table.py.
"""
