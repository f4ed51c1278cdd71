"""Finds and orders the addresses of backends, from names, hosts files and Services, and tracks their health.

Pure but for backend.py, discovery.py, followed_service.py, name_resolver.py and service_watch.py.
"""
