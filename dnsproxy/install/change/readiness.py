"""Readiness: whether dnsproxy is in a state in which CoreDNS may be told to ask it.

The law: the server is there before the stanza, and it never asks who asks it. What could not be read is told as a note
and forbids nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from dnsproxy.cluster_dns.own_service import FoundOwn
from dnsproxy.cluster_dns.requests import Blame
from dnsproxy.install.change.refusal import Refusal


def check_ready(own: FoundOwn) -> None:
    """Raises Refusal where its Service leads to nobody, or its queries lead back."""
    fault = next((fault for fault in own.faults if fault.blame is Blame.CONTENTS), None)
    if fault is not None:
        raise Refusal(fault.text, fault.remedy)
    if own.ready == 0:
        reason = f"no pod behind Service {own.ref} is ready, so every query would be asked of nobody first"
        raise Refusal(reason, "start dnsproxy first; or give its address with --address, which is taken as it is")
    if own.loop:
        reason = f"{own.loop}: CoreDNS and dnsproxy would ask each other, and CoreDNS's plugin loop would end it"
        raise Refusal(reason, "set dnsPolicy: Default, or --upstream to the servers that CoreDNS forwards to")


def notes_on_readiness(own: FoundOwn) -> Iterator[str]:
    """What could not be told."""
    for fault in own.faults:
        if fault.blame is Blame.ACCESS and own.endpoints:
            yield f"whether dnsproxy is ready, and whom it forwards to, was not seen: {fault}"
