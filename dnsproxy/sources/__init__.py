"""From files, flags and cluster objects to claims on hostnames.

Pure but for cluster_sources.py, followed_target.py, followers.py, gateway_follower.py, hosts_file.py,
rights_follower.py, service_targets.py, share_settler.py and steering_follower.py.
"""
