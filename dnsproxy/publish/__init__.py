"""The same table in other places: the hosts files of nodes, and external-dns.

Pure: config_maps.py, hosts_block.py, hosts_lines.py, mounts.py, parts.py, publisher_status.py, server_name.py and
sudden_loss.py.
"""
