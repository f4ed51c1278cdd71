"""A query and a table in, a reply or a decision out. Pure."""
