"""What the table does not answer goes to an upstream, and its reply comes back within 1.7 seconds.

It comes back untouched, but for what leads to a load balancer of ours.

Pure: admission.py, deadlines.py, loop.py, replies.py, resolv_conf.py and settings.py.
"""
