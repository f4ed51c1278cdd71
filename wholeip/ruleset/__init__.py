"""Mappings in, an nftables ruleset and its changes out; listings and errors of nft read back. Pure."""
