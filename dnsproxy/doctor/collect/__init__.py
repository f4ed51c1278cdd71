"""Reads the API server, asks DNS servers and dials ports; writes nothing.

Pure: answering_lines.py, data_plane_workloads.py, dial_targets.py, places.py and structs.py.
"""
