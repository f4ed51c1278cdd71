"""Plans the changes of an install or an uninstall, as values. Pure."""
