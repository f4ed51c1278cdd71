"""The same table as objects that external-dns reads."""
