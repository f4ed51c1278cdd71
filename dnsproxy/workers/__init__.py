"""Several processes answer on one port: the parent follows the sources, its workers answer (`serve --workers`)."""
