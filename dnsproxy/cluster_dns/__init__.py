"""Reads and asks what serves the cluster's DNS; writes nothing. Pure but for options.py, probing.py and read.py."""
