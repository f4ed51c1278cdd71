"""Guarded writes: route Services."""
