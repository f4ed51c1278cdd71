"""From hairpin-proxy and from ouroboros, as deploy/migrating says: their lines and our stanza in one real CoreDNS.

Their controllers are played, by what they write (tests/kit/other_tools.py). The guides' commands are played in
tests/deploy/test_migrating_guides.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dns.exception
import pytest

from tests.kit.apiserver import ApiServer
from tests.kit.coredns import CoreDns, answering, running_coredns
from tests.kit.living_dns import LivingCluster, living_cluster
from tests.kit.other_tools import (
    HAIRPIN,
    OUROBOROS,
    with_hairpin_lines,
    with_ouroboros_block,
    without_hairpin_lines,
    without_ouroboros_block,
)
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.serve_process import serving
from tests.peers.test_install_apiserver import Scene, kubeadm

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "coredns", "kubectl"), pytest.mark.timeout(400)]

HOST, FRESH, ELSEWHERE = "shop.example.org", "fresh.example.org", "www.example.net"
"""A host of both tools, a host of ours alone, and a name outside."""
BY_DNSPROXY, BY_UPSTREAM, BY_THEIRS = "192.0.2.1", "192.0.2.2", "192.0.2.3"


@dataclass(frozen=True)
class Theirs:
    """The other tool: what it writes, and what is left of it."""

    target: str
    """The name of its proxy's Service."""
    write: Callable[[str, Sequence[str]], str]
    """A Corefile with its lines for these hosts; the same again if they are there."""
    take_out: Callable[[str], str]
    """What its cleanup, or the guide's edit, leaves."""


TOOLS: Final = [
    pytest.param(Theirs(HAIRPIN, with_hairpin_lines, without_hairpin_lines), id="hairpin-proxy"),
    pytest.param(Theirs(OUROBOROS.rstrip("."), with_ouroboros_block, without_ouroboros_block), id="ouroboros"),
]
# `hosts` stands for the plugin kubernetes, which has the address of their Service.
COREFILE: Final = """.:53 {{
    errors
    hosts {{
        {address} {target}
        fallthrough
    }}
    forward . /etc/resolv.conf {{
       max_concurrent 1000
    }}
    cache 1
    reload
    loadbalance
}}
"""


@pytest.fixture
def scene(apiserver: ApiServer, tmp_path: Path) -> Iterator[Scene]:
    with living_cluster(apiserver, tmp_path) as cluster, running_coredns(tmp_path, answering(BY_UPSTREAM)) as upstream:
        hosts = [word for one in (HOST, FRESH) for word in ("--host", f"{one}={BY_DNSPROXY}")]
        with serving(tmp_path, *hosts, "--upstream", f"127.0.0.1:{upstream.port}") as dnsproxy:
            yield Scene(cluster, dnsproxy, upstream, free_port())


def corefile(cluster: LivingCluster) -> str:
    return cluster.data("coredns")["Corefile"]


def write(cluster: LivingCluster, text: str) -> None:
    cluster.patch("coredns", {"data": {"Corefile": text}})


def answers(coredns: CoreDns) -> tuple[str, ...]:
    """The address of each of these three names."""
    return tuple(coredns.addresses(name)[0] for name in (HOST, FRESH, ELSEWHERE))


def settled(coredns: CoreDns, *wanted: str) -> None:
    """Wait until CoreDNS has read the file, and its cache has expired."""

    def is_settled() -> bool:
        try:
            return answers(coredns) == wanted
        except dns.exception.Timeout:
            return False

    poll_until(is_settled, f"the answers {wanted}", seconds=60)


@contextmanager
def asked_without_a_pause(coredns: CoreDns, name: str = HOST) -> Iterator[list[str]]:
    """Every answer for this name meanwhile, and every failure."""
    seen: list[str] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(0.02):
            try:
                seen.extend(coredns.addresses(name) or ["no address"])
            except (dns.exception.DNSException, OSError) as error:
                seen.append(type(error).__name__)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("theirs", TOOLS)
def test_no_lookup_fails_on_the_way_and_each_leaves_the_others_lines(theirs: Theirs, scene: Scene) -> None:
    cluster = scene.cluster
    original = COREFILE.format(address=BY_THEIRS, target=theirs.target)
    cluster.create(kubeadm(theirs.write(original, [HOST])), manager="test")
    cluster.create_own_service()
    with scene.coredns() as coredns:
        settled(coredns, BY_THEIRS, BY_UPSTREAM, BY_UPSTREAM)
        with asked_without_a_pause(coredns) as seen:
            # Beside each other: theirs keep their hosts, as `rewrite` comes before `forward`.
            installed = scene.run("install")
            assert installed.returncode == 0, installed.stdout + installed.stderr
            settled(coredns, BY_THEIRS, BY_DNSPROXY, BY_UPSTREAM)
            assert set(seen) == {BY_THEIRS}
            # Their controller looks again, and has another host.
            both = corefile(cluster)
            assert theirs.write(both, [HOST]).strip() == both.strip()
            write(cluster, theirs.write(both, [HOST, "web.example.org"]))
            again = scene.run("install")
            assert again.returncode == 0, again.stdout + again.stderr
            settled(coredns, BY_THEIRS, BY_DNSPROXY, BY_UPSTREAM)
            # Their lines go.
            write(cluster, theirs.take_out(corefile(cluster)))
            settled(coredns, BY_DNSPROXY, BY_DNSPROXY, BY_UPSTREAM)
            poll_until(lambda: BY_DNSPROXY in seen, "a lookup after the change", seconds=10)
        assert set(seen) == {BY_THEIRS, BY_DNSPROXY}
        removed = scene.run("uninstall")
        assert removed.returncode == 0, removed.stdout + removed.stderr
        settled(coredns, BY_UPSTREAM, BY_UPSTREAM, BY_UPSTREAM)
    assert corefile(cluster).strip() == original.strip()


@pytest.mark.parametrize("theirs", TOOLS)
def test_an_uninstall_beside_theirs_gives_back_what_they_wrote(theirs: Theirs, scene: Scene) -> None:
    cluster = scene.cluster
    before = theirs.write(COREFILE.format(address=BY_THEIRS, target=theirs.target), [HOST])
    cluster.create(kubeadm(before), manager="test")
    cluster.create_own_service()
    with scene.coredns() as coredns:
        settled(coredns, BY_THEIRS, BY_UPSTREAM, BY_UPSTREAM)
        assert scene.run("install").returncode == 0
        assert scene.run("uninstall").returncode == 0
        settled(coredns, BY_THEIRS, BY_UPSTREAM, BY_UPSTREAM)
    assert corefile(cluster) == before
