"""Choice: the method of installation that fits a cluster, and the reason in words.

The law: an edit is made where it lasts. First choice is an import that takes a file of ours, because no other
controller writes that key; then the stubDomains beside the Corefile; then the Corefile, if its owner keeps edits. If
the owner would undo the edit, an import that takes a file of ours too late for a `forward` still takes `rewrite` lines;
without one, the edit is printed for the owner. A method that cannot work is not chosen, and the reason says what it
lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from dnsproxy.cluster_dns.found import Found, Hook, Server, Source
from dnsproxy.cluster_dns.image import format_version
from dnsproxy.cluster_dns.kube_dns import STUB_DOMAINS
from dnsproxy.cluster_dns.method_remarks import on_caches, on_hooks, on_loading, on_rewrites, on_sub_path, on_zones
from dnsproxy.cluster_dns.owner import Form, Habit
from dnsproxy.cluster_dns.rewrite_place import find_rewrite_place
from dnsproxy.corefile.markers import is_marked
from dnsproxy.corefile.model import Scope
from dnsproxy.corefile.rewrite_lines import MOST
from dnsproxy.corefile.stanza import SEVERAL_FORWARDS

KEY_STEM: Final = "switchback"
"""Of our keys in ConfigMaps of others: `switchback.server`."""

_ON_REWRITES: Final = (
    f"CoreDNS answers at most {MOST} names with the ClusterIPs of their Services, and other types than A and AAAA with "
    "nothing",
    "the owner can lift that limit: put the import before the forward, or take the stanza of --method print",
)
_ON_STUB_DOMAINS: Final = (
    "zones have to be named: a stub domain is a zone",
    "a stub domain has no fallback: without a running dnsproxy its names do not resolve",
)


class Method(Enum):
    """The way in which a stanza gets into a cluster's DNS."""

    IMPORT = "import"
    COREFILE = "corefile"
    STUB_DOMAINS = "stub-domains"
    OVERRIDE_REWRITES = "override-rewrites"
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
    """For `import` and `override-rewrites`: the import that takes the file. Its scope says whether the file has a
    server block or plugins."""
    domain: str = ""
    """For `override-rewrites`: the cluster domain, without a final dot."""
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
    if not _is_reverted(server):
        return _corefile(found, server)
    rewrites = _override_rewrites(found, server)
    # The owner was given a stanza already.
    printed = server.corefile is not None and is_marked(server.corefile.text)
    return rewrites if rewrites.method is not None and not printed else _print(found, server)


def _import(found: Found, server: Server) -> Choice:
    hook = _usable_hook(server)
    if hook is None or hook.source is None:
        reasons = "; ".join(on_hooks(server, None))
        return Choice(None, reasons or f"{server} has no import that would take a file of ours")
    source = hook.source
    made = "" if source.exists else ", which is to be created"
    why = f"{server} imports {hook.pattern} from ConfigMap {source}{made}: no other controller writes a key of ours"
    said = (
        *on_caches(found),
        *on_zones(server, hook),
        *on_hooks(server, hook),
        *on_loading(server),
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
        keys = " and ".join(stub.unreadable)
        return Choice(None, f"ConfigMap {stub.source} has an invalid {keys}, so nothing is added", target=target)
    why = f"{server} is {server.program.value}, which takes zones and their servers from ConfigMap {stub.source}"
    said = (*on_caches(found), *_ON_STUB_DOMAINS)
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
        *on_caches(found),
        *on_hooks(server, None),
        *on_loading(server),
        *on_sub_path(server),
    )
    return Choice(Method.COREFILE, why, said, ConfigMapKey(corefile.source, corefile.key))


def _override_rewrites(found: Found, server: Server) -> Choice:
    place = find_rewrite_place(server)
    if isinstance(place, str):
        return Choice(None, place)
    hook, source, corefile = place.hook, place.source, place.corefile
    made = "" if source.exists else ", which is to be created"
    late = "" if hook.takes_forward else " after its forward, where rewrite lines still work"
    owner = corefile.owner
    reverts = f"; {owner.name} owns the Corefile: {owner.remark}" if owner.habit is Habit.REVERTS else ""
    why = f"{server} imports {hook.pattern} from ConfigMap {source}{made}{late}{reverts}"
    said = (*on_caches(found), *_ON_REWRITES, *on_loading(server))
    target = ConfigMapKey(source, hook.key(KEY_STEM))
    return Choice(Method.OVERRIDE_REWRITES, why, said, target, hook, domain=place.domain)


def _print(found: Found, server: Server) -> Choice:
    corefile = server.corefile
    said = (*on_caches(found), *on_hooks(server, None), *on_rewrites(server), *on_loading(server))
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
    Method.OVERRIDE_REWRITES: _override_rewrites,
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
