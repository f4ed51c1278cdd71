"""What a command line asks of --apply or --remove.

The law: values of flags, checked; nothing here reads a cluster. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.ip_mode.selection import Selection


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The flags of --apply and of --remove."""

    kubeconfig: str | None
    context: str | None
    selection: Selection
    """Of the policy to write; --remove does not read it."""
    services: tuple[ObjectRef, ...] = ()
    """Whose annotation is written or removed."""
    rewrite: bool = False
    """Whether existing statuses are written anew."""
    dry_run: bool = False
    ends_connections: bool = False
    """The user's word that the load balancers of the Services end the TCP connection."""
    as_json: bool = False

    @property
    def lists(self) -> bool:
        """Whether the Services of the whole cluster are read: a class has no other way to its Services."""
        return bool(self.selection.classes) or not self.services


def request_of(flags: Mapping[str, Any]) -> WriteRequest:
    """The request of a command line, of the values of its flags by name."""
    return WriteRequest(
        flags["kubeconfig"],
        flags["context"],
        Selection(flags["classes"]),
        tuple(dict.fromkeys(flags["services"])),
        rewrite=flags["rewrite"],
        dry_run=flags["dry_run"],
        ends_connections=flags["balancer_ends_connections"],
        as_json=flags["output"] == "json",
    )
