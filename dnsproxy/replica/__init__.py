"""A replica: the table of a primary, version by version, without an API server."""
