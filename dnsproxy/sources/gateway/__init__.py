"""Gateway API: from Gateways, ListenerSets and routes to claims on hostnames (https://gateway-api.sigs.k8s.io/).

structs.py has the objects as the API server sends them, facts.py what is kept of them; attachment.py and hostnames.py
are the specification's rules, contribution.py applies them to one object, source.py to what a change touches.

Pure.
"""
