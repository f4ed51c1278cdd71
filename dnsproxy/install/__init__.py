"""Adds one `forward` stanza, or rewrite lines, to what serves the cluster's DNS, and removes them without a trace."""
