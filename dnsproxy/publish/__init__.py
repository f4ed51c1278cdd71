"""Copies a server's table to other places: hosts files, ConfigMaps, and objects for external-dns.

Pure: parts.py, publisher_status.py, selection.py and settings.py.
"""
