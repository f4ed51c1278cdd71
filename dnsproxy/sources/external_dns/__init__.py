"""external-dns: from its annotations on Services, Ingresses and Gateways, and from DNSEndpoints, to claims.

The meaning is that of external-dns with its default flags. A name with the addresses of a load balancer is claimed as
an Ingress claims, a name with those of pods or a ClusterIP with these addresses. A name that external-dns points
elsewhere, or does not publish, is forwarded as before. Pure.
"""
