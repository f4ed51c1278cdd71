"""Seeing connections: what a relay shows of each connection when it ends, to listeners that asked for it.

Pure: ended.py and filters.py.
"""
