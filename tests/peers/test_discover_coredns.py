"""The real CoreDNS confirms discovery's verdict on a hook: whether CoreDNS uses our file there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dnsproxy.cluster_dns.found import Hook
from dnsproxy.cluster_dns.method_choice import KEY_STEM
from dnsproxy.corefile.model import Scope
from tests.kit.coredns import Refused, running_coredns
from tests.kit.manifest_cluster import discover, manifests
from tests.kit.ports import free_port
from tests.peers.test_corefile_coredns import BY_DNSPROXY, BY_UPSTREAM, NAME, Servers, endpoint_of, localized, servers

__all__ = ["servers"]

pytestmark = pytest.mark.peer("coredns")


def hook_of(name: str, scope: Scope) -> tuple[str, Hook]:
    """The Corefile of a cluster, and its hook with that scope."""
    server = discover(manifests(name)).server
    assert server is not None
    assert server.corefile is not None
    (hook,) = [one for one in server.corefile.hooks if one.scope is scope]
    return server.corefile.text, hook


def answered(corefile: str, hook: Hook, file: str, servers: Servers, folder: Path) -> list[str]:
    """The answering server, with our file at the hook and the distribution's files in the same folder."""
    custom = folder / "custom"
    custom.mkdir(exist_ok=True)
    (custom / hook.key(KEY_STEM)).write_text(file)
    port = free_port()
    words = {"/etc/resolv.conf": endpoint_of(servers.upstream), "/etc/coredns/NodeHosts": str(folder / "none")}
    for suffix in ("override", "server"):
        words |= dict.fromkeys([f"/etc/coredns/custom/*.{suffix}", f"custom/*.{suffix}"], f"{custom}/*.{suffix}")
    with running_coredns(folder, localized(corefile, port, words), port=port) as coredns:
        return coredns.addresses(NAME)


@pytest.mark.parametrize("name", ["aks", "cozystack", "doks", "k3s", "k3s-2025", "kapsule"])
def test_a_forward_at_a_hook_is_asked_where_discovery_says_so(name: str, servers: Servers, tmp_path: Path) -> None:
    corefile, hook = hook_of(name, Scope.ROOT_PLUGINS)
    file = f"forward . {endpoint_of(servers.dnsproxy)} {endpoint_of(servers.upstream)} {{\n  policy sequential\n}}\n"
    expected = BY_DNSPROXY if hook.takes_forward else BY_UPSTREAM
    assert answered(corefile, hook, file, servers, tmp_path) == [expected]


def test_both_kinds_of_hook_are_among_them() -> None:
    assert hook_of("k3s-2025", Scope.ROOT_PLUGINS)[1].takes_forward
    assert not hook_of("k3s", Scope.ROOT_PLUGINS)[1].takes_forward


@pytest.mark.parametrize("name", ["aks", "doks", "k3s", "k3s-2025", "kapsule"])
def test_a_block_at_a_hook_between_the_blocks_is_asked(name: str, servers: Servers, tmp_path: Path) -> None:
    corefile, hook = hook_of(name, Scope.BLOCKS)
    forward = f"forward . {endpoint_of(servers.dnsproxy)}"
    assert answered(corefile, hook, f"shop.example.org {{\n  {forward}\n}}\n", servers, tmp_path) == [BY_DNSPROXY]


def test_a_second_block_for_the_root_is_refused_which_is_why_zones_are_needed(servers: Servers, tmp_path: Path) -> None:
    corefile, hook = hook_of("k3s", Scope.BLOCKS)
    with pytest.raises(Refused, match="already defined"):
        answered(corefile, hook, f". {{\n  forward . {endpoint_of(servers.dnsproxy)}\n}}\n", servers, tmp_path)
