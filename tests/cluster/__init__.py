"""A real Kubernetes of one node in namespaces of its own, and the scene that is played on it: `make cluster-test`."""
