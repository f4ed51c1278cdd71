"""Seeing queries: what a server shows of each query and its end, to listeners that asked for it."""
