"""A block of names in the hosts file of a node. Pure: block.py, lines.py and mounts.py."""
