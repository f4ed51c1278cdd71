"""What a running relay shows: health, metrics, the status page. Pure but for readiness.py and server.py."""
