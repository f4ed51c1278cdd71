"""The table as objects that external-dns reads: DNSEndpoints, or headless Services.

Pure: manifests.py, object_names.py, options.py and planning.py.
"""
