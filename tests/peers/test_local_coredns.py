"""The real CoreDNS on this computer, which tests a change before it is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dnsproxy.cluster_dns.found import Found, FoundCorefile
from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.routes import ONCE
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.change.planning import plan_apply
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.change.trial_corefile import Trial, make_trial
from dnsproxy.install.run.applying import Planned, try_planned
from dnsproxy.install.run.local_coredns import try_change
from tests.dnsproxy.cluster_dns.test_rewrite_place import tenant
from tests.dnsproxy.corefile.rewrite_shapes import REWRITES
from tests.dnsproxy.install.change.test_planning import WAYS
from tests.kit.coredns import Refused, running_coredns
from tests.kit.manifest_cluster import Manifest, discover, manifests, pick
from tests.kit.manifest_edits import plan, where_of
from tests.kit.ports import free_port
from tests.kit.programs import program

pytestmark = pytest.mark.peer("coredns")


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The CoreDNS that `make peers` built, or a program that a test writes."""
    script = getattr(request, "param", None)
    folder = Path(program("coredns")).parent
    if script is not None:
        folder = tmp_path
        (tmp_path / "coredns").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "coredns").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def trial_of(text: str) -> Trial:
    return make_trial(corefile_of(text))


def corefile_of(text: str) -> FoundCorefile:
    server = discover(cluster(text)).server
    assert server is not None
    assert server.corefile is not None
    return server.corefile


def cluster(text: str) -> list[Manifest]:
    objects = manifests("kubeadm")
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = text
    return objects


def planned(objects: Sequence[Manifest], method: Method | None = None, name: str = "") -> Planned:
    found = discover(objects, where_of(name))
    return Planned(found, choose_method(found, method), plan(objects, method=method, where=where_of(name)))


STOCK = ".:53 {\n  kubernetes cluster.local\n  bind 203.0.113.1\n  forward . 192.0.2.9\n  loop\n}\n"


async def test_a_corefile_is_loaded_though_this_computer_is_no_cluster() -> None:
    tried = await try_change(trial_of(STOCK), trial_of(STOCK.replace("192.0.2.9", "192.0.2.1 192.0.2.9")))
    assert tried is not None
    assert (tried.refused, tried.untried) == ("", "")
    assert tried.version is not None
    assert tried.version >= (1, 9, 4)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("forward . 192.0.2.9", "forward . 192.0.2.9 {\n never_heard_of\n }", "never_heard_of"),
        ("forward . 192.0.2.9", "forward . 192.0.2.1 {\n policy whatever\n }", "policy"),
        ("}\n", "}\nexample.org {\n}\nexample.org {\n}\n", "already defined"),
        ("forward", "cache\n cache\n forward", "once"),
        ("192.0.2.9", " ".join(f"192.0.2.{n}" for n in range(1, 18)), "15"),
    ],
    ids=["an unknown option", "a bad value", "a zone twice", "a plugin twice", "too many upstreams"],
)
async def test_a_refusal_of_coredns_is_reported_in_its_words(old: str, new: str, said: str) -> None:
    tried = await try_change(trial_of(STOCK), trial_of(STOCK.replace(old, new, 1)))
    assert tried is not None
    assert said in tried.refused
    assert tried.refused


async def test_what_was_refused_before_the_change_tells_nothing() -> None:
    broken = STOCK.replace("forward . 192.0.2.9", "forward . 192.0.2.9 {\n never_heard_of\n }")
    tried = await try_change(trial_of(broken), trial_of(STOCK))
    assert tried is not None
    assert tried.refused == ""
    assert "does not load the Corefile from before the change" in tried.untried
    assert "never_heard_of" in tried.untried


@pytest.mark.parametrize(("name", "method"), [way for way in WAYS if way.values[1] is not Method.STUB_DOMAINS])
async def test_every_change_of_the_corpus_passes(name: str, method: Method) -> None:
    assert await try_planned(planned(manifests(name), method, name)) == ""


