"""Adds one `forward` stanza to what serves the cluster's DNS, and removes it again without a trace."""
