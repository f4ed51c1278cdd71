"""The command `dnsproxy tap`: the queries of one running server, or of all pods of a Service, while they end.

Pure: merging.py, request.py.
"""
