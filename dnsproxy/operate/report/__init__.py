"""What `dnsproxy operate` shows: its document, page, metrics, and Events. Pure."""
