"""`dnsproxy install --watch`: keeps the stanza in the cluster's DNS, whoever renders its configuration again.

Pure but for event_recorder.py, followers.py, program.py and watcher.py.
"""
