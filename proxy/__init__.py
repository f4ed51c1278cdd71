"""A TCP relay that sends a PROXY protocol header before each connection."""
