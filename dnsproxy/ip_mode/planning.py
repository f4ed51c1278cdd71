"""The plan of --apply and of --remove: everything that is decided before something is written.

The law: a refusal refuses the whole; the plan of a state that is as wanted has no change. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.install.report.rights import Grant
from dnsproxy.ip_mode.changes import Change, Refusal, foreign_objects, lost_classes, plan_apply, plan_remove
from dnsproxy.ip_mode.present import Present, modes_of, ref_of
from dnsproxy.ip_mode.request import WriteRequest
from dnsproxy.ip_mode.rights import rights_of
from dnsproxy.ip_mode.selection import ANNOTATION, PROXY
from dnsproxy.ip_mode.targets import deciding_providers, notes_on, refuse_harmful, refuse_missing, selected_services
from sidecar.kubernetes.structs.network import Service


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do."""

    mode: str
    """`apply` or `remove`."""
    version: str
    """Of the policies' API; empty if there is none."""
    changes: tuple[Change, ...]
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]
    """Sentences without a full stop."""
    services: tuple[Service, ...]
    """Those that the policy is about, and that have an address."""
    grants: tuple[Grant, ...]


def make_apply(present: Present, request: WriteRequest) -> Plan:
    """The plan of --apply. With --service alone, the classes of an earlier one stay: their harm was judged then."""
    wanted = present.selection if request.services and not request.selection.classes else request.selection
    selected = selected_services(present, wanted)
    services = tuple(service for service in selected if modes_of(service))
    judged = refuse_harmful(present, request.selection, ends_connections=request.ends_connections)
    refusals = (*foreign_objects(present), *refuse_missing(present), *judged)
    changes = () if refusals else plan_apply(present, wanted)
    lost = (f"the policy no longer selects loadBalancerClass {name}" for name in lost_classes(present, wanted))
    unseen = () if present.annotated is not None else (_UNSEEN,)
    notes = (*lost, *notes_on(selected), *unseen, *(() if selected else (_NONE_SELECTED,)))
    written = services if request.rewrite else services[:1]
    return Plan("apply", present.version, changes, refusals, notes, services, _rights("apply", request, written))


def make_remove(present: Present, request: WriteRequest) -> Plan:
    """The plan of --remove."""
    services = tuple(service for service in selected_services(present, present.selection) if modes_of(service))
    refusals = foreign_objects(present)
    changes = () if refusals else plan_remove(present)
    written = services if request.rewrite else ()
    notes = (*_notes_on_removal(present), *deciding_providers(present, services))
    return Plan("remove", present.version, changes, refusals, notes, services, _rights("remove", request, written))


_UNSEEN = (
    f"Services that others annotated with {ANNOTATION} get ipMode {PROXY} too, and were not looked at, which takes the "
    "right to list services"
)
_NONE_SELECTED = (
    "no Service with a load balancer is selected: select one with --service NAMESPACE/NAME, which writes the "
    f"annotation {ANNOTATION}: {PROXY}, or all of a loadBalancerClass with --class"
)


def _notes_on_removal(present: Present) -> Iterator[str]:
    for ref, service in present.named.items():
        if service is None:
            yield f"Service {ref} does not exist"
    kept = [ref_of(one) for one in present.listed if (one.metadata.annotations or {}).get(ANNOTATION) == PROXY]
    for ref in kept:
        if ref not in present.named:
            yield f"Service {ref} keeps its annotation; --service {ref} removes it"


def _rights(mode: str, request: WriteRequest, services: tuple[Service, ...]) -> tuple[Grant, ...]:
    # A Service that may not be read yet has no status to see, but will have.
    refs: tuple[ObjectRef, ...] = (
        *(request.services if mode == "apply" or request.rewrite else ()),
        *map(ref_of, services),
    )
    return rights_of(mode, request, dict.fromkeys(refs))
