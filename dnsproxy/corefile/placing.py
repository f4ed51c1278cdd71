"""The place of the stanza: the server block of the root zone, and the position among its forwards.

The law: CoreDNS tries the forwards of a block in the order of the file. Ours is written directly before the forward
that serves its zone today, and never before a forward for a smaller zone, so queries for other names take the same path
as before. Where none serves it, and nothing else may, ours is the last word of the block.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from dnsproxy.corefile.forward_directive import Forward, parse_forward, written
from dnsproxy.corefile.model import Corefile, CorefileError, Key, ServerBlock, listed, shown
from dnsproxy.corefile.stanza import Layout
from dnsproxy.corefile.zones import DNS_SCHEME, ROOT, environment_names, is_at_or_below, normalize_zone
from dnsproxy.dns.wire import DNS_PORT

_DEFAULT_STEP = "    "

_FORWARDS_NOTHING: Final = frozenset(
    [
        *("acl", "any", "auto", "autopath", "azure", "bind", "bufsize", "cache", "cancel", "chaos", "clouddns"),
        *("debug", "dns64", "dnssec", "dnstap", "errors", "etcd", "file", "forward", "geoip", "header", "health"),
        *("hosts", "k8s_external", "kubernetes", "loadbalance", "local", "log", "loop", "metadata", "minimal"),
        *("multisocket", "nomad", "nsid", "on", "pprof", "prometheus", "ready", "reload", "rewrite", "root", "route53"),
        *("secondary", "sign", "template", "timeouts", "tls", "trace", "transfer", "tsig", "view"),
    ]
)
"""Plugins of CoreDNS (plugin.cfg) that answer before `forward`, or nothing: a forward takes no name away from them."""


@dataclass(frozen=True, slots=True)
class Site:
    """The place for a stanza."""

    block: ServerBlock
    index: int
    """Of the word after the stanza."""
    originals: tuple[tuple[str, Forward | None], ...]
    """Each zone with the forward that serves it today, if one does; an inner zone precedes the zones around it."""


def find_site(corefile: Corefile, zones: Sequence[str], *, forwarded: Collection[str] = ()) -> Site:
    """The place for a stanza in a Corefile that has none. Raises CorefileError if no place is right.

    `forwarded`: zones that need a forward, in the form of normalize_zone, because they had one before.
    """
    block = find_root_block(corefile)
    forwards = [parse_forward(directive) for directive in block.named("forward")]
    if not forwards:
        _check_no_proxy(block)
    inner_first = sorted(dict.fromkeys(zones), key=lambda zone: -len(labels_of(zone)))
    originals = [(zone, _forward_for(zone, forwards)) for zone in inner_first]
    for zone, original in originals:
        if original is None:
            _check_forwards_nothing(zone, forwards, block, forwarded)
    index = min((original.directive.index for _, original in originals if original), default=block.closing or 0)
    for zone, original in originals:
        _check_served_here(zone, corefile, block)
        _check_hides_none(zone, original, [one for one in forwards if one.directive.index >= index], zones)
    return Site(block, index, tuple(originals))


def find_root_block(corefile: Corefile) -> ServerBlock:
    """The server block for `.` over plain DNS on port 53, or else on another port. Raises CorefileError."""
    found = [block for block in corefile.blocks if any(_is_root(key) for key in block.keys)]
    usual = [block for block in found if any(_is_root(key) and key.origin.port == DNS_PORT for key in block.keys)]
    candidates = usual or found
    if not candidates:
        _check_known_keys(corefile)
        reason = "no server block serves . over plain DNS"
        raise CorefileError(1, reason, "the stanza needs one such as `.:53 { ... }`" + _or_elsewhere(corefile.imports))
    if len(candidates) > 1:
        lines = listed([block.line for block in candidates])
        reason = f"several server blocks serve . (lines {lines}), and it is unknown which of them pods ask"
        raise CorefileError(candidates[1].line, reason, "keep one of them, or write the stanza by hand")
    if candidates[0].imported:
        reason = "the server block of . comes from a snippet"
        raise CorefileError(candidates[0].line, reason, "copy it here in place of the import")
    return candidates[0]


def _check_known_keys(corefile: Corefile) -> None:
    """Raises CorefileError for a key that may be that of the root: an environment variable decides."""
    keys = [key for block in corefile.blocks for key in block.keys if key.origin.zone is None]
    if keys:
        names = listed([f"${name}" for name in environment_names(keys[0].text)])
        reason = (
            f"the key {shown(keys[0].text)} depends on {names} of CoreDNS's environment, so its zone or port is unknown"
        )
        raise CorefileError(keys[0].token.line, reason, "write the value here, such as `.:53 {`, or the stanza by hand")


def _check_no_proxy(block: ServerBlock) -> None:
    """Raises CorefileError for the plugin that `forward` replaced: CoreDNS 1.5.0 and newer do not load it."""
    for directive in block.named("proxy"):
        words = " ".join(written(word) for word in directive.arguments)
        reason = "the server block of . forwards with `proxy`, which CoreDNS 1.5.0 removed"
        raise CorefileError(
            directive.line, reason, f"replace that line by `forward {words}`, with the options of forward"
        )


def root_port(block: ServerBlock) -> int:
    """The port on which the block serves the root zone."""
    ports = [key.origin.port for key in block.keys if _is_root(key)]
    return DNS_PORT if DNS_PORT in ports else ports[0]


def other_keys(corefile: Corefile, block: ServerBlock) -> list[Key]:
    """The keys of other blocks that take names away from a block: those for plain DNS on the same port."""
    port = root_port(block)
    keys = [key for other in corefile.blocks if other is not block for key in other.keys]
    return [key for key in keys if (key.origin.scheme, key.origin.port) == (DNS_SCHEME, port) and key.origin.zone]


def other_forwarding(block: ServerBlock) -> str:
    """What in a block may forward names that none of its own forwards serves; empty if nothing does."""
    if block.imports:
        return "an imported file may have one"
    variable = next((one.line for one in block.named("forward") if parse_forward(one).zone is None), None)
    if variable is not None:
        return f"the zone of the forward of line {variable} is a variable"
    other = next((one for one in block.directives if one.name not in _FORWARDS_NOTHING), None)
    return f"{shown(other.name)} (line {other.line}) may answer what no forward serves" if other else ""


def find_layout(corefile: Corefile, site: Site) -> Layout:
    """The indentation and line ends of the surroundings."""
    gap = corefile.gap(site.index)
    line_end = gap.rfind("\n")
    # If the directive is on the line of the opening brace, the stanza begins there with its comment, without
    # indentation.
    trailing = gap[line_end + 1 :] if line_end >= 0 else ""
    outer = corefile.gap(site.block.keys[0].index).rpartition("\n")[2]
    indent = trailing
    if site.index == site.block.closing and line_end >= 0:
        indent = _indent_of_last(corefile, site.block) or outer + _DEFAULT_STEP
    step = indent.removeprefix(outer) or _DEFAULT_STEP
    return Layout(indent, _option_indent(corefile, site, indent) or indent + step, _newline(corefile, site), trailing)


def labels_of(zone: str) -> list[str]:
    """The labels of a zone; empty for the root."""
    return [label for label in zone.split(".") if label]


def _forward_for(zone: str, forwards: Sequence[Forward]) -> Forward | None:
    normal = normalize_zone(zone)
    return next((forward for forward in forwards if forward.serves(normal)), None)


def _check_forwards_nothing(
    zone: str, forwards: Sequence[Forward], block: ServerBlock, forwarded: Collection[str]
) -> None:
    """Raises CorefileError unless CoreDNS refuses the names of a zone that no plugin before `forward` answers."""
    normal = normalize_zone(zone)
    # Names under `except` are no dnsproxy's.
    may_serve = any(forward.zone is not None and is_at_or_below(normal, forward.zone) for forward in forwards)
    other = other_forwarding(block) or ("it ends without a brace" if block.closing is None else "")
    if normal not in forwarded and not may_serve and not other:
        return
    what = f"no forward of this server block serves {zone}" if forwards else "the server block of . has no forward"
    reason = f"{what}, so there are no upstreams to fall back on" + (f"; {other}" if other else "")
    remedy = f"add `forward {zone} UPSTREAM` to it" + (", or choose another --zone" if forwards else "")
    raise CorefileError(block.line, reason, remedy + _or_elsewhere(block.imports))


def _check_served_here(zone: str, corefile: Corefile, block: ServerBlock) -> None:
    """CoreDNS gives a query to the block with the longest matching key alone."""
    normal = normalize_zone(zone)
    ours = [len(key.origin.zone) for key in block.keys if key.origin.zone and is_at_or_below(normal, key.origin.zone)]
    for key in other_keys(corefile, block):
        if key.origin.zone and is_at_or_below(normal, key.origin.zone) and len(key.origin.zone) >= max(ours):
            reason = f"{zone} is served by the server block of {shown(key.text)}, and never comes to the block of ."
            raise CorefileError(key.token.line, reason, "choose another --zone, or put the forward into that block")


def _check_hides_none(zone: str, original: Forward | None, later: Sequence[Forward], zones: Sequence[str]) -> None:
    """A stanza for several zones precedes the first of their forwards, and so may precede unrelated forwards."""
    normal = normalize_zone(zone)
    named = {normalize_zone(other) for other in zones}
    for forward in later[: later.index(original) if original else None]:
        if forward.zone is None or (is_at_or_below(forward.zone, normal) and forward.zone not in named):
            reason = f"a stanza for {zone} would come before `forward {forward.zone_text}` and take its queries"
            raise CorefileError(forward.directive.line, reason, f"add --zone {forward.zone_text}, or name fewer zones")


def _is_root(key: Key) -> bool:
    return key.origin.zone == ROOT and key.origin.scheme == DNS_SCHEME


def _or_elsewhere(imports: Sequence[object]) -> str:
    return ", or install into the imported file that has it" if imports else ""


def _option_indent(corefile: Corefile, site: Site, indent: str) -> str | None:
    """The indentation of the first nested option in the block, if it is deeper than that of the directives."""
    start = site.block.keys[0].index
    stop = site.block.closing or len(corefile.tokens)
    for index in range(start + 1, stop):
        previous, gap = corefile.tokens[index - 1], corefile.gap(index)
        found = gap.rpartition("\n")[2]
        if previous.text == "{" and "\n" in gap and found.startswith(indent) and found != indent:
            return found
    return None


def _indent_of_last(corefile: Corefile, block: ServerBlock) -> str:
    """The indentation of the last directive that begins a line of the block."""
    gaps = [gap for one in block.entries if "\n" in (gap := corefile.gap(one.index))]
    return gaps[-1].rpartition("\n")[2] if gaps else ""


def _newline(corefile: Corefile, site: Site) -> str:
    """The first line end after the place, or else the first in the file."""
    gaps = [corefile.gap(index) for index in (*range(site.index, len(corefile.tokens) + 1), *range(site.index))]
    for gap in gaps:
        if "\n" in gap:
            return "\r\n" if gap.partition("\n")[0].endswith("\r") else "\n"
    return "\n"
