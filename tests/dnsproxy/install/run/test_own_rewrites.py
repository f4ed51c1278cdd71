"""Own rewrites: the names of several pods, some of them silent, foreign or not synced."""

from __future__ import annotations

from typing import Final

import pytest

from dnsproxy.admin.rewrites_document import PATH, Name, RewritesDocument, format_rewrites_document
from dnsproxy.corefile.rewrite_lines import Rewrite
from dnsproxy.dns.names import Reach
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.run.own_rewrites import RewritesReader
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.install.run.test_own_zones import Pod, serving

RELAY: Final = "switchback/relay"


def pod(*names: str, service: str = RELAY, exempt: tuple[str, ...] = (), **fields: object) -> Pod:
    document = RewritesDocument(
        names=tuple(Name(name, Reach.NAME, service) for name in names),
        exempt=tuple(Name(name, Reach.NAME) for name in exempt),
        **fields,  # type: ignore[arg-type]
    )
    return Pod(body=format_rewrites_document(document)[0])


def rows(*names: str, service: str = RELAY) -> tuple[Rewrite, ...]:
    return tuple(Rewrite(name, Reach.NAME, service) for name in names)


async def read(*pods: Pod) -> LiveRewrites:
    async with serving(*pods, paths=(PATH,)) as endpoints:
        return await RewritesReader().read(endpoints)


async def test_the_names_are_those_of_all_pods_in_the_order_of_the_first() -> None:
    found = await read(pod("b.org", "a.org", plain=2), pod("a.org", "c.org", plain=3, left_out=4))
    assert sorted(one.hostname for one in found.names) == ["a.org", "b.org", "c.org"]
    hostnames = [one.hostname for one in found.names]
    # Pods are asked in the order of their addresses, which a test does not choose.
    assert hostnames in (["b.org", "a.org", "c.org"], ["a.org", "c.org", "b.org"])
    assert (found.plain, found.left_out, found.answered, found.doubt) == (3, 4, 2, "")


async def test_a_name_that_one_pod_serves_is_exempt_for_none() -> None:
    found = await read(pod("a.org"), pod(exempt=("a.org", "b.org")))
    assert (found.names, found.exempt) == (rows("a.org"), rows("b.org", service=""))


async def test_of_two_services_for_one_name_one_counts() -> None:
    found = await read(pod("a.org"), pod("a.org", service="web/other"))
    assert found.names in (rows("a.org"), rows("a.org", service="web/other"))


@pytest.mark.parametrize(
    ("other", "answered", "doubt"),
    [
        (pod("b.org", waiting_for=("Ingress",)), 2, "waiting for the first sync of: Ingress"),
        (Pod(body=b'{"names":[["A.org","exact","a/b"]]}'), 1, "the answer is not that of a `dnsproxy serve`"),
        (Pod(body=b'{"zones":["example.org"]}'), 1, "the answer is not that of a `dnsproxy serve`"),
        (Pod(body=b"<html>"), 1, "the answer is not that of a `dnsproxy serve`"),
    ],
    ids=["waiting", "a name of another form", "zones", "another program"],
)
async def test_a_pod_in_doubt_takes_no_name_away(other: Pod, answered: int, doubt: str) -> None:
    found = await read(pod("a.org"), other)
    assert rows("a.org")[0] in found.names
    assert found.answered == answered
    assert doubt in found.doubt


async def test_names_that_are_left_out_are_no_doubt_about_the_others() -> None:
    assert (await read(pod("a.org", left_out=100))).doubt == ""


async def test_an_older_server_and_none_at_all_are_named() -> None:
    async with serving(Pod(), paths=()) as pods:
        assert "older" in (await RewritesReader().read(pods)).doubt
    assert await RewritesReader().read([]) == LiveRewrites(doubt="no pod is ready")
    assert "no server answers" in (await RewritesReader().read([Endpoint("127.0.0.1", 9)])).doubt
