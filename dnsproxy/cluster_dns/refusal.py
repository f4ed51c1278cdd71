"""ChangeRefused: the reason why a cluster's DNS must not be changed, and what to do about it.

The law: a change is refused before anything is written; the message names the place and the remedy, and may contain
text from the cluster. dnsproxy has to be ready before CoreDNS asks it, and must not forward back to CoreDNS. What could
not be read becomes a note and refuses nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dnsproxy.cluster_dns.original_upstreams import ACCEPT
from dnsproxy.cluster_dns.own_service import FoundOwn
from dnsproxy.cluster_dns.requests import Blame
from dnsproxy.corefile.model import CorefileError


class ChangeRefused(ValueError):
    """A change that must not be made."""

    def __init__(self, reason: str, remedy: str = "", *, place: str = "", zone: str = "") -> None:
        text = f"{reason}; {remedy}" if remedy else reason
        super().__init__(f"{place}: {text}" if place else text)
        self.reason = reason
        self.remedy = remedy
        """What to do about it; empty if the reason contains it."""
        self.place = place
        """Object, key and line; empty if the reason concerns no single place."""
        self.zone = zone
        """The zone without which it would not be refused for this reason; empty if there is none."""


def refusal_of(error: CorefileError, where: object) -> ChangeRefused:
    """The refusal for a Corefile, or a part of one, that cannot be read or must not be changed."""
    return ChangeRefused(error.reason, error.remedy, place=f"{where}, line {error.line}")


def check_exists(own: FoundOwn) -> None:
    """Raises ChangeRefused if dnsproxy's Service does not exist, or has no ClusterIP."""
    fault = next((fault for fault in own.faults if fault.blame is Blame.CONTENTS), None)
    if fault is not None:
        raise ChangeRefused(fault.text, fault.remedy)


def check_ready(own: FoundOwn) -> None:
    """Raises ChangeRefused if dnsproxy's Service has no ready pod, or its pods forward back to the cluster's DNS."""
    check_exists(own)
    if own.ready == 0:
        reason = f"no pod behind Service {own.ref} is ready, so CoreDNS would send each query to a dead address first"
        raise ChangeRefused(reason, "start dnsproxy first; or give its address with --address, which is not checked")
    if own.loop:
        reason = f"{own.loop}: CoreDNS and dnsproxy would ask each other, and CoreDNS's plugin loop would stop CoreDNS"
        raise ChangeRefused(reason, "set dnsPolicy: Default, or --upstream to the servers that CoreDNS forwards to")


def upstreams_refusal(faults: Sequence[str]) -> tuple[str, str]:
    """Reason and remedy if dnsproxy cannot forward all other names where the cluster's DNS forwards them."""
    reason = f"dnsproxy would forward all other names to other upstreams than the cluster's DNS does: {faults[0]}"
    return reason, f"change that forward, or accept it with {ACCEPT} and choose the upstreams with --upstream"


def notes_on_readiness(own: FoundOwn) -> Iterator[str]:
    """Notes on what could not be read."""
    for fault in own.faults:
        if fault.blame is Blame.ACCESS and own.endpoints:
            yield f"could not read whether dnsproxy is ready and where it forwards to: {fault}"
