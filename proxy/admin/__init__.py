"""A relay's admin port: health, readiness, metrics and the status page. Pure but for readiness.py and server.py."""
