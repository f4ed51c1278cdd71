"""Leases: which of several replicas leads."""
