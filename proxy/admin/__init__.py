"""What a running relay shows: health, metrics, the status page."""
