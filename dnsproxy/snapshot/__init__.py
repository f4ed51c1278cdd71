"""The claims on disk. Pure but for file.py."""
