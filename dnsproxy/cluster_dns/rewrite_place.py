"""Rewrite place: an import inside the server block of `.` whose files may have `rewrite` lines that work.

The law: CoreDNS asks its plugins in one order, whatever the order of the lines (its plugin.cfg): `rewrite` comes before
`kubernetes` and `forward`, so the place of the import does not matter. Both `rewrite` and `kubernetes` have to be in
the block of `.`, and `kubernetes` has to serve all Services. What `autopath` answers never passes `rewrite`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dnsproxy.cluster_dns.found import FoundCorefile, Hook, Server, Source
from dnsproxy.cluster_dns.image import Program, format_version
from dnsproxy.corefile.cluster_zones import block_zones
from dnsproxy.corefile.model import CorefileError, Directive, Scope, ServerBlock
from dnsproxy.corefile.placing import find_root_block
from dnsproxy.corefile.stanza import SEVERAL_FORWARDS
from dnsproxy.dns.names import BadName, parse_zone

_AUTOPATH: Final = "autopath"
_LIMITS: Final = ("namespaces", "labels", "namespace_labels")
"""Options of `kubernetes` that keep Services from it (plugin/kubernetes/README.md)."""


@dataclass(frozen=True, slots=True)
class RewritePlace:
    """Where the lines would be written, and the cluster domain that they need."""

    hook: Hook
    source: Source
    corefile: FoundCorefile
    domain: str
    """In normal form, without a final dot."""


def find_rewrite_place(server: Server) -> RewritePlace | str:
    """The first import that would take rewrite lines; or why there is none."""
    corefile = server.corefile
    if corefile is None or corefile.value is None or server.program is not Program.COREDNS:
        return f"no Corefile of {server} was found whose block of . has the plugin kubernetes"
    try:
        root = find_root_block(corefile.value)
    except CorefileError as error:
        return str(error)
    hook = next((hook for hook in corefile.hooks if is_rewrite_hook(hook)), None)
    if hook is None or hook.source is None:
        return _why_no_hook(server, corefile)
    domain = next(map(_normal, block_zones(root)), "")
    fault = _fault_of(server, root, _directives(corefile, root)) or _fault_of_domain(domain, root)
    return fault or RewritePlace(hook, hook.source, corefile, domain)


def is_rewrite_hook(hook: Hook) -> bool:
    """Whether an import takes a file with plugins of the block of `.`, early or late."""
    return hook.scope is Scope.ROOT_PLUGINS and hook.source is not None


def _why_no_hook(server: Server, corefile: FoundCorefile) -> str:
    inside = [hook for hook in corefile.hooks if hook.scope is Scope.ROOT_PLUGINS]
    if not inside:
        return f"{server} has no import of files in its server block of ."
    hook = inside[0]
    return f"import {hook.pattern} (line {hook.line}) takes no file of ours: {hook.trouble}"


def _directives(corefile: FoundCorefile, root: ServerBlock) -> list[Directive]:
    files = (file.value for file in corefile.files if file.scope is Scope.ROOT_PLUGINS)
    return [*root.directives, *(one for value in files if value for block in value.blocks for one in block.directives)]


def _fault_of(server: Server, root: ServerBlock, directives: Iterable[Directive]) -> str:
    if server.version is not None and server.version < SEVERAL_FORWARDS:
        return f"CoreDNS {format_version(server.version)} is older than 1.9.4; upgrade it"
    path = next((one for one in directives if one.name == _AUTOPATH), None)
    if path is not None:
        return f"its plugin autopath (line {path.line}) answers names of pods' search lists past every rewrite"
    for directive in root.named("kubernetes"):
        words = [word.text for word in directive.options]
        limit = next((one for one in _LIMITS if one in words), "")
        if limit:
            return f"its plugin kubernetes (line {directive.line}) serves only some Services ({limit})"
    return ""


def _fault_of_domain(domain: str, root: ServerBlock) -> str:
    if domain:
        return ""
    found = root.named("kubernetes")
    if not found:
        return "its server block of . has no plugin kubernetes, so it knows the address of no Service"
    return f"its plugin kubernetes (line {found[0].line}) names no cluster domain that can be read"


def _normal(zone: str) -> str:
    try:
        return parse_zone(zone)
    except BadName:
        return ""
