"""What was seen of a cluster: one value, and the file of it. Pure."""
