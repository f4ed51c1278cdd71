"""The same table in other places: the hosts files of nodes, and external-dns."""
