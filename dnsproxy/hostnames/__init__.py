"""Claims in, one verdict per hostname out. Pure but for keeper.py."""
