"""Choice: the method of installation that fits a cluster, and the reason in words.

The law: an edit is made where it lasts. First choice is an import that takes a file of ours, because no other
controller writes that key; then the stubDomains beside the Corefile; then the Corefile, if its owner keeps edits. If
the owner would undo the edit, it is printed for the owner. A method that cannot work is not chosen, and the reason says
what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from dnsproxy.cluster_dns.found import Found, Hook, Server, Source
from dnsproxy.cluster_dns.image import Program, format_version
from dnsproxy.cluster_dns.kube_dns import STUB_DOMAINS
from dnsproxy.cluster_dns.owner import Form, Habit
from dnsproxy.corefile.model import Scope
from dnsproxy.corefile.stanza import SEVERAL_FORWARDS

KEY_STEM: Final = "switchback"
"""Of our keys in ConfigMaps of others: `switchback.server`."""

_ON_STUB_DOMAINS: Final = (
    "zones have to be named: a stub domain is a zone",
    "a stub domain has no fallback: without a running dnsproxy its names do not resolve",
)


class Method(Enum):
    """The way in which a stanza gets into a cluster's DNS."""

    IMPORT = "import"
    COREFILE = "corefile"
    STUB_DOMAINS = "stub-domains"
    PRINT = "print"


@dataclass(frozen=True, slots=True)
class ConfigMapKey:
    """One key of a ConfigMap: the place to write."""

    source: Source
    """The ConfigMap; an install creates it if it does not exist."""
    key: str

    def __str__(self) -> str:
        return f"{self.key} in ConfigMap {self.source}"


@dataclass(frozen=True, slots=True)
class Choice:
    """A method, its reason, and remarks."""

    method: Method | None
    """None if no method fits, or the cluster's DNS was not found; `why` says what is in the way."""
    why: str
    """One sentence without its full stop; may contain text from the cluster."""
    what_else: tuple[str, ...] = ()
    """Sentences without full stops: limits of the method, and what another method would do."""
    target: ConfigMapKey | None = None
    """The key that the method writes; None for `print`."""
    hook: Hook | None = None
    """For `import`: the import that takes the file. Its scope says whether the file has a server block or plugins."""
    form: Form | None = None
    """For `print`: the form to print."""
    needs_zones: bool = False
    """Whether zones have to be named, because this method cannot serve `.`."""


def choose_method(found: Found, wanted: Method | None = None) -> Choice:
    """The method for a cluster, or the wanted method, with the reason if it cannot work.

    `found` has to be complete (nothing wanted). The choice is for the workload that decides about public names
    (Found.asked_by_pods).
    """
    server = found.asked_by_pods
    if server is None:
        return Choice(None, _faults(found) or "nothing that serves the cluster's DNS was found")
    if wanted is not None:
        return _BUILDERS[wanted](found, server)
    for build in (_import, _stub_domains):
        choice = build(found, server)
        # A usable place that must not be changed ends the search: the next method is not tried.
        if choice.method is not None or choice.target is not None:
            return replace(choice, target=choice.target if choice.method else None)
    if _is_reverted(server):
        return _print(found, server)
    return _corefile(found, server)


def _import(found: Found, server: Server) -> Choice:
    hook = _usable_hook(server)
    if hook is None or hook.source is None:
        reasons = "; ".join(_on_hooks(server, None))
        return Choice(None, reasons or f"{server} has no import that would take a file of ours")
    source = hook.source
    made = "" if source.exists else ", which is to be created"
    why = f"{server} imports {hook.pattern} from ConfigMap {source}{made}: no other controller writes a key of ours"
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
        return Choice(None, f"ConfigMap {stub.source} has invalid stubDomains, so nothing is added", target=target)
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
        why = f"ConfigMap {corefile.source} " + ("is immutable" if corefile.source.immutable else "has no other owner")
    return Choice(Method.PRINT, why, said, form=owner.form or Form.STANZA)


_BUILDERS: Final[dict[Method, Callable[[Found, Server], Choice]]] = {
    Method.IMPORT: _import,
    Method.STUB_DOMAINS: _stub_domains,
    Method.COREFILE: _corefile,
    Method.PRINT: _print,
}


def _usable_hook(server: Server) -> Hook | None:
    """An import inside the block of `.`, which serves every zone, or else between the blocks, for named zones."""
    hooks = [hook for hook in (server.corefile.hooks if server.corefile else ()) if not hook.trouble]
    inside = [hook for hook in hooks if hook.scope is Scope.ROOT_PLUGINS and hook.takes_forward]
    between = [hook for hook in hooks if hook.scope is Scope.BLOCKS]
    return next(iter([*([] if _takes_one_forward(server) else inside), *between]), None)


def _takes_one_forward(server: Server) -> bool:
    return server.version is not None and server.version < SEVERAL_FORWARDS


def _is_reverted(server: Server) -> bool:
    """Whether an edit of the Corefile would be undone, or refused because the ConfigMap is immutable."""
    corefile = server.corefile
    reverts = corefile is not None and (corefile.owner.habit is Habit.REVERTS or corefile.source.immutable)
    return reverts and not _takes_one_forward(server)


def _faults(found: Found) -> str:
    return "; ".join(str(fault) for fault in found.faults)


# Remarks: sentences without full stops, which may contain text from the cluster.


def _on_caches(found: Found) -> Iterator[str]:
    """The cache on the nodes, if pods ask it instead of the Service."""
    if found.node_local is None:
        return
    cache = found.node_local.server
    at = f" at {', '.join(found.node_local.addresses)}" if found.node_local.addresses else ""
    if found.node_local.passes_on:
        yield f"pods ask {cache}{at}, which forwards . to the cluster's DNS, so it stays as it is"
    else:
        yield f"pods ask {cache}{at}, which does not forward public names to it, so the main Corefile stays as it is"


def _on_zones(server: Server, hook: Hook) -> Iterator[str]:
    """The limits of a server block of our own."""
    if hook.scope is not Scope.BLOCKS or server.corefile is None:
        return
    yield "zones have to be named: a server block for . is there already, and CoreDNS takes no second one"
    owner = server.corefile.owner
    link = "but" if owner.habit is Habit.REVERTS else "and"
    yield f"the method corefile could serve every zone, {link} {owner.remark}"


def _on_hooks(server: Server, chosen: Hook | None) -> Iterator[str]:
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


def _on_loading(server: Server) -> Iterator[str]:
    """Why CoreDNS may not load a change, or may not understand it."""
    if server.corefile is not None and not server.corefile.reloads:
        yield f"there is no reload plugin: {server} has to be restarted to read a change"
    if server.program is Program.COREDNS and server.version is None:
        yield f"the image {server.image} does not tell the version of CoreDNS; 1.9.4 or newer is assumed"


def _on_sub_path(server: Server) -> Iterator[str]:
    """Why a change of the ConfigMap may not reach running pods."""
    if server.corefile is not None and not server.corefile.updates:
        yield f"{server.corefile.path} is mounted by subPath, so {server} has to be restarted to see a change"
