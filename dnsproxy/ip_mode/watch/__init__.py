"""`dnsproxy ip-mode --watch`: sets `ipMode: Proxy` in the status of named Services after their provider has written it.

Pure: event_reasons.py, observed.py, plan.py, safety.py and watch_status.py.
"""
