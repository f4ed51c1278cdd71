"""Choice: which method of installing fits a cluster, and why, in words.

The law: an edit goes where it stays. A hook that takes a file of ours comes first, because nobody else writes that key;
then what the program reads beside its Corefile; then the Corefile, where its owner leaves edits alone; and what its
owner would undo is printed for the owner. What cannot work is not chosen, and the reason says what would make it work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dnsproxy.install.discover.found import Found, FoundCorefile, Hook, Server, Source
from dnsproxy.install.discover.fragments import Scope
from dnsproxy.install.discover.image import Program, format_version
from dnsproxy.install.discover.owner import Form, Habit
from dnsproxy.install.discover.servers import STUB_DOMAINS
from dnsproxy.install.stanza import SEVERAL_FORWARDS

KEY_STEM: Final = "switchback"
"""Of the keys of ours in other people's ConfigMaps: `switchback.server`."""

_ZONES: Final = "zones have to be named"


class Method(Enum):
    """How a stanza gets into a cluster's DNS."""

    IMPORT = "import"
    COREFILE = "corefile"
    STUB_DOMAINS = "stub-domains"
    PRINT = "print"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to write."""

    source: Source
    """The ConfigMap; to be made where it does not exist."""
    key: str

    def __str__(self) -> str:
        return f"{self.key} in ConfigMap {self.source}"


@dataclass(frozen=True, slots=True)
class Choice:
    """The method that fits, and what else there is to know."""

    method: Method | None
    """None where none fits, or nothing is known of the cluster's DNS: `why` says what is in the way."""
    why: str
    """One sentence without its end; may hold text from the cluster."""
    what_else: tuple[str, ...] = ()
    """Sentences without their ends: what the method cannot do, and what another would."""
    target: Target | None = None
    """What the method writes; None for `print`, where the owner does."""
    hook: Hook | None = None
    """For `import`: whose file the target becomes. Its scope says whether that holds a server block or plugins."""
    form: Form | None = None
    """For `print`: what to print."""
    needs_zones: bool = False
    """Whether zones have to be named, because there is no way to have `.` by this method."""


def choose_method(found: Found) -> Choice:
    """The method for a cluster. Call it when nothing is wanted any more."""
    server = found.asked_by_pods
    if server is None:
        faults = "; ".join(str(fault) for fault in found.faults)
        return Choice(None, faults or "nothing that serves the cluster's DNS was found")
    hook = _usable_hook(server)
    if hook is not None and hook.source is not None:
        return _import(found, server, hook, hook.source)
    if server.stub_domains is not None:
        return _stub_domains(found, server)
    return _corefile(found, server)


def _usable_hook(server: Server) -> Hook | None:
    """Inside the block of `.`, where every zone can be had, or between the blocks, where a named zone can."""
    hooks = [hook for hook in (server.corefile.hooks if server.corefile else ()) if not hook.trouble]
    inside = [hook for hook in hooks if hook.scope is Scope.ROOT_PLUGINS and hook.takes_forward]
    between = [hook for hook in hooks if hook.scope is Scope.BLOCKS]
    return next(iter([*([] if _takes_one_forward(server) else inside), *between]), None)


def _import(found: Found, server: Server, hook: Hook, source: Source) -> Choice:
    between = hook.scope is Scope.BLOCKS
    target = Target(source, hook.key(KEY_STEM))
    made = "" if source.exists else ", which is to be made"
    why = f"{server} imports {hook.pattern} from ConfigMap {source}{made}: a key of our own there is nobody else's"
    return Choice(Method.IMPORT, why, tuple(_remarks(found, server, hook)), target, hook, needs_zones=between)


def _stub_domains(found: Found, server: Server) -> Choice:
    stub = server.stub_domains
    if stub is None or not stub.readable or stub.source.immutable:
        fault = (
            "is immutable" if stub and stub.source.immutable else "holds what is no stubDomains, so nothing is added"
        )
        return Choice(None, f"ConfigMap {stub.source if stub else ''} {fault}")
    target = Target(stub.source, STUB_DOMAINS)
    why = f"{server} is {server.program.value}, which takes zones and their servers from ConfigMap {stub.source}"
    return Choice(Method.STUB_DOMAINS, why, tuple(_remarks(found, server, None)), target, needs_zones=True)


