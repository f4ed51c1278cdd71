"""The addresses of backends: from names, Services and hosts files, and which of them are ready.

Pure but for backend.py, discovery.py, name_resolver.py and service_watch.py.
"""
