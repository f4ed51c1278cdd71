"""PROXY protocol headers as octets (haproxy proxy-protocol.txt). Pure."""
