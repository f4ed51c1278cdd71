"""The registry behind the cluster's own ingress, as containerd knows it.

The law: text from values. Pure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

REGISTRY: Final = "registry.example.org"


def format_registry(folder: str) -> str:
    """Its hosts.toml for the node with this folder: it trusts the scene's certificate, which is made later."""
    server, authority = f"https://{REGISTRY}", Path(folder).parent / "tls.crt"
    # Debian's containerd 1.6 reads no `ca` outside of a host's table.
    return f'server = "{server}"\n[host."{server}"]\n  ca = "{authority}"\n'
