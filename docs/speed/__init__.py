"""The last run of `make bench`: its figures in docs/speed.json, and the page and tables that are made of them. Pure."""
