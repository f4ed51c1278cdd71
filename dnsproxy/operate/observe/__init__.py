"""Reads and follows what the facts are made of: Services, endpoints, classes, dnsproxy's subjects, the data plane.

Pure: endpoints.py, owners.py and structs.py.
"""
