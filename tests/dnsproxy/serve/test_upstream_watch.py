"""Following the ConfigMap with the upstreams: changes, faults, outages, and the snapshot."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.corefile.cluster_zones import ClusterZones
from dnsproxy.corefile.upstream_routes import UpstreamRoute
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.serve.upstream_watch import UpstreamWatch
from dnsproxy.snapshot.format import SavedUpstreams
from sidecar.values.endpoints import Endpoint
from tests.kit.faulty_api import client_in_memory, failure
from tests.kit.live_api import LiveApi

REF: Final = ObjectRef("kube-system", "coredns")
PATH: Final = "/api/v1/namespaces/kube-system/configmaps"
NODE: Final = ForwardSettings((Endpoint("192.0.2.53", 53),))


FIRST, LAST = ObjectRef("kube-system", "nodelocaldns"), ObjectRef("kube-system", "kube-dns")
HIDDEN: Final = ObjectRef("openshift-dns", "dns-default")


def put(api: LiveApi, *lines: str, ref: ObjectRef = REF) -> None:
    data = {"Corefile": "\n".join([". {", *lines, "}", ""])}
    api.put("", "configmaps", {"metadata": {"name": ref.name, "namespace": ref.namespace}, "data": data})


def make_api(*lines: str) -> LiveApi:
    api = LiveApi()
    api.provide("v1", "configmaps")
    if lines:
        put(api, *lines)
    return api


@dataclass
class Watched:
    watch: UpstreamWatch
    used: list[tuple[list[str], str]]
    syncs: list[int] = field(default_factory=list)
    domains: list[ClusterZones] = field(default_factory=list)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
            await trio.sleep(0.1)

    async def until_used(self, *upstreams: str) -> None:
        await self.until(lambda: bool(self.used) and self.used[-1][0] == list(upstreams))


@asynccontextmanager
async def watching(
    api: LiveApi,
    saved: SavedUpstreams | None = None,
    *,
    refs: Sequence[ObjectRef] = (REF,),
    imports: Sequence[ObjectRef] = (),
    listening: tuple[Endpoint, ...] = (),
) -> AsyncIterator[Watched]:
    used: list[tuple[list[str], str]] = []
    syncs: list[int] = []

    def apply(settings: ForwardSettings, forwards: str) -> None:
        used.append(([str(one) for one in settings.upstreams], forwards))

    domains: list[ClusterZones] = []
    watch = UpstreamWatch(
        refs,
        imports=imports,
        node=NODE,
        apply=apply,
        on_synced=lambda: syncs.append(1),
        on_domains=domains.append,
    )
    watch.restore(saved)
    if listening:
        watch.set_listening(listening)
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        nursery.start_soon(watch.run, client)
        yield Watched(watch, used, syncs, domains)
        nursery.cancel_scope.cancel()


async def test_a_change_is_followed_within_a_second(autojump_clock: MockClock) -> None:
    api = make_api("forward . 192.0.2.1")
    async with watching(api) as watched:
        assert watched.used == [([], ".")], "before the first read, nothing goes anywhere"
        await watched.until_used("192.0.2.1:53")
        await watched.until(lambda: bool(watched.syncs))
        put(api, "forward corp.test 10.0.0.5", "forward . tls://192.0.2.2")
        with trio.fail_after(1):
            await watched.until_used("tls://192.0.2.2:853#192.0.2.2")
        assert watched.used[-1][1] == "corp.test. 10.0.0.5; . tls://192.0.2.2:853#192.0.2.2"
        put(api, "log", "forward corp.test 10.0.0.5", "forward . tls://192.0.2.2")
        await trio.sleep(2)
        assert len(watched.used) == 3, "the same upstreams are not used again"
        assert watched.watch.notes == []


async def test_another_text_for_the_same_nameservers_is_the_one_that_probes_hear_of(autojump_clock: MockClock) -> None:
    """An installer compares the texts, and would refuse for ever."""
    api = make_api("forward . 192.0.2.53")
    async with watching(api) as watched:
        await watched.until_used("192.0.2.53:53")
        assert watched.used[-1][1] == ". 192.0.2.53"
        put(api, "forward . /etc/resolv.conf")
        await watched.until(lambda: watched.used[-1] == (["192.0.2.53:53"], ". /etc/resolv.conf"))
        put(api, "forward . 192.0.2.53")
        await watched.until(lambda: watched.used[-1] == (["192.0.2.53:53"], ". 192.0.2.53"))


async def test_the_cluster_domains_are_followed_and_the_last_ones_stay(autojump_clock: MockClock) -> None:
    """Also those of a Corefile whose upstreams cannot be used."""
    api = make_api("forward . 192.0.2.1", "kubernetes a.test in-addr.arpa")
    async with watching(api) as watched:
        await watched.until(lambda: watched.domains == [ClusterZones(("a.test",))])
        put(api, "grpc . 192.0.2.1", "kubernetes a.test b.test")
        await watched.until(lambda: watched.domains[-1].zones == ("a.test", "b.test"))
        await watched.until(lambda: watched.watch.saved is not None)
        saved = watched.watch.saved
        api.remove("", "configmaps", str(REF))
        await watched.until(lambda: "no such" in watched.watch.notes[0])
        assert len(watched.domains) == 2
    api.crash()
    async with watching(api, saved) as watched:
        assert watched.domains == [ClusterZones(("a.test", "b.test"))], "of the snapshot, before anything is read"


@pytest.mark.parametrize(
    ("damage", "note"),
    [
        pytest.param(lambda api: api.remove("", "configmaps", str(REF)), "there is no such ConfigMap", id="gone"),
        pytest.param(lambda api: put(api, "grpc . 192.0.2.1"), "has no `forward .`", id="no forward"),
        pytest.param(lambda api: put(api, "forward ."), "line 2: ", id="not valid"),
    ],
)
async def test_the_last_good_upstreams_stay_and_the_fault_is_noted(
    autojump_clock: MockClock, damage: Callable[[LiveApi], None], note: str
) -> None:
    api = make_api("forward . 192.0.2.1")
    async with watching(api) as watched:
        await watched.until_used("192.0.2.1:53")
        damage(api)
        await watched.until(lambda: bool(watched.watch.notes))
        (found,) = watched.watch.notes
        assert note in found
        assert found.endswith("; the last good upstreams stay")
        await trio.sleep(20)
        assert watched.used[-1][0] == ["192.0.2.1:53"]
        put(api, "forward . 192.0.2.3")
        await watched.until_used("192.0.2.3:53")
        assert watched.watch.notes == []


async def test_a_server_that_would_only_ask_itself_asks_the_nodes_nameservers_or_the_last_good_upstreams(
    autojump_clock: MockClock,
) -> None:
    """The stanza without its markers, as a tool for configuration writes it again."""
    api = make_api("forward . 192.0.2.9")
    async with watching(api, listening=(Endpoint("192.0.2.9", 53),)) as watched:
        await watched.until_used("192.0.2.53:53")
        assert watched.watch.saved is None
        (note,) = watched.watch.notes
        assert note.endswith("its upstreams are dnsproxy itself; names go to the node's nameservers")
        put(api, "forward . 192.0.2.1")
        await watched.until_used("192.0.2.1:53")
        put(api, "forward . 192.0.2.9")
        await watched.until(lambda: bool(watched.watch.notes))
        (note,) = watched.watch.notes
        assert note.endswith("its upstreams are dnsproxy itself; the last good upstreams stay")
        await trio.sleep(2)
        assert watched.used[-1][0] == ["192.0.2.1:53"]


async def test_a_snapshot_that_names_only_this_server_means_the_nodes_nameservers(autojump_clock: MockClock) -> None:
    saved = SavedUpstreams(str(REF), (UpstreamRoute(".", ("192.0.2.9",)),))
    async with watching(make_api(), saved, listening=(Endpoint("192.0.2.9", 53),)) as watched:
        assert watched.used[-1] == (["192.0.2.53:53"], ". /etc/resolv.conf")


async def test_a_zone_that_no_query_matches_does_not_end_the_server(autojump_clock: MockClock) -> None:
    api = make_api("forward b\u00fccher.test 10.0.0.5", "forward . 192.0.2.1")
    async with watching(api) as watched:
        await watched.until_used("192.0.2.1:53")
        (note,) = watched.watch.notes
        assert "line 2: " in note
        put(api, "forward . 192.0.2.3")
        await watched.until_used("192.0.2.3:53")
        assert watched.watch.notes == []


CUSTOM: Final = ObjectRef("kube-system", "coredns-custom")
IMPORTING: Final = ("import /etc/coredns/custom/*.override", "forward . /etc/resolv.conf")


def put_files(api: LiveApi, **files: str) -> None:
    data = {name.replace("_", "."): text for name, text in files.items()}
    api.put("", "configmaps", {"metadata": {"name": CUSTOM.name, "namespace": CUSTOM.namespace}, "data": data})


async def test_what_the_corefile_imports_is_followed_at_the_place_of_the_import(autojump_clock: MockClock) -> None:
    """As K3s documents it."""
    api = make_api(*IMPORTING)
    put_files(api, a_override="forward . 192.0.2.1\n", b_server="example.org {\n forward . 192.0.2.9\n}\n")
    async with watching(api, imports=(CUSTOM,)) as watched:
        await watched.until_used("192.0.2.1:53")
        assert [used for used, _ in watched.used] == [[], ["192.0.2.1:53"]], "the node's were never asked"
        put_files(api, a_override="forward corp.test 10.0.0.5\n")
        await watched.until(lambda: watched.used[-1][1] == "corp.test. 10.0.0.5; . /etc/resolv.conf")
        put_files(api, a_override="forward . {\n")
        await watched.until(lambda: bool(watched.watch.notes))
        assert "line 2: '/etc/coredns/custom/*.override', line 1: " in watched.watch.notes[0]
        assert watched.used[-1][1] == "corp.test. 10.0.0.5; . /etc/resolv.conf"
        api.remove("", "configmaps", str(CUSTOM))
        await watched.until(lambda: watched.used[-1][1] == ". /etc/resolv.conf")
        assert watched.watch.notes == []


async def test_before_the_imports_are_read_nothing_is_forwarded_and_the_server_is_not_ready(
    autojump_clock: MockClock,
) -> None:
    api = make_api(*IMPORTING)
    put_files(api, a_override="forward . 192.0.2.1\n")
    api.faults[PATH] = failure(503, "ServiceUnavailable")
    async with watching(api, imports=(CUSTOM,)) as watched:
        await trio.sleep(3)
        assert (watched.used, watched.syncs) == ([([], ".")], [])
        del api.faults[PATH]
        await watched.until_used("192.0.2.1:53")
        await watched.until(lambda: bool(watched.syncs))


@pytest.mark.parametrize("imports", [(ObjectRef("other", "coredns-custom"),), (ObjectRef("kube-system", "none"),)])
async def test_imports_of_another_namespace_or_that_are_absent_change_nothing(
    autojump_clock: MockClock, imports: tuple[ObjectRef, ...]
) -> None:
    api = make_api(*IMPORTING)
    data = {"a.override": "forward . 192.0.2.1\n"}
    api.put("", "configmaps", {"metadata": {"name": "coredns-custom", "namespace": "other"}, "data": data})
    async with watching(api, imports=imports) as watched:
        await watched.until_used("192.0.2.53:53")
        await watched.until(lambda: bool(watched.syncs))


async def test_a_corefile_that_forwards_nothing_means_nobody(autojump_clock: MockClock) -> None:
    api = make_api("forward . 192.0.2.1")
    async with watching(api) as watched:
        await watched.until_used("192.0.2.1:53")
        put(api, "hosts")
        await watched.until(lambda: watched.used[-1] == ([], "."))
        assert watched.watch.notes == []
        saved = watched.watch.saved
        put(api, "forward . 192.0.2.3")
        await watched.until_used("192.0.2.3:53")
    async with watching(make_api(), saved) as restored:
        assert restored.used[-1] == ([], "."), "of the snapshot"


async def test_an_upstream_that_cannot_be_asked_is_the_nodes_and_is_noted(autojump_clock: MockClock) -> None:
    async with watching(make_api("forward . https://192.0.2.1")) as watched:
        await watched.until(lambda: bool(watched.watch.notes))
        assert watched.used[-1] == (["192.0.2.53:53"], ". /etc/resolv.conf")
        (note,) = watched.watch.notes
        assert "line 2: 'https://192.0.2.1' is neither plain DNS nor DNS over TLS" in note


async def test_other_nameservers_of_the_node_are_followed_where_the_corefile_names_them(
    autojump_clock: MockClock,
) -> None:
    api = make_api("forward . /etc/resolv.conf")
    async with watching(api) as watched:
        await watched.until(lambda: bool(watched.syncs))
        watched.watch.set_node(ForwardSettings((Endpoint("192.0.2.54", 53),)))
        assert watched.used[-1][0] == ["192.0.2.54:53"]
        put(api, "forward . 192.0.2.1")
        await watched.until_used("192.0.2.1:53")
        watched.watch.set_node(NODE)
        assert watched.used[-1][0] == ["192.0.2.1:53"]


async def test_a_snapshot_gives_the_upstreams_while_the_api_server_is_away(autojump_clock: MockClock) -> None:
    api = make_api("forward . 192.0.2.1")
    async with watching(api) as first:
        await first.until_used("192.0.2.1:53")
        saved = first.watch.saved
    api.crash()
    async with watching(api, saved) as watched:
        assert watched.used[-1] == (["192.0.2.1:53"], ". 192.0.2.1")
        await trio.sleep(20)
        assert watched.used[-1][0] == ["192.0.2.1:53"]
        assert watched.syncs == []
        assert watched.watch.notes == []
        put(api, "forward . 192.0.2.2")
        api.recover()
        await watched.until_used("192.0.2.2:53")


async def test_a_snapshot_of_another_config_map_is_not_used(autojump_clock: MockClock) -> None:
    saved = SavedUpstreams("kube-system/other", ())
    async with watching(make_api(), saved) as watched:
        assert watched.used[-1] == ([], ".")
        assert watched.watch.saved is None


async def test_an_absent_config_map_means_the_nodes_nameservers_and_keeps_nothing_waiting(
    autojump_clock: MockClock,
) -> None:
    async with watching(make_api()) as watched:
        await watched.until(lambda: bool(watched.syncs))
        (note,) = watched.watch.notes
        assert note == ("ConfigMap kube-system/coredns: there is no such ConfigMap; names go to the node's nameservers")


async def test_a_config_map_that_rbac_hides_is_noted_and_keeps_nothing_waiting(autojump_clock: MockClock) -> None:
    api = make_api("forward . 192.0.2.1")
    api.faults[PATH] = failure(403, "Forbidden")
    async with watching(api) as watched:
        await watched.until(lambda: bool(watched.syncs))
        (note,) = watched.watch.notes
        assert "403" in note
        assert watched.used[-1][1] == ". /etc/resolv.conf"
        del api.faults[PATH]
        await watched.until_used("192.0.2.1:53")
        assert watched.watch.notes == []


async def test_a_sidecar_of_coredns_is_not_asked_from_another_pod(autojump_clock: MockClock) -> None:
    api = make_api("forward . 127.0.0.1:5053")
    async with watching(api, listening=(Endpoint("0.0.0.0", 1053),)) as watched:
        await watched.until_used("192.0.2.53:53")
        (note,) = watched.watch.notes
        assert "line 2: '127.0.0.1:5053' is an address of CoreDNS's own pod; names of . go to the node's" in note
    async with watching(api, listening=(Endpoint("127.0.0.1", 1053),)) as beside:
        await beside.until_used("127.0.0.1:5053")
        assert beside.watch.notes == []


async def test_of_several_the_deciding_one_gives_upstreams_domains_notes_and_snapshot(
    autojump_clock: MockClock,
) -> None:
    api = make_api("forward . 192.0.2.1", "kubernetes a.test")
    async with watching(api, refs=(FIRST, REF, LAST)) as watched:
        await watched.until_used("192.0.2.1:53")
        await watched.until(lambda: bool(watched.syncs))
        assert [status.kind for status in watched.watch.statuses] == [f"ConfigMap {FIRST}", f"ConfigMap {REF}"]
        put(api, "forward . https://192.0.2.2", "kubernetes b.test", ref=FIRST)
        await watched.until(lambda: watched.domains[-1] == ClusterZones(("b.test",)))
        assert watched.used[-1] == (["192.0.2.53:53"], ". /etc/resolv.conf")
        (note,) = watched.watch.notes
        assert note.startswith(f"ConfigMap {FIRST}: line 2: 'https://192.0.2.2' is neither")
        saved = watched.watch.saved
        assert saved is not None
        assert (saved.config_map, saved.domains) == (str(FIRST), ("b.test",))
        api.remove("", "configmaps", str(FIRST))
        await watched.until_used("192.0.2.1:53")
        assert watched.watch.notes == []
        assert watched.watch.saved is not None
        assert watched.watch.saved.config_map == str(REF)
    api.crash()
    async with watching(api, saved, refs=(REF, FIRST)) as watched:
        assert watched.used[-1] == (["192.0.2.53:53"], ". /etc/resolv.conf")
        assert watched.watch.notes[0].startswith(f"ConfigMap {FIRST}: line 2: ")


async def test_a_fault_of_the_deciding_one_is_no_reason_to_ask_the_next(autojump_clock: MockClock) -> None:
    """Its owner repairs it, and what it said last is nearer to that than another file."""
    api = make_api("forward . 192.0.2.1")
    put(api, "forward . 192.0.2.7", ref=FIRST)
    async with watching(api, refs=(FIRST, REF)) as watched:
        await watched.until_used("192.0.2.7:53")
        put(api, "grpc . 192.0.2.1", ref=FIRST)
        await watched.until(lambda: bool(watched.watch.notes))
        await trio.sleep(10)
        assert watched.used[-1][0] == ["192.0.2.7:53"]
        (note,) = watched.watch.notes
        assert note.startswith(f"ConfigMap {FIRST}: ")
        assert note.endswith("the last good upstreams stay")


async def test_kube_dns_after_a_corefile_that_is_absent_is_read_as_kube_dns(autojump_clock: MockClock) -> None:
    api = make_api()
    data = {"upstreamNameservers": '["192.0.2.9"]'}
    api.put("", "configmaps", {"metadata": {"name": LAST.name, "namespace": LAST.namespace}, "data": data})
    async with watching(api, refs=(FIRST, REF, LAST)) as watched:
        await watched.until_used("192.0.2.9:53")
        assert watched.watch.notes == []


async def test_where_none_of_several_is_there_the_node_is_asked_and_each_is_named(autojump_clock: MockClock) -> None:
    api = make_api()
    api.faults[f"/api/v1/namespaces/{HIDDEN.namespace}/configmaps"] = failure(403, "Forbidden")
    async with watching(api, refs=(REF, HIDDEN, LAST)) as watched:
        await watched.until(lambda: bool(watched.syncs))
        assert watched.used[-1] == (["192.0.2.53:53"], ". /etc/resolv.conf")
        (note,) = watched.watch.notes
        named = f"{REF}, {HIDDEN} (RBAC hides it), {LAST}"
        assert note == f"none of these ConfigMaps is there: {named}; names go to the node's nameservers"
        assert watched.watch.skipped == []
        put(api, "forward . 192.0.2.1")
        await watched.until_used("192.0.2.1:53")
        assert watched.watch.notes == []


async def test_none_of_several_is_told_from_the_absence_of_one(autojump_clock: MockClock) -> None:
    async with watching(make_api(), refs=(FIRST, REF)) as watched:
        await watched.until(lambda: bool(watched.syncs))
        (note,) = watched.watch.notes
        assert note == f"none of these ConfigMaps is there: {FIRST}, {REF}; names go to the node's nameservers"


async def test_a_hidden_one_is_named_only_while_a_later_one_decides(autojump_clock: MockClock) -> None:
    """It is no reason that names go elsewhere, which the metric and its alert count, so it is no note of these."""
    api = make_api("forward . 192.0.2.1")
    api.faults[f"/api/v1/namespaces/{HIDDEN.namespace}/configmaps"] = failure(403, "Forbidden")
    async with watching(api, refs=(HIDDEN, REF)) as watched:
        await watched.until_used("192.0.2.1:53")
        (skipped,) = watched.watch.skipped
        assert skipped.startswith(f"ConfigMap {HIDDEN} is skipped: ")
        assert "403" in skipped
        assert watched.watch.notes == []
    async with watching(api, refs=(REF, HIDDEN)) as watched:
        await watched.until_used("192.0.2.1:53")
        await trio.sleep(20)
        assert (watched.watch.skipped, watched.watch.notes) == ([], [])


async def test_a_snapshot_of_a_later_one_is_used_until_a_better_one_is_read(autojump_clock: MockClock) -> None:
    saved = SavedUpstreams(str(LAST), (UpstreamRoute(".", ("192.0.2.9",)),))
    async with watching(make_api("forward . 192.0.2.1"), saved, refs=(FIRST, REF, LAST)) as watched:
        assert watched.used[-1] == (["192.0.2.9:53"], ". 192.0.2.9")
        await watched.until_used("192.0.2.1:53")
        assert watched.watch.saved is not None
        assert watched.watch.saved.config_map == str(REF)


async def test_the_long_zone_of_a_stub_domain_is_not_repeated_whole(autojump_clock: MockClock) -> None:
    api = make_api()
    data = {"stubDomains": json.dumps({"x" * 200_000: ["192.0.2.1"]})}
    api.put("", "configmaps", {"metadata": {"name": LAST.name, "namespace": LAST.namespace}, "data": data})
    async with watching(api, refs=(LAST,)) as watched:
        await watched.until(lambda: bool(watched.watch.notes))
        assert max(map(len, watched.watch.notes)) < 700
