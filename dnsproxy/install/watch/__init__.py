"""`dnsproxy install --watch`: keeps the stanza in the cluster's DNS when another program overwrites it.

Pure but for followers.py, program.py, watcher.py and zone_follower.py.
"""
