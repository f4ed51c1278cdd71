"""Corefile text in, Corefile text out. Pure."""
