"""Guarded writes: route Services, and the Lease of the replica that leads."""
