"""How the names of Kubernetes' objects are written.

The law: patterns alone, for others to build on. Tested where they are used.
"""

from __future__ import annotations

from typing import Final

LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
"""An RFC 1123 label, as the name of a namespace or Service is one:
https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names"""

SUBDOMAIN: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
"""An RFC 1123 subdomain, as the name of most objects is one, apart from its length:
https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names"""
LONGEST_SUBDOMAIN: Final = 253
