"""Reduces a Corefile to a form that a CoreDNS of this computer can load without side effects, as a trial of a change.

The law: the trial keeps only plugins that open nothing, send nothing at the start and need no cluster, and every block
listens on loopback only. The Corefiles before and after a change are reduced in the same way. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dnsproxy.cluster_dns.found import FoundCorefile, ImportedFile
from dnsproxy.cluster_dns.method_choice import Choice
from dnsproxy.corefile.model import Corefile, CorefileError, Directive, Scope, ServerBlock
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block
from dnsproxy.corefile.zones import DNS_SCHEME
from dnsproxy.install.change.config_map import Edits
from dnsproxy.install.change.server_block import format_directive

_KEPT: Final = frozenset(
    [
        *("acl", "any", "bufsize", "cache", "cancel", "chaos", "dns64", "errors", "forward", "header", "hosts"),
        *("loadbalance", "local", "log", "minimal", "nsid", "rewrite", "template", "timeouts", "whoami"),
    ]
)


@dataclass(frozen=True, slots=True)
class Trial:
    """A Corefile in the form for a trial."""

    blocks: tuple[tuple[ServerBlock, tuple[Directive, ...]], ...]
    """Each with the directives that it imports."""

    @property
    def ports(self) -> list[int]:
        """The ports of its blocks, each once."""
        return list(dict.fromkeys(port for block, _ in self.blocks for _, port in _names(block)))

    def format(self, ports: Mapping[int, int]) -> str:
        """Its text with other ports."""
        return "".join(f"{line}\n" for block, extra in self.blocks for line in _lines(block, extra, ports))


def make_trial(corefile: FoundCorefile) -> Trial:
    """The trial of a Corefile with its imported files. Raises CorefileError."""
    value = parse_corefile(corefile.text)
    root = find_root_block(value)
    plugins = tuple(directive for file in corefile.files for directive in _plugins(file))
    others = [block for file in corefile.files if file.scope is Scope.BLOCKS for block in _parse(file).blocks]
    blocks = [(block, plugins if block is root else ()) for block in value.blocks]
    return Trial((*blocks, *((block, ()) for block in others)))


def after(corefile: FoundCorefile, edits: Edits, choice: Choice) -> FoundCorefile:
    """A Corefile and its imported files after the edits."""
    texts = {(str(change.source), entry.name): entry.new or "" for change in edits.changes for entry in change.data}
    files = [replace(file, text=texts.get((str(file.source), file.key), file.text)) for file in corefile.files]
    hook, target = choice.hook, choice.target
    if hook is not None and target is not None:
        path = f"{hook.path.rpartition('/')[0]}/{target.key}"
        text = texts.get((str(target.source), target.key), "")
        if path not in [file.path for file in files]:
            files.append(ImportedFile(path, target.source, target.key, text, hook.scope))
    own = texts.get((str(corefile.source), corefile.key), corefile.text)
    return replace(corefile, text=own, files=tuple(files))


def _lines(block: ServerBlock, extra: tuple[Directive, ...], ports: Mapping[int, int]) -> Iterator[str]:
    names = _names(block)
    if not names:
        return
    yield " ".join(f"{zone}:{ports[port]}" for zone, port in names) + " {"
    yield "    bind 127.0.0.1"
    for directive in (*block.directives, *extra):
        if directive.name in _KEPT and not directive.unread:
            yield from format_directive(directive, "    ")
    yield "}"


def _names(block: ServerBlock) -> list[tuple[str, int]]:
    """Zones and ports of plain DNS; names with environment variables and names in CIDR notation are excluded."""
    return [
        (key.origin.zone, key.origin.port)
        for key in block.keys
        if key.origin.scheme == DNS_SCHEME and key.origin.zone and "/" not in key.origin.zone
    ]


def _plugins(file: ImportedFile) -> tuple[Directive, ...]:
    if file.scope is not Scope.ROOT_PLUGINS:
        return ()
    return tuple(directive for block in _parse(file).blocks[:1] for directive in block.directives)


def _parse(file: ImportedFile) -> Corefile:
    try:
        return parse_corefile(file.text, file.scope)
    except CorefileError as error:
        raise CorefileError(error.line, f"{file.key}: {error.reason}", error.remedy) from None
