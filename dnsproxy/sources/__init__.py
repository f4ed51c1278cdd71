"""From files, flags and cluster objects to claims on hostnames.

Pure but for cluster_sources.py, discovery.py, followed_kind.py, followed_kinds.py, followed_target.py, followers.py,
hosts_file.py, rights_follower.py, service_targets.py, share_settler.py, source_follower.py, source_followers.py and
steering_follower.py.
"""
