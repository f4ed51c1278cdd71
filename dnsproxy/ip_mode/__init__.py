"""The remedy without a data path: `ipMode: Proxy` in the status of a load balancer's Service.

The law: only entries with an address of the selected Services change, and nothing but their ipMode.
"""
