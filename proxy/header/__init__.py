"""Formats and parses PROXY protocol headers (haproxy proxy-protocol.txt). Pure."""
