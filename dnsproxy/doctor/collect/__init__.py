"""Reads the API server, asks DNS servers and dials ports; writes nothing.

Pure: data_plane_workloads.py, dial_targets.py, places.py and structs.py.
"""
