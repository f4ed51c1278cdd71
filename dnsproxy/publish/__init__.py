"""Copies a server's table to other places: hosts files, ConfigMaps, and objects for external-dns.

Pure: mounts.py, parts.py, publisher_status.py, server_name.py and selection.py.
"""
