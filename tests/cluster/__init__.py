"""A real Kubernetes of one node in its own namespaces, and the scene that runs on it: `make cluster-test`."""
