"""A server block of our own: keys, what it takes over of the block of `.`, and one forward.

The law: names in it are treated as they were in the block of `.`, as far as lines can be copied: where it listens, what
is logged, counted and cached. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dnsproxy.corefile.forward import written
from dnsproxy.corefile.model import Directive
from dnsproxy.corefile.placing import root_port
from dnsproxy.corefile.stanza import Layout, StanzaForward
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.change.refusal import Refusal
from dnsproxy.install.change.routes import Routes, Step

_STEP: Final = "    "
# May stand in several server blocks at once, and mean the same in each.
_TAKEN_OVER: Final = frozenset(["bind", "bufsize", "cache", "errors", "log", "loadbalance", "prometheus"])
_PLACEHOLDER: Final = "__PILLAR__"
"""What node-cache puts addresses for in its own template, and nowhere else."""


def format_block(zones: Sequence[str], forward: StanzaForward, routes: Routes) -> list[str]:
    """The lines of a server block for these zones. Raises Refusal for what only a template can hold."""
    keys = " ".join(f"{zone}{_port_text(routes)}" for zone in zones)
    layout = Layout(_STEP, 2 * _STEP, "\n", "")
    taken = [line for step in _taken_over(routes) for line in format_directive(step.directive, _STEP)]
    lines = [f"{keys} {{", *taken, *forward.lines(layout), "}"]
    if any(_PLACEHOLDER in line for line in lines):
        reason = "its block of . has placeholders, which node-cache fills in in its own template alone"
        raise Refusal(reason, "use --method stub-domains")
    return lines


def format_directive(directive: Directive, indent: str) -> Iterator[str]:
    """The lines of a directive as CoreDNS reads it, indented anew."""
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


def _taken_over(routes: Routes) -> list[Step]:
    """What has options in another file is left out."""
    return [step for step in routes.named(*_TAKEN_OVER) if not step.directive.unread]


def _port_text(routes: Routes) -> str:
    """As the key of the block of `.` has it: without one, CoreDNS's flag -dns.port decides."""
    named = [key.text for key in routes.root.keys if key.origin.zone == ROOT]
    return f":{root_port(routes.root)}" if any(":" in text.rpartition("/")[2] for text in named) else ""
