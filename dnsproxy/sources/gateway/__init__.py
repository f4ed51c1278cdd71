"""Gateway API: from Gateways, ListenerSets and routes to claims on hostnames (https://gateway-api.sigs.k8s.io/).

structs.py has the objects as the API server sends them, facts.py what is kept of them. attachment.py, admission.py and
listeners.py are the rules of the specification, contribution.py applies them to one object, and source.py to every
object that a change touches. Pure.
"""