def _corefile(found: Found, server: Server) -> Choice:
    corefile = server.corefile
    if corefile is None or corefile.value is None:
        faults = "; ".join(str(fault) for fault in found.faults)
        return Choice(None, faults or f"no configuration of {server} was found")
    if _takes_one_forward(server):
        version = format_version(server.version)
        return Choice(None, f"CoreDNS {version} takes one forward per server block; upgrade it to 1.9.4 or newer")
    remarks = tuple(_remarks(found, server, None))
    owner = corefile.owner
    if owner.habit is Habit.REVERTS:
        why = f"{owner.name} owns ConfigMap {corefile.source} ({owner.evidence}): {owner.remark}"
        return Choice(Method.PRINT, why, remarks, form=owner.form or Form.STANZA)
    if corefile.source.immutable:
        return Choice(Method.PRINT, f"ConfigMap {corefile.source} is immutable", remarks, form=Form.STANZA)
    why = f"ConfigMap {corefile.source} has the Corefile, no import takes a file of ours, and {owner.remark}"
    return Choice(Method.COREFILE, why, remarks, Target(corefile.source, corefile.key))


def _takes_one_forward(server: Server) -> bool:
    return server.version is not None and server.version < SEVERAL_FORWARDS


def _remarks(found: Found, server: Server, hook: Hook | None) -> Iterator[str]:
    yield from _remarks_on_caches(found)
    corefile = server.corefile
    if hook is not None and hook.scope is Scope.BLOCKS:
        yield f"{_ZONES}: a server block for . is there already, and CoreDNS takes no second one"
        if corefile is not None:
            yield f"with the method corefile every zone could be had, and {corefile.owner.remark}"
    if hook is None and server.stub_domains is not None:
        yield f"{_ZONES}: a stub domain is a zone"
        yield "a stub domain has no second choice: while no dnsproxy is there, its names do not resolve"
    for other in corefile.hooks if corefile else ():
        if hook is None or other.scope is hook.scope:
            yield from _remarks_on_hook(other, chosen=other is hook)
    if corefile is not None and server.stub_domains is None:
        yield from _remarks_on_loading(server, corefile, hook)


def _remarks_on_caches(found: Found) -> Iterator[str]:
    if found.node_local is None:
        return
    cache = found.node_local.server
    at = f" at {', '.join(found.node_local.addresses)}" if found.node_local.addresses else ""
    if found.node_local.passes_on:
        yield f"pods ask {cache}{at}, which passes . on to the cluster's DNS, so it stays as it is"
    else:
        yield f"pods ask {cache}{at}, which does not pass public names on, so the main Corefile stays as it is"


def _remarks_on_hook(hook: Hook, *, chosen: bool) -> Iterator[str]:
    if chosen or hook.scope is Scope.OTHER:
        return
    if hook.trouble:
        yield f"import {hook.pattern} (line {hook.line}) takes no file of ours: {hook.trouble}"
    elif not hook.takes_forward:
        yield (
            f"a file for import {hook.pattern} (line {hook.line}) would do nothing: it stands behind a forward that "
            "takes every query; in front of that it would fit"
        )


def _remarks_on_loading(server: Server, corefile: FoundCorefile, hook: Hook | None) -> Iterator[str]:
    if not corefile.reloads:
        yield f"there is no reload plugin: {server} has to be restarted to read a change"
    elif not corefile.updates and hook is None:
        yield f"{corefile.path} is mounted by subPath, so {server} has to be restarted to see a change"
    if server.program is Program.COREDNS and server.version is None:
        yield f"the version of CoreDNS is not known from the image {server.image}; 1.9.4 or newer is taken for granted"