def with_version(planned: Planned, version: tuple[int, ...] | None) -> Planned:
    """In a cluster with another version of CoreDNS, and with a change that no CoreDNS accepts."""
    server = planned.found.server
    assert server is not None
    found: Found = replace(planned.found, server=replace(server, version=version))
    (change,) = planned.edits.changes
    (entry,) = change.data
    text = (entry.new or "").replace("policy sequential", "policy sequential\n never_heard_of")
    broken = replace(change, data=(replace(entry, new=text),))
    return replace(planned, found=found, edits=replace(planned.edits, changes=(broken,)))


@pytest.mark.parametrize("version", [None, (1, 9, 4)], ids=["unknown", "older"])
async def test_a_change_that_is_not_loaded_does_not_go_out(version: tuple[int, ...] | None) -> None:
    with pytest.raises(
        ChangeRefused, match=r"ConfigMap kube-system/coredns: a CoreDNS of this computer rejects the change"
    ):
        await try_planned(with_version(planned(manifests("kubeadm")), version))


async def test_an_older_coredns_than_the_clusters_only_remarks_on_it() -> None:
    note = await try_planned(with_version(planned(manifests("kubeadm")), (99, 0, 0)))
    assert "older than the cluster's, rejects the change" in note
    assert "never_heard_of" in note


@pytest.mark.parametrize(
    "on_the_path",
    ["exit 1", "echo no; exit 0", "echo '[ERROR] nothing works' >&2; exit 1", "kill -9 $$"],
    ids=["fails", "ends", "complains", "is killed"],
    indirect=True,
)
async def test_a_program_that_only_has_the_name_tells_nothing() -> None:
    note = await try_planned(planned(manifests("kubeadm")))
    assert note.startswith("no CoreDNS of this computer could try the change")


async def test_without_a_coredns_on_the_path_nothing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await try_planned(planned(manifests("kubeadm"))) == ""


TWICE = {
    **{name: name for name in ("cache", "errors", "loop")},
    "hosts": "hosts {\n}",
    "nsid": "nsid x",
    "pprof": "pprof 127.0.0.1:{port}",
    "prometheus": "prometheus 127.0.0.1:{port}",
    "ready": "ready 127.0.0.1:{port}",
    "view": "view a {\n expr true\n}",
}
MANY = {
    "log": "log",
    "rewrite": "rewrite name a b",
    "template": "template IN A x {\n rcode NXDOMAIN\n}",
    "bufsize": "bufsize 1232",
}


def test_the_list_of_what_is_taken_once_is_the_one_that_is_judged_here() -> None:
    assert set(TWICE) == ONCE


@pytest.mark.parametrize("name", sorted(TWICE))
def test_coredns_takes_it_once(name: str, tmp_path: Path) -> None:
    line = TWICE[name].replace("{port}", str(free_port()))
    with (
        pytest.raises(Refused, match="once per Server Block"),
        running_coredns(tmp_path, f". {{\n{line}\n{line}\n}}\n"),
    ):
        pass


@pytest.mark.parametrize("name", sorted(MANY))
def test_coredns_takes_others_more_often(name: str, tmp_path: Path) -> None:
    with running_coredns(tmp_path, f". {{\n{MANY[name]}\n{MANY[name]}\n}}\n"):
        pass


async def test_rewrite_lines_are_tried_with_all_their_wildcards() -> None:
    objects = tenant()
    found = discover(objects)
    edits = plan_apply(found, choose_method(found), Wanted((), (), LiveRewrites(REWRITES["wildcards"], answered=1)))
    one = Planned(found, choose_method(found), edits)
    assert await try_planned(one) == ""
    (change,) = edits.changes
    text = change.data[0].new or ""
    broken = replace(change.data[0], new=text.replace("rewrite stop name exact", "rewrite stop x"))
    with pytest.raises(ChangeRefused, match="invalid rule type"):
        await try_planned(replace(one, edits=replace(edits, changes=(replace(change, data=(broken,)),))))
