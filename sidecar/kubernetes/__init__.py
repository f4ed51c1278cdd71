"""The Kubernetes API as the programs use it: where the cluster is, and list and watch on the trio loop."""
