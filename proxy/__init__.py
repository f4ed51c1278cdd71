"""A TCP relay that prepends the PROXY protocol header."""
