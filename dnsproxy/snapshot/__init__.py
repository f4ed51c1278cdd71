"""The claims on disk."""
