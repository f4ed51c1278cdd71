"""The Kubernetes API as the programs use it: finding the cluster, one-shot reads, and list and watch on the trio loop.

Pure: annotation_filter.py, endpoint_choice.py, endpoint_slices.py, errors.py, follower_status.py, names.py,
objects.py, protocol.py, relay_routes.py, route_services.py, selector.py, store.py and watch_policy.py.
"""
