"""Reads a cluster, tries, writes and verifies a planned change of it."""
