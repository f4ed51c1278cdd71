"""`dnsproxy ip-mode --check`: whether `ipMode: Proxy` would help, with the evidence.

The law: nothing is written; what could not be seen is unknown, never a yes.
"""
