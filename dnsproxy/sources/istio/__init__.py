"""Istio: from Gateways and VirtualServices to claims on hostnames (https://istio.io/latest/docs/reference/config/networking/).

structs.py has the objects as the API server sends them, facts.py and hosts.py what is kept of them. binding.py and
matching.py have the rules of Istio, contribution.py applies them to one object, and source.py to every object that a
change touches. Pure.
"""
