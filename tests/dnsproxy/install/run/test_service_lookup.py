"""The look-up of Services, with servers on loopback that know them, do not, or are silent."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pytest
from trio.testing import MockClock

from dnsproxy.install.run import lasting
from dnsproxy.install.run.service_lookup import MOST, LookedUp, look_up_services
from tests.kit import upstream_replies
from tests.kit.faulty_upstream import Script, Step, faulty_upstream, silence
from tests.kit.rewriting_dns import rewriting
from tests.kit.upstream_replies import SERVFAIL

RELAY, OTHER = "switchback/relay", "web/other"
ADDRESSES: Final[Mapping[str, list[str]]] = {
    "relay.switchback.svc.cluster.local.": ["10.96.0.5"],
    "other.web.svc.cluster.local.": ["2001:db8::5"],
}


def knowing(*names: str) -> Script:
    return rewriting((), {name: found for name, found in ADDRESSES.items() if name.partition(".")[0] in names})


def failing(asked: bytes) -> list[Step]:
    return [upstream_replies.right(asked, rcode=SERVFAIL, answers=0)]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks."""
    monkeypatch.setattr(lasting, "_PAUSE_SECONDS", 0.0)


async def looked_up(*scripts: Script) -> LookedUp:
    async with faulty_upstream(scripts[0], scripts[0]) as first, faulty_upstream(scripts[-1], scripts[-1]) as last:
        places = dict.fromkeys([first.endpoint, last.endpoint][: len(scripts)])
        return await look_up_services(tuple(places), [RELAY, OTHER], "cluster.local")


@pytest.mark.parametrize(
    ("scripts", "absent"),
    [
        pytest.param([knowing("relay", "other")], set(), id="both known, of any family"),
        pytest.param([knowing("relay")], {OTHER}, id="one is absent"),
        pytest.param([knowing()], {RELAY, OTHER}, id="both are absent"),
        pytest.param([failing], set(), id="a failure says nothing"),
        pytest.param([knowing("relay"), knowing("other")], set(), id="known somewhere"),
        pytest.param([silence, knowing("relay")], {OTHER}, id="one server is silent"),
    ],
)
async def test_a_service_is_absent_if_a_server_says_so_and_none_has_it(
    scripts: list[Script], absent: set[str], clock: MockClock
) -> None:
    assert await looked_up(*scripts) == LookedUp(frozenset(absent))


async def test_a_service_that_was_absent_for_a_moment_is_not() -> None:
    asked: list[bytes] = []

    def starting(query: bytes) -> Iterable[Step]:
        asked.append(query)
        # Four queries a look: two Services, two families.
        return (knowing("relay", "other") if len(asked) > 8 else knowing())(query)

    async with faulty_upstream(starting, starting) as server:
        found = await look_up_services((server.endpoint,), [RELAY, OTHER], "cluster.local")
    assert (found, len(asked)) == (LookedUp(), 12)


async def test_silence_is_a_note(clock: MockClock) -> None:
    found = await looked_up(silence)
    assert found.absent == frozenset()
    assert found.note.startswith("whether the cluster's DNS knows these Services is unknown: no answer at 127.0.0.1:")
    nowhere = await look_up_services((), [RELAY], "cluster.local")
    assert nowhere.note.endswith("no answer at no known address")


async def test_without_services_nothing_is_asked_or_noted() -> None:
    async with faulty_upstream(silence, silence) as server:
        assert await look_up_services((server.endpoint,), (), "cluster.local") == LookedUp()
        assert server.asked_datagrams == []


async def test_the_number_of_services_is_bounded() -> None:
    services = [f"web/s{number}" for number in range(3 * MOST)]
    async with faulty_upstream(failing, failing) as server:
        await look_up_services((server.endpoint,), services, "cluster.local")
        assert len(server.asked_datagrams) == 2 * MOST


async def test_a_domain_without_room_is_a_note() -> None:
    async with faulty_upstream(failing, failing) as server:
        found = await look_up_services((server.endpoint,), [RELAY], ".".join(["a" * 63] * 4))
    assert found.note
