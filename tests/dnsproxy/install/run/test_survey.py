"""What a survey reads of a cozystack tenant: the names of dnsproxy's pods, and what the cluster's DNS knows of them.

The survey for a stanza is tested in test_applying.py.
"""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from trio.testing import MockClock

from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.corefile.rewrite_lines import format_rewrites
from dnsproxy.corefile.stanza import BEGIN, END
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.run import lasting
from dnsproxy.install.run.applying import Planned, plan_survey
from dnsproxy.install.run.survey import Survey, survey
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from tests.dnsproxy.cluster_dns.test_own_service import pods, service
from tests.dnsproxy.cluster_dns.test_probing import dnsproxy
from tests.dnsproxy.cluster_dns.test_rewrite_place import tenant
from tests.dnsproxy.install.run.test_applying import Meddling, client_of, install_request
from tests.dnsproxy.install.run.test_own_rewrites import RELAY, pod, rows
from tests.dnsproxy.install.run.test_own_zones import Pod, serving
from tests.kit.faulty_upstream import Script, Step, faulty_upstream, silence
from tests.kit.manifest_api import FakeApi
from tests.kit.manifest_cluster import Manifest
from tests.kit.rewriting_dns import rewriting

PATHS: Final = ("/rewrites",)
KNOWN: Final[Mapping[str, list[str]]] = {"relay.switchback.svc.cluster.local.": ["10.96.0.5"]}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks."""
    monkeypatch.setattr(lasting, "_PAUSE_SECONDS", 0.0)


@dataclass
class Stage:
    """A tenant's cluster, a pod of dnsproxy, and the cluster's DNS."""

    api: FakeApi
    admin: Endpoint
    dns: Endpoint

    async def survey(self, method: Method | None = None, *zones: str, **options: Any) -> Survey:
        request = install_request(method, *zones, **{"admin": self.admin, "dns": self.dns, **options})
        async with client_of(Meddling(self.api)) as client:
            return await survey(client, request)

    async def plan(self, method: Method | None = None, *zones: str, **options: Any) -> Planned:
        request = install_request(method, *zones, **{"admin": self.admin, "dns": self.dns, **options})
        return plan_survey(await self.survey(method, *zones, **options), request)


@asynccontextmanager
async def stage(
    own: Pod, script: Script, *, objects: list[Manifest] | None = None, without: tuple[str, ...] = ()
) -> AsyncIterator[Stage]:
    found = [*(objects or tenant()), service(), pods(True)]
    api = FakeApi([one for one in found if one["metadata"]["name"] not in without])
    async with serving(own, paths=PATHS) as admins, faulty_upstream(script, script) as server:
        yield Stage(api, admins[0], server.endpoint)


def standing(*names: str) -> list[Manifest]:
    lines = format_rewrites(rows(*names), "cluster.local")
    return tenant(switchback_override="".join(f"{line}\n" for line in (BEGIN, *lines, END)))


async def test_the_names_come_from_the_pods_and_no_zone_is_needed() -> None:
    async with stage(pod("app.example.org"), rewriting((), KNOWN)) as one:
        seen = await one.survey()
        assert seen.choice.method is Method.OVERRIDE_REWRITES
        assert seen.rewrites == LiveRewrites(rows("app.example.org"), answered=1)
        assert (seen.zones, seen.zones_from, seen.followed_pods) == ((), "", (one.admin,))
        assert (seen.notes, seen.asked_already) == ((), False)
        # The rights to read them: dnsproxy's Service and its pods.
        assert {request.kind.plural for request in seen.asked} >= {"services", "endpointslices", "configmaps"}


async def test_a_service_that_the_clusters_dns_does_not_know_is_noted_and_its_names_are_not_written() -> None:
    async with stage(pod("app.example.org"), rewriting((), {})) as one:
        assert (await one.survey()).rewrites == LiveRewrites(
            rows("app.example.org"), answered=1, absent=frozenset([RELAY])
        )
        planned = await one.plan()
        assert planned.edits.rewrites is not None
        assert planned.edits.rewrites.names == ()


async def test_a_clusters_dns_that_is_silent_from_here_is_a_note(clock: MockClock) -> None:
    async with stage(pod("app.example.org"), silence) as one:
        planned = await one.plan()
        assert planned.edits.rewrites is not None
        assert planned.edits.rewrites.names == ("app.example.org",)
        assert planned.edits.notes[0].startswith("whether the cluster's DNS knows these Services is unknown")


async def test_lines_that_stand_stay_while_no_pod_answers() -> None:
    async with stage(Pod(body=b"<html>"), rewriting((), KNOWN), objects=standing("app.example.org")) as one:
        planned = await one.plan()
        assert not planned.edits.changed
        assert planned.edits.notes[0].startswith("no dnsproxy gave its names, so the lines stay as they are: 127.0.0.1")


async def test_lines_that_stand_to_a_service_that_is_gone_leave_also_then() -> None:
    async with stage(Pod(body=b"<html>"), rewriting((), {}), objects=standing("app.example.org")) as one:
        planned = await one.plan()
        assert planned.edits.changed
        assert planned.edits.rewrites is not None
        assert planned.edits.rewrites.names == ()


def asking_dnsproxy(asked: bytes) -> list[Step]:
    return dnsproxy(asked) if b"_switchback-probe" in asked else rewriting((), KNOWN)(asked)


async def test_a_dns_that_asks_dnsproxy_already_gets_no_lines_unless_they_are_wanted() -> None:
    async with stage(pod("app.example.org"), asking_dnsproxy) as one:
        assert (await one.survey()).asked_already
        with pytest.raises(ChangeRefused, match="asks dnsproxy already, by a configuration without"):
            await one.plan()
        assert (await one.plan(Method.OVERRIDE_REWRITES)).edits.changed
    async with stage(pod("app.example.org"), asking_dnsproxy, objects=standing("app.example.org")) as one:
        assert not (await one.survey()).asked_already


@pytest.mark.parametrize(
    ("without", "words"),
    [
        (("dnsproxy",), "there is no Service dnsproxy in namespace switchback"),
        (("dnsproxy-x",), "no dnsproxy gave the names of its table: no pod is ready"),
    ],
    ids=["no Service", "no pods"],
)
async def test_without_a_source_the_reason_is_the_first_one(without: tuple[str, ...], words: str) -> None:
    async with stage(pod("app.example.org"), rewriting((), KNOWN), without=without) as one:
        with pytest.raises(ChangeRefused, match=words):
            await one.plan(admin=None)


async def test_pods_that_may_not_be_listed_are_named_before_a_first_install() -> None:
    async with stage(pod("app.example.org"), rewriting((), KNOWN)) as one:
        one.api.forbidden = ["/endpointslices"]
        with pytest.raises(StartError, match="not allowed to list endpointslices"):
            await one.plan(admin=None)
        assert (await one.plan()).edits.changed


async def test_zones_limit_the_names_and_an_address_is_of_no_use() -> None:
    async with stage(pod("app.example.org", "app.example.net"), rewriting((), KNOWN)) as one:
        planned = await one.plan(None, "example.net", addresses=(Endpoint("10.96.0.53", 53),))
        assert planned.edits.rewrites is not None
        assert planned.edits.rewrites.names == ("app.example.net",)
        assert planned.wanted is not None
        assert planned.wanted.addresses == ()
