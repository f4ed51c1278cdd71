"""What a primary says of names and load balancers that RPZ cannot say: notes, metrics, and one line in the log."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import pytest
import trio.testing
from structlog.testing import capture_logs

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.rights import parse_network
from dnsproxy.hostnames.targets import Targets
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.serve.zone_report import ZoneReport
from dnsproxy.zone.policy import Inexpressible, Triggers
from tests.kit.zone_sides import ZONE, PrimarySide

if TYPE_CHECKING:
    from dnsproxy.primary.primary import Primary

EVENT: Final = "what leads here and resolvers with the policy zone do not replace"
NOTES: Final = {
    "one_label": "wildcards of one label",
    "too_long": "too long for the zone",
    "triggers": "end as rules of RPZ do",
    "passed": "names below a wildcard are not replaced",
    "balancer_hostnames": "load balancers have a hostname",
    "balancer_addresses": "addresses or networks lead here for the table's names alone",
}


def report_of(found: Inexpressible) -> ZoneReport:
    zones = SimpleNamespace(inexpressible=found, serial=1, policy=SimpleNamespace(octets=0))
    server = SimpleNamespace(transfers={}, refused=0)
    primary = SimpleNamespace(published=SimpleNamespace(zones=zones), server=server, behind={})
    return ZoneReport(cast("Primary", primary))


def test_without_anything_left_out_there_is_no_note() -> None:
    assert report_of(Inexpressible()).notes() == []


@pytest.mark.parametrize(("kind", "note"), NOTES.items())
def test_each_kind_of_what_is_left_out_has_a_note_and_a_number(kind: str, note: str) -> None:
    report = report_of(replace(Inexpressible(), **{kind: 7}))
    (found,) = report.notes()
    assert found.startswith("--rpz: 7 ")
    assert note in found
    (family,) = (one for one in report.metrics() if one.name == "dnsproxy_rpz_left_out_names")
    assert sorted(sample.value for sample in family.samples) == [0.0] * (len(NOTES) - 1) + [7.0]


def played(*statuses: tuple[str, ...], **settings: Any) -> list[dict[str, Any]]:
    """The lines in the log of a primary whose only object has one status after another."""

    async def play() -> None:
        ownership = OwnershipSettings(Mode.VERIFY, networks=(parse_network("198.51.100.0/24"),))
        primary = PrimarySide(
            targets=Targets(("192.0.2.1",)), ownership=ownership, settings=RpzSettings(ZONE, **settings)
        )
        for status in statuses:
            terms = Terms(status=status)
            claim = Claim("app.example.org", Reach.NAME, Origin("Ingress", "app", "shop"), terms)
            primary.registry.replace("ingress", "app", [claim])
            await primary.swap()

    with capture_logs() as logs:
        trio.run(play)
    return [dict(one) for one in logs if one["event"] == EVENT]


def test_what_is_not_replaced_is_logged_once_and_again_when_it_changes() -> None:
    lines = played(("203.0.113.10",), ("203.0.113.11",), ("lb.example.net",), ("lb.example.net",))
    assert [(one["load_balancers_with_a_hostname"], one["addresses_without_a_target"]) for one in lines] == [
        (0, 1),
        (1, 1),
    ]
    assert {one["log_level"] for one in lines} == {"warning"}


def test_with_triggers_of_names_nothing_is_logged() -> None:
    assert played(("203.0.113.10",), ("lb.example.net",), triggers=Triggers.NAMES) == []
