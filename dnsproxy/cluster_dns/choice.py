"""Choice: which method of installing fits a cluster, and why, in words.

The law: an edit goes where it stays. A hook that takes a file of ours comes first, because nobody else writes that key;
then what the program reads beside its Corefile; then the Corefile, where its owner leaves edits alone; and what its
owner would undo is printed for the owner. What cannot work is not chosen, and the reason says what would make it work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from dnsproxy.cluster_dns.found import Found, Hook, Server, Source
from dnsproxy.cluster_dns.image import Program, format_version
from dnsproxy.cluster_dns.owner import Form, Habit
from dnsproxy.cluster_dns.servers import STUB_DOMAINS
from dnsproxy.corefile.model import Scope
from dnsproxy.corefile.stanza import SEVERAL_FORWARDS

KEY_STEM: Final = "switchback"
"""Of the keys of ours in other people's ConfigMaps: `switchback.server`."""

_ON_STUB_DOMAINS: Final = (
    "zones have to be named: a stub domain is a zone",
    "a stub domain has no second choice: while no dnsproxy is there, its names do not resolve",
)


class Method(Enum):
    """How a stanza gets into a cluster's DNS."""

    IMPORT = "import"
    COREFILE = "corefile"
    STUB_DOMAINS = "stub-domains"
    PRINT = "print"


@dataclass(frozen=True, slots=True)
class ConfigMapKey:
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
    target: ConfigMapKey | None = None
    """What the method writes; None for `print`, where the owner does."""
    hook: Hook | None = None
    """For `import`: whose file the target becomes. Its scope says whether that holds a server block or plugins."""
    form: Form | None = None
    """For `print`: what to print."""
    needs_zones: bool = False
    """Whether zones have to be named, because there is no way to have `.` by this method."""


def choose_method(found: Found, wanted: Method | None = None) -> Choice:
    """The method for a cluster, or the one that a person wants, with the reason where it cannot work.

    Call it when nothing is wanted any more. It is about the workload that decides about public names: the nodes' cache,
    where that does not pass them on (Found.asked_by_pods).
    """
    server = found.asked_by_pods
    if server is None:
        return Choice(None, _faults(found) or "nothing that serves the cluster's DNS was found")
    if wanted is not None:
        return _BUILDERS[wanted](found, server)
    for build in (_import, _stub_domains):
        choice = build(found, server)
        # What is there and must not be touched is no reason to go on to the next.
        if choice.method is not None or choice.target is not None:
            return replace(choice, target=choice.target if choice.method else None)
    if _is_reverted(server):
        return _print(found, server)
    return _corefile(found, server)


def _import(found: Found, server: Server) -> Choice:
    hook = _usable_hook(server)
    if hook is None or hook.source is None:
        reasons = "; ".join(_on_hooks(server, None))
        return Choice(None, reasons or f"{server} has no import that a file of ours would fit")
    source = hook.source
    made = "" if source.exists else ", which is to be made"
    why = f"{server} imports {hook.pattern} from ConfigMap {source}{made}: a key of our own there is nobody else's"
    said = (
        *_on_caches(found),
        *_on_zones(server, hook),
        *_on_hooks(server, hook),
        *_on_loading(server),
    )
    between = hook.scope is Scope.BLOCKS
    return Choice(Method.IMPORT, why, said, ConfigMapKey(source, hook.key(KEY_STEM)), hook, needs_zones=between)


def _stub_domains(found: Found, server: Server) -> Choice:
    stub = server.stub_domains
    if stub is None:
        return Choice(None, f"{server} reads no stub domains")
    target = ConfigMapKey(stub.source, STUB_DOMAINS)
    if stub.source.immutable:
        return Choice(None, f"ConfigMap {stub.source} is immutable", target=target)
    if not stub.readable:
        return Choice(None, f"ConfigMap {stub.source} holds what is no stubDomains, so nothing is added", target=target)
    why = f"{server} is {server.program.value}, which takes zones and their servers from ConfigMap {stub.source}"
    said = (*_on_caches(found), *_ON_STUB_DOMAINS)
    return Choice(Method.STUB_DOMAINS, why, said, target, needs_zones=True)


