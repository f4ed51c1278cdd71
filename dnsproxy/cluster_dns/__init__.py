"""Discovery: what serves a cluster's DNS, read from the cluster's objects. Pure; ../discovering.py fetches them."""
