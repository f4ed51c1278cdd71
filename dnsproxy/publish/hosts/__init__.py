"""A block of names in the hosts file of a node. Pure: block.py and lines.py."""
