"""What the table does not answer goes to an upstream, and its reply comes back untouched within 1.7 seconds.

Pure: admission.py, deadlines.py, loop.py, replies.py, resolv_conf.py and settings.py.
"""
