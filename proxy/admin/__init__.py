"""What a running relay shows: health, metrics, the status page. Pure but for admin.py and probe.py."""
