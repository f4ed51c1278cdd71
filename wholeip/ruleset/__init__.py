"""Mappings in, an nftables ruleset and its changes out; reads what nft and the kernel answer. Pure."""
