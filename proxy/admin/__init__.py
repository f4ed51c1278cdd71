"""A relay's admin port: health, readiness, metrics, the status page, and connections as they end.

Pure but for readiness.py, server.py, tap_command.py and tap_route.py.
"""
