"""The two zones from batch to batch; test_policy.py and test_replica_registry.py have the laws of their records."""

from __future__ import annotations

import pytest

from dnsproxy.answers.table import Host
from dnsproxy.dns.names import Reach
from dnsproxy.zone.building import BatchWriter, Zones
from dnsproxy.zone.control import FORMAT, Control
from tests.dnsproxy.zone.test_policy import NO_VERDICT, ZONE, Policies
from tests.kit.messages import parse_host, table_of


class Followed:
    """Zones that follow whole tables with one TTL after another."""

    def __init__(self) -> None:
        self.zones = Zones(ZONE)
        self.batches = BatchWriter(ZONE)

    def publish(self, line: str, *, ttl: int = 5) -> None:
        self.batches.judged(parse_host(line), NO_VERDICT)
        for _ in self.zones.apply(self.batches.seal(table_of(line, ttl=ttl), Control(FORMAT, ttl))):
            pass
        if self.zones.is_changed:
            self.zones.commit(self.zones.serial + 1)

    def knows(self, serial: int) -> bool:
        """Whether the journals reach back to a serial."""
        return self.difference(serial) is not None

    def difference(self, serial: int) -> object:
        steps = self.zones.policy.difference(serial)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return done.value


def test_a_batch_that_changes_nothing_makes_no_version() -> None:
    followed = Followed()
    followed.publish("app.example.org 192.0.2.1")
    followed.publish("app.example.org 192.0.2.1")
    assert followed.zones.serial == 1


@pytest.mark.parametrize(
    ("ttl", "known"), [pytest.param(5, True, id="the same"), pytest.param(60, False, id="another")]
)
def test_another_ttl_empties_the_journal_because_no_difference_has_the_apex(ttl: int, known: bool) -> None:
    followed = Followed()
    followed.publish("app.example.org 192.0.2.1")
    followed.publish("app.example.org 192.0.2.2", ttl=ttl)
    assert followed.zones.serial == 2
    assert followed.knows(1) is known
    followed.publish("app.example.org 192.0.2.3", ttl=ttl)
    assert followed.knows(2)


def test_after_every_name_was_told_again_no_gone_name_counts_as_too_long() -> None:
    policies = Policies()
    long = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
    policies.put(Host(long, Reach.NAME, ("192.0.2.1",)))
    policies.publish()
    assert policies.zones.inexpressible.too_long == 1
    policies.writer.put(Host(long, Reach.NAME, ()))
    policies.batches.begin_whole()
    policies.put(parse_host("app.example.org 192.0.2.2"))
    policies.publish()
    assert policies.zones.inexpressible.too_long == 0
