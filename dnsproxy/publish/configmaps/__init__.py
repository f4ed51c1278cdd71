"""The table in ConfigMaps, for nodes that mount them. Pure: manifests.py."""
