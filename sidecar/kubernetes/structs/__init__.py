"""Structs of Kubernetes objects for one-shot reads: what discovery, the doctor and an install look at. Pure."""
