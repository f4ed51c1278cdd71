"""What an install, an uninstall or a status run shows: verdicts, tables, JSON, RBAC and printed manifests. Pure."""
