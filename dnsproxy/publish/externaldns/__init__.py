"""The same table as objects that external-dns reads.

Pure: health.py, manifests.py, object_names.py, options.py, planning.py and records.py.
"""
