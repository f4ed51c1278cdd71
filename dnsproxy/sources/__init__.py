"""Sources: from what a cluster says about itself to claims on hostnames.

Pure: annotations.py, hosts_source.py, ingress.py, ingress_class.py, ingress_source.py, load_balancer.py,
service_source.py, service_uses.py, static_names.py and target_service.py.
"""
