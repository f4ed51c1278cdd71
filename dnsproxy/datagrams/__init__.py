"""Moves octets in batches; looks into no message."""
