"""Forwarding: what is not ours goes to an upstream, and its reply goes back untouched."""
