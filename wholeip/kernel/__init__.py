"""The node's kernel: nft, conntrack, netlink and sysctls. Pure: sysctls.py."""
