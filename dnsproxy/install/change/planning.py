"""Planning: from what a cluster is, and what is wanted, to what would be written; or a Refusal.

The law: planning again on what was written gives no change; what would make a loop, or keep names from resolving, is
refused. With a method, what another method left is taken out behind it, so at no time is nothing installed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dnsproxy.cluster_dns.choice import Choice, Method
from dnsproxy.cluster_dns.found import Found
from dnsproxy.corefile.stanza import format_address
from dnsproxy.install.change.edits import Edits, Wanted, merge_changes
from dnsproxy.install.change.importing import plan_import
from dnsproxy.install.change.in_place import plan_corefile
from dnsproxy.install.change.refusal import Refusal
from dnsproxy.install.change.removal import plan_removal
from dnsproxy.install.change.stub_domains import plan_stub_domains


def plan_apply(found: Found, choice: Choice, wanted: Wanted) -> Edits:
    """The edits that install by the method of a choice. Raises Refusal; nothing may be wanted of `found` any more."""
    check_loop(found, wanted)
    edits = _plan(found, choice, wanted)
    others = plan_removal(found, keep=choice.target)
    left = [f"what is left of another method is taken out of ConfigMap {change.source}" for change in others.changes]
    return replace(
        edits,
        changes=merge_changes(edits.changes, others.changes),
        notes=tuple(dict.fromkeys([*edits.notes, *left, *others.refusals])),
    )


def check_loop(found: Found, wanted: Wanted) -> None:
    """Raises Refusal: CoreDNS that asks itself answers nobody, and with its plugin `loop` it stops."""
    for address in wanted.addresses:
        if address.host in _own_addresses(found):
            reason = f"{format_address(address)} is the cluster's DNS itself, which would ask itself"
            raise Refusal(reason, "give dnsproxy's own address with --address, or its Service with --service")


def _plan(found: Found, choice: Choice, wanted: Wanted) -> Edits:
    server = found.asked_by_pods
    if choice.method is None or server is None:
        raise Refusal(choice.why)
    if choice.method is Method.IMPORT and server.corefile is not None:
        return plan_import(server, server.corefile, choice, wanted)
    if choice.method is Method.COREFILE and server.corefile is not None:
        return plan_corefile(server, server.corefile, choice, wanted)
    if choice.method is Method.STUB_DOMAINS and server.stub_domains is not None:
        return plan_stub_domains(server, server.stub_domains, choice, wanted)
    raise Refusal(choice.why, "print it for the owner with --method print")


def _own_addresses(found: Found) -> Iterator[str]:
    if found.service is not None:
        yield from found.service.addresses
    if found.node_local is not None:
        yield from found.node_local.addresses
