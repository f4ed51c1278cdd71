"""A TCP relay that sends a PROXY protocol header at the start of each connection."""
