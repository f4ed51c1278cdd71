"""Corefile text in, Corefile text out. Pure but for files.py."""
