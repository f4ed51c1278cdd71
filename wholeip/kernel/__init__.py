"""Reads and changes the node's kernel: nft, conntrack, netlink and sysctls. Pure: sysctls.py."""
