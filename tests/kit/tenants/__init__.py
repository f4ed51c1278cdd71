"""Attacks of tenants on a real API server: who attacks, what the world looks like, and how an attack is judged.

The law: a tenant acts with its own token and only the rights of the role `edit`; the servers run with the account,
rights and settings of the rendered manifests. Used by tests/peers/test_tenants_*.py.
"""
