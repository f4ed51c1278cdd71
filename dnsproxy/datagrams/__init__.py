"""Moves octets in batches; never interprets a message."""
