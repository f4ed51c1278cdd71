"""What an install or an uninstall would change in a cluster: plans, as values. Pure."""
