"""Kinds of objects that name hosts, each described by one row of a table: table.py.

Which hostnames an object claims is in contribution.py, how they are written in host_readers.py. Pure.
"""
