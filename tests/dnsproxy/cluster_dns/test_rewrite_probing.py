"""Probes of rewrite lines, against servers that have them, have others, or fail."""

from __future__ import annotations

from typing import Final

import pytest

from dnsproxy.cluster_dns.exchange import Patience
from dnsproxy.cluster_dns.probe_results import Presence
from dnsproxy.cluster_dns.probing import ask
from dnsproxy.cluster_dns.rewrite_probing import Resolved, resolve
from dnsproxy.corefile.model import Scope
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.rewrite_lines import Rewrite, format_rewrites, parse_rewrites
from dnsproxy.dns.names import Reach
from tests.kit import upstream_replies
from tests.kit.faulty_upstream import Step, faulty_upstream, silence
from tests.kit.rewriting_dns import rewriting
from tests.kit.upstream_replies import NXDOMAIN, SERVFAIL

CALM = Patience(times=3)
BRISK = Patience(times=3, datagrams=(0.2,), stream=0.2)
API: Final = "kubernetes.default.svc.cluster.local."
RELAY: Final = "relay.switchback.svc.cluster.local."
V4, V6, BOTH = ["10.96.0.1"], ["2001:db8::1"], ["10.96.0.1", "2001:db8::1"]
LINES: Final = format_rewrites([Rewrite("app.example.org", Reach.NAME, "switchback/relay")], "cluster.local")
OTHERS: Final = format_rewrites([], "cluster.local")


def marker_of(lines: tuple[str, ...]) -> str:
    return parse_rewrites(parse_corefile("\n".join(lines), Scope.ROOT_PLUGINS)).marker


@pytest.mark.parametrize("addresses", [V4, V6, BOTH], ids=["IPv4", "IPv6", "dual stack"])
async def test_a_server_with_exactly_these_lines_is_known_by_the_address_of_the_api_server(
    addresses: list[str],
) -> None:
    async with faulty_upstream(rewriting(LINES, {API: addresses})) as server:
        asked = await ask(server.endpoint, marker_of(LINES), CALM)
        assert (asked.state, asked.said) == (Presence.YES, "3 of 3 rewritten")
        other = await ask(server.endpoint, marker_of(OTHERS), CALM)
        assert (other.state, other.said) == (Presence.NO, "3 of 3 NXDOMAIN")
        probes = [one.message[12:] for one in server.asked_datagrams if b"_switchback-rewrites" in one.message]
        # Two rounds of three, and each time one of no lines for both families.
        names = [one[: one.index(0)] for one in probes]
        assert (len(probes), len(set(names))) == (10, 8)


def every_name(asked: bytes) -> list[Step]:
    """A server that gives one address for all names, such as a captive portal."""
    return [upstream_replies.right(asked)]


def own_address_for_others(asked: bytes) -> list[Step]:
    """A server whose upstream answers every other name with its own address."""
    return rewriting((), {API: V4})(asked) if b"\x0akubernetes" in asked else every_name(asked)


async def test_a_server_that_gives_every_name_one_address_has_no_lines() -> None:
    async with faulty_upstream(every_name) as server:
        asked = await ask(server.endpoint, marker_of(LINES), CALM)
        assert asked.state is Presence.NO
        assert asked.said == "1 of 1 the address of kubernetes.default.svc.cluster.local for every name"


async def test_another_address_is_not_ours() -> None:
    async with faulty_upstream(own_address_for_others) as server:
        asked = await ask(server.endpoint, marker_of(LINES), CALM)
        assert (asked.state, asked.said) == (Presence.NO, "3 of 3 NOERROR")


@pytest.mark.parametrize("services", [{}, {API: []}], ids=["an unknown name", "no address"])
async def test_a_server_that_does_not_know_the_api_server_has_no_lines_that_work(
    services: dict[str, list[str]],
) -> None:
    async with faulty_upstream(rewriting(LINES, services)) as server:
        asked = await ask(server.endpoint, marker_of(LINES), CALM)
        assert asked.state is Presence.NO
        assert asked.said == "1 of 1 no address for kubernetes.default.svc.cluster.local"


async def test_a_silent_server_says_nothing() -> None:
    async with faulty_upstream(silence, silence) as server:
        asked = await ask(server.endpoint, marker_of(LINES), BRISK)
        assert (asked.state, asked.said) == (Presence.SILENT, "1 of 1 no answer")


async def test_a_server_behind_which_one_has_loaded_is_partly_there() -> None:
    turns = iter([*[LINES] * 4, LINES, OTHERS, LINES])

    def one_of_two(asked: bytes) -> list[Step]:
        return rewriting(next(turns), {API: V4})(asked)

    async with faulty_upstream(one_of_two) as server:
        assert (await ask(server.endpoint, marker_of(LINES), CALM)).state is Presence.PARTLY


async def test_a_cluster_domain_without_room_for_a_probe_is_not_asked_for() -> None:
    marker = f"0123456789abcdef._switchback-rewrites.{'.'.join(['a' * 63] * 3 + ['b' * 40])}"
    async with faulty_upstream(rewriting(LINES, {API: V4})) as server:
        asked = await ask(server.endpoint, marker, CALM)
        assert asked.state is Presence.SILENT
        assert "too long to be asked for" in asked.said


async def test_the_addresses_of_both_families_are_read() -> None:
    async with faulty_upstream(rewriting((), {RELAY: BOTH})) as server:
        assert await resolve(server.endpoint, RELAY.removesuffix("."), CALM) == Resolved(frozenset(BOTH), 0)


@pytest.mark.parametrize(
    ("script", "absent"),
    [
        (rewriting((), {}), True),
        (rewriting((), {RELAY: []}), True),
        (rewriting((), {RELAY: V6}), False),
        (lambda asked: [upstream_replies.right(asked, rcode=NXDOMAIN, answers=0)], True),
        (lambda asked: [upstream_replies.right(asked, rcode=SERVFAIL, answers=0)], False),
        (lambda asked: [upstream_replies.truncated(asked)], False),
        (silence, False),
    ],
    ids=["NXDOMAIN", "NODATA", "one family", "bare NXDOMAIN", "SERVFAIL", "truncated", "silence"],
)
async def test_a_name_is_absent_only_if_the_server_says_so(script: object, absent: bool) -> None:
    async with faulty_upstream(script, script) as server:  # type: ignore[arg-type]
        found = await resolve(server.endpoint, RELAY.removesuffix("."), BRISK)
        assert found.is_absent is absent
        assert bool(found.fault) is (found.rcode is None)
