"""Forwarding: what is not ours goes to an upstream, and its reply goes back untouched.

Pure: address.py, admission.py, failures.py, loop.py, nameservers.py, replies.py, resolv_conf.py and settings.py.
"""
