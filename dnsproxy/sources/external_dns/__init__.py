"""external-dns: from its annotations on Services, Ingresses and Gateways, and from DNSEndpoints, to claims.

The meaning is that of external-dns with its default flags: a name that it points to a load balancer is claimed as an
Ingress claims, and one that it points to pods or a ClusterIP with these addresses. Where it points a name elsewhere, or
publishes nothing, the name is forwarded as before. Pure but for alias_follower.py.
"""
