"""Whom two replicas of a primary tell of a change, and what they answer to a NOTIFY."""

from __future__ import annotations

import pytest
import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.dns.names import parse_zone, to_wire
from dnsproxy.dns.wire import Rcode
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.primary import primary as module
from dnsproxy.primary.primary import Primary
from dnsproxy.primary.settings import LeaseRef, RpzSettings, ServiceEndpoints
from dnsproxy.primary.shared_zone import SharedZone
from dnsproxy.zone.requests import format_notify
from sidecar.kubernetes.cluster import Cluster
from sidecar.values.endpoints import Endpoint

ZONE = to_wire(parse_zone("rpz.example.org"))
OWN, OTHER, SECONDARY = (Endpoint(f"192.0.2.{number}", 1053) for number in (1, 2, 3))
BOTH = ServiceEndpoints(ObjectRef("switchback", "dnsproxy-primaries"))


def make_primary() -> Primary:
    """A primary that shares its zone by a Lease, and tells a Service with both replicas."""
    settings = RpzSettings(ZONE, notify=(BOTH,), serial=LeaseRef(ObjectRef("switchback", "dnsproxy-rpz")), address=OWN)
    registry = Registry(targets=Targets((), {}), guards=Guards())
    keeper = TableKeeper(registry, ttl=5, publish=lambda _: None, sources=[])
    return Primary(settings, keeper, ttl=5, is_synced=lambda: True)


@pytest.mark.parametrize(("leads", "rcode"), [(True, Rcode.NOTAUTH), (False, Rcode.NOERROR)])
async def test_only_the_replica_that_does_not_publish_is_a_secondary(
    leads: bool, rcode: Rcode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedZone, "may_publish", lambda _: leads)
    answer = make_primary().answer_notify(format_notify(ZONE, serial=7, ttl=5, ident=1))
    assert answer is not None
    assert answer[3] & 0xF == rcode


async def test_a_notify_for_another_zone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedZone, "may_publish", lambda _: False)
    answer = make_primary().answer_notify(
        format_notify(to_wire(parse_zone("other.example.org")), serial=7, ttl=5, ident=1)
    )
    assert answer is not None
    assert answer[3] & 0xF == Rcode.NOTAUTH


async def test_of_a_service_with_both_replicas_the_other_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    primary = make_primary()
    told: list[list[Endpoint]] = []
    monkeypatch.setattr(primary.notifier, "set_targets", lambda _, targets: told.append(list(targets)))

    async def follow(_client: object, _service: object, *, tell: object) -> None:
        assert callable(tell)
        tell((OWN, OTHER, SECONDARY))
        await trio.sleep_forever()

    async def run(_self: object, _client: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(module, "follow_endpoints", follow)
    monkeypatch.setattr(SharedZone, "run", run)
    cluster = Cluster("http://127.0.0.1:9", "the test", lambda: None, reload=lambda: cluster)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(primary.run, cluster)
            while not told:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert told == [[OTHER, SECONDARY]]
