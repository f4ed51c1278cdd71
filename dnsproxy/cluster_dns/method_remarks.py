"""Remarks on methods: their limits in a cluster, and why another method was not chosen.

The law: sentences without full stops, which may contain text from the cluster. Tested in test_method_choice.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from dnsproxy.cluster_dns.found import Found, Hook, Server
from dnsproxy.cluster_dns.image import Program
from dnsproxy.cluster_dns.owner import Habit
from dnsproxy.cluster_dns.rewrite_place import find_rewrite_place, is_rewrite_hook
from dnsproxy.corefile.model import Scope


def on_caches(found: Found) -> Iterator[str]:
    """The cache on the nodes, if pods ask it instead of the Service."""
    if found.node_local is None:
        return
    cache = found.node_local.server
    at = f" at {', '.join(found.node_local.addresses)}" if found.node_local.addresses else ""
    if found.node_local.passes_on:
        yield f"pods ask {cache}{at}, which forwards . to the cluster's DNS, so it stays as it is"
    else:
        yield f"pods ask {cache}{at}, which does not forward public names to it, so the main Corefile stays as it is"


def on_zones(server: Server, hook: Hook) -> Iterator[str]:
    """The limits of a server block of our own."""
    if hook.scope is not Scope.BLOCKS or server.corefile is None:
        return
    yield "zones have to be named: a server block for . is there already, and CoreDNS takes no second one"
    owner = server.corefile.owner
    link = "but" if owner.habit is Habit.REVERTS else "and"
    yield f"the method corefile could serve every zone, {link} {owner.remark}"


def on_hooks(server: Server, chosen: Hook | None) -> Iterator[str]:
    """Why the other imports take no file of ours; all imports if none was chosen."""
    for hook in server.corefile.hooks if server.corefile else ():
        if hook is chosen or hook.scope is Scope.OTHER or (chosen is not None and hook.scope is not chosen.scope):
            continue
        if hook.trouble:
            yield f"import {hook.pattern} (line {hook.line}) takes no file of ours: {hook.trouble}"
        elif not hook.takes_forward:
            yield (
                f"a file for import {hook.pattern} (line {hook.line}) would have no effect: the import comes after a "
                "forward that takes every query; before it the file would fit"
            )


def on_rewrites(server: Server) -> Iterator[str]:
    """Why rewrite lines would not work in an import that comes too late for a forward."""
    place = find_rewrite_place(server)
    late = [hook for hook in (server.corefile.hooks if server.corefile else ()) if is_rewrite_hook(hook)]
    if late and isinstance(place, str):
        yield f"rewrite lines in a file for import {late[0].pattern} would not work either: {place}"


def on_loading(server: Server) -> Iterator[str]:
    """Why CoreDNS may not load a change, or may not understand it."""
    if server.corefile is not None and not server.corefile.reloads:
        yield f"there is no reload plugin: {server} has to be restarted to read a change"
    if server.program is Program.COREDNS and server.version is None:
        yield f"the image {server.image} does not tell the version of CoreDNS; 1.9.4 or newer is assumed"


def on_sub_path(server: Server) -> Iterator[str]:
    """Why a change of the ConfigMap may not reach running pods."""
    if server.corefile is not None and not server.corefile.updates:
        yield f"{server.corefile.path} is mounted by subPath, so {server} has to be restarted to see a change"
