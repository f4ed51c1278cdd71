"""Reads the API server, asks DNS servers and dials ports; writes nothing. Pure: dial_targets.py and structs.py."""
