"""The installer: one static `forward` stanza into what serves the cluster's DNS, and out again without a trace."""
