"""Remarks: what one has to know beside a choice, in sentences without their ends.

The law: each says a fact of the cluster and what follows from it; text from the cluster may be part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dnsproxy.cluster_dns.found import Found, Hook, Server
from dnsproxy.cluster_dns.fragments import Scope
from dnsproxy.cluster_dns.image import Program
from dnsproxy.cluster_dns.owner import Habit

ON_STUB_DOMAINS: Final = (
    "zones have to be named: a stub domain is a zone",
    "a stub domain has no second choice: while no dnsproxy is there, its names do not resolve",
)


def on_caches(found: Found) -> Iterator[str]:
    """Whom pods ask, where that is not the Service."""
    if found.node_local is None:
        return
    cache = found.node_local.server
    at = f" at {', '.join(found.node_local.addresses)}" if found.node_local.addresses else ""
    if found.node_local.passes_on:
        yield f"pods ask {cache}{at}, which passes . on to the cluster's DNS, so it stays as it is"
    else:
        yield f"pods ask {cache}{at}, which does not pass public names on, so the main Corefile stays as it is"


def on_zones(server: Server, hook: Hook) -> Iterator[str]:
    """What a server block of our own cannot have."""
    if hook.scope is not Scope.BLOCKS or server.corefile is None:
        return
    yield "zones have to be named: a server block for . is there already, and CoreDNS takes no second one"
    owner = server.corefile.owner
    link = "but" if owner.habit is Habit.REVERTS else "and"
    yield f"with the method corefile every zone could be had, {link} {owner.remark}"


def on_hooks(server: Server, chosen: Hook | None) -> Iterator[str]:
    """Why other imports than the chosen one take no file of ours; all of them where none was."""
    for hook in server.corefile.hooks if server.corefile else ():
        if hook is chosen or hook.scope is Scope.OTHER or (chosen is not None and hook.scope is not chosen.scope):
            continue
        if hook.trouble:
            yield f"import {hook.pattern} (line {hook.line}) takes no file of ours: {hook.trouble}"
        elif not hook.takes_forward:
            yield (
                f"a file for import {hook.pattern} (line {hook.line}) would do nothing: it stands behind a forward "
                "that takes every query; in front of that it would fit"
            )


def on_loading(server: Server) -> Iterator[str]:
    """What keeps CoreDNS from reading a change, or us from knowing what it can read."""
    if server.corefile is not None and not server.corefile.reloads:
        yield f"there is no reload plugin: {server} has to be restarted to read a change"
    if server.program is Program.COREDNS and server.version is None:
        yield f"the version of CoreDNS is not known from the image {server.image}; 1.9.4 or newer is taken for granted"


def on_sub_path(server: Server) -> Iterator[str]:
    """What keeps a change of the ConfigMap out of running pods."""
    if server.corefile is not None and not server.corefile.updates:
        yield f"{server.corefile.path} is mounted by subPath, so {server} has to be restarted to see a change"
