"""The Corefile of a cozystack tenant, for a real CoreDNS whose plugin kubernetes follows a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

CUSTOM: Final = "/etc/coredns/custom"
TENANT: Final = f""".:53 {{
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    forward . /etc/resolv.conf
    cache 30
    reload
    loadbalance
    import {CUSTOM}/*.override
}}
"""
"""That of the corpus, without the plugins that open ports of their own, and without loop."""


def with_kubeconfig(corefile: str, kubeconfig: Path) -> str:
    """The Corefile for a CoreDNS that is in no pod."""
    return corefile.replace("ip6.arpa {\n", f"ip6.arpa {{\n        kubeconfig {kubeconfig}\n", 1)
