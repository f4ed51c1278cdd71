"""`dnsproxy install --watch`: keeps the stanza in the cluster's DNS when another program overwrites it.

Pure but for followers.py, pod_follower.py, program.py and watcher.py.
"""
