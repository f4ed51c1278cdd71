"""Formats a server block for named zones: keys, the directives copied from the block of `.`, and one forward.

The law: the block treats its names as the block of `.` did, as far as lines can be copied: addresses to listen on,
logging, metrics and caching. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.routes import PlacedDirective, Routes
from dnsproxy.corefile.forward_directive import written
from dnsproxy.corefile.model import Directive
from dnsproxy.corefile.placing import root_port
from dnsproxy.corefile.stanza import Layout, StanzaForward
from dnsproxy.corefile.zones import ROOT

_STEP: Final = "    "
# May stand in several server blocks at once, with the same meaning in each.
_COPIED: Final = frozenset(["bind", "bufsize", "cache", "errors", "log", "loadbalance", "prometheus"])
_PLACEHOLDER: Final = "__PILLAR__"
"""node-cache replaces it by addresses in its own template, and nowhere else."""


def format_block(zones: Sequence[str], forward: StanzaForward, routes: Routes) -> list[str]:
    """The lines of a server block for these zones. Raises ChangeRefused for placeholders of a template."""
    keys = " ".join(f"{zone}{_port_text(routes)}" for zone in zones)
    layout = Layout(_STEP, 2 * _STEP, "\n", "")
    copied = [line for placed in _copied(routes) for line in format_directive(placed.directive, _STEP)]
    lines = [f"{keys} {{", *copied, *forward.lines(layout), "}"]
    if any(_PLACEHOLDER in line for line in lines):
        reason = "its block of . has placeholders, which node-cache replaces only in its own template"
        raise ChangeRefused(reason, "use --method stub-domains")
    return lines


def format_directive(directive: Directive, indent: str) -> Iterator[str]:
    """The lines of a directive as CoreDNS reads it, with new indentation."""
    line = [directive.name]
    depth, last = 0, directive.line
    for word in directive.words:
        if word.line > last or word.text == "}":
            if line:
                yield indent + _STEP * depth + " ".join(line)
            line = []
        if word.text == "}":
            depth -= 1
        line.append(written(word))
        if word.text in ("{", "}"):
            yield indent + _STEP * depth + " ".join(line)
            line = []
        if word.text == "{":
            depth += 1
        last = word.last_line
    if line:
        yield indent + _STEP * depth + " ".join(line)


def _copied(routes: Routes) -> list[PlacedDirective]:
    """Directives with options in another file are excluded."""
    return [placed for placed in routes.named(*_COPIED) if not placed.directive.unread]


def _port_text(routes: Routes) -> str:
    """The port as the key of the block of `.` has it: without one, CoreDNS's flag -dns.port decides."""
    named = [key.text for key in routes.root.keys if key.origin.zone == ROOT]
    return f":{root_port(routes.root)}" if any(":" in text.rpartition("/")[2] for text in named) else ""
