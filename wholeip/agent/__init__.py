"""Keeps the kernel's table as the cluster wants it, and reports on it."""