def _corefile(found: Found, server: Server) -> Choice:
    corefile = server.corefile
    if corefile is None or corefile.value is None:
        return Choice(None, _faults(found) or f"no Corefile of {server} was found")
    if _takes_one_forward(server):
        version = format_version(server.version)
        return Choice(None, f"CoreDNS {version} takes one forward per server block; upgrade it to 1.9.4 or newer")
    if corefile.source.immutable:
        return Choice(None, f"ConfigMap {corefile.source} is immutable")
    why = f"ConfigMap {corefile.source} has the Corefile of {server}, and {corefile.owner.remark}"
    said = (
        *_on_caches(found),
        *_on_hooks(server, None),
        *_on_loading(server),
        *_on_sub_path(server),
    )
    return Choice(Method.COREFILE, why, said, ConfigMapKey(corefile.source, corefile.key))


def _print(found: Found, server: Server) -> Choice:
    corefile = server.corefile
    said = (*_on_caches(found), *_on_hooks(server, None), *_on_loading(server))
    if corefile is None or corefile.value is None:
        return Choice(None, _faults(found) or f"no Corefile of {server} was found")
    owner = corefile.owner
    why = f"{owner.name} owns ConfigMap {corefile.source} ({owner.evidence}): {owner.remark}"
    if owner.habit is not Habit.REVERTS:
        why = f"ConfigMap {corefile.source} " + ("is immutable" if corefile.source.immutable else "is left to people")
    return Choice(Method.PRINT, why, said, form=owner.form or Form.STANZA)


_BUILDERS: Final[dict[Method, Callable[[Found, Server], Choice]]] = {
    Method.IMPORT: _import,
    Method.STUB_DOMAINS: _stub_domains,
    Method.COREFILE: _corefile,
    Method.PRINT: _print,
}


def _usable_hook(server: Server) -> Hook | None:
    """Inside the block of `.`, where every zone can be had, or between the blocks, where a named zone can."""
    hooks = [hook for hook in (server.corefile.hooks if server.corefile else ()) if not hook.trouble]
    inside = [hook for hook in hooks if hook.scope is Scope.ROOT_PLUGINS and hook.takes_forward]
    between = [hook for hook in hooks if hook.scope is Scope.BLOCKS]
    return next(iter([*([] if _takes_one_forward(server) else inside), *between]), None)


def _takes_one_forward(server: Server) -> bool:
    return server.version is not None and server.version < SEVERAL_FORWARDS


def _is_reverted(server: Server) -> bool:
    """Whether an edit of the Corefile would not last, or not even begin."""
    corefile = server.corefile
    reverts = corefile is not None and (corefile.owner.habit is Habit.REVERTS or corefile.source.immutable)
    return reverts and not _takes_one_forward(server)


def _faults(found: Found) -> str:
    return "; ".join(str(fault) for fault in found.faults)


# What else there is to know: sentences without their ends, which may hold text from the cluster.


def _on_caches(found: Found) -> Iterator[str]:
    """Whom pods ask, where that is not the Service."""
    if found.node_local is None:
        return
    cache = found.node_local.server
    at = f" at {', '.join(found.node_local.addresses)}" if found.node_local.addresses else ""
    if found.node_local.passes_on:
        yield f"pods ask {cache}{at}, which passes . on to the cluster's DNS, so it stays as it is"
    else:
        yield f"pods ask {cache}{at}, which does not pass public names on, so the main Corefile stays as it is"


def _on_zones(server: Server, hook: Hook) -> Iterator[str]:
    """What a server block of our own cannot have."""
    if hook.scope is not Scope.BLOCKS or server.corefile is None:
        return
    yield "zones have to be named: a server block for . is there already, and CoreDNS takes no second one"
    owner = server.corefile.owner
    link = "but" if owner.habit is Habit.REVERTS else "and"
    yield f"with the method corefile every zone could be had, {link} {owner.remark}"


def _on_hooks(server: Server, chosen: Hook | None) -> Iterator[str]:
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


def _on_loading(server: Server) -> Iterator[str]:
    """What keeps CoreDNS from reading a change, or us from knowing what it can read."""
    if server.corefile is not None and not server.corefile.reloads:
        yield f"there is no reload plugin: {server} has to be restarted to read a change"
    if server.program is Program.COREDNS and server.version is None:
        yield f"the version of CoreDNS is not known from the image {server.image}; 1.9.4 or newer is taken for granted"


def _on_sub_path(server: Server) -> Iterator[str]:
    """What keeps a change of the ConfigMap out of running pods."""
    if server.corefile is not None and not server.corefile.updates:
        yield f"{server.corefile.path} is mounted by subPath, so {server} has to be restarted to see a change"
