"""Files that others read or write meanwhile: replaced whole, and followed."""
