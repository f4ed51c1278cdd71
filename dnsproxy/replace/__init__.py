"""Replacing addresses in replies: what leads to a load balancer leads to the target instead. Pure."""
