"""What was seen of a cluster, as one value that is also a file. Pure."""
