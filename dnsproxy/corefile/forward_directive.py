"""The meaning of a `forward` directive: its zone, its upstreams and its options.

The law: a directive is read as CoreDNS's plugin/forward/setup.go reads it, including several options on one line, and
nothing of it is lost. A directive whose options are in an imported file cannot be read and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.corefile.lexer import Token
from dnsproxy.corefile.model import CorefileError, Directive, shown
from dnsproxy.corefile.zones import is_at_or_below, normalize_zone, parse_origin
from dnsproxy.dns.wire import DNS_PORT
from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.text import cut

_LONGEST = 200
"""Characters of an option in a message."""
MAXIMUM_UPSTREAMS = 15
"""CoreDNS refuses more upstreams (`max` in plugin/forward/setup.go)."""

# The number of words after an option; an option that is not listed takes the rest of its line.
_WORDS_OF = {
    **dict.fromkeys(["force_tcp", "prefer_udp", "next_on_nodata"], 0),
    **dict.fromkeys(["max_fails", "max_connect_attempts", "max_concurrent", "max_idle_conns", "max_age"], 1),
    **dict.fromkeys(["expire", "read_timeout", "tls_servername", "policy", "doh_method", "source_address"], 1),
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option in the nested block."""

    name: str
    values: tuple[str, ...]
    """As CoreDNS reads them, without quotes."""
    raw: str
    """Name and values as the file has them, separated by single blanks."""

    @property
    def shown(self) -> str:
        """The same for a message."""
        return cut(self.raw, _LONGEST)


@dataclass(frozen=True, slots=True)
class Forward:
    """One `forward` directive."""

    zone: str | None
    """In the form of normalize_zone; None if an environment variable decides."""
    zone_text: str
    upstreams: tuple[str, ...]
    """As CoreDNS reads them: addresses, files, names, or URLs such as `tls://192.0.2.1`."""
    upstreams_raw: tuple[str, ...]
    options: tuple[Option, ...]
    directive: Directive

    def serves(self, zone: str) -> bool:
        """Whether queries for the whole zone come here: it is inside the zone of the forward and not under `except`."""
        if self.zone is None or not is_at_or_below(zone, self.zone):
            return False
        return not any(is_at_or_below(zone, excepted) for excepted in self.excepted())

    def excepted(self) -> list[str]:
        """The zones that its `except` lines exclude."""
        return [normalize_zone(name) for option in self.options if option.name == "except" for name in option.values]

    def endpoints(self) -> list[Endpoint]:
        """The upstreams that are plain addresses."""
        found = [_endpoint_of(upstream) for upstream in self.upstreams]
        return [endpoint for endpoint in found if endpoint is not None]


def parse_forward(directive: Directive) -> Forward:
    """The meaning of a `forward` directive. Raises CorefileError if CoreDNS refuses it, or part of it is imported."""
    words = directive.arguments
    minimum = 2
    if len(words) < minimum:
        raise CorefileError(directive.line, "this forward names no zone or no upstream")
    if directive.unread:
        found = directive.unread[0]
        reason = f"the options of this forward are in another file, {shown(found.pattern)}"
        raise CorefileError(found.line, reason, "copy them here in place of the import")
    try:
        zone = parse_origin(words[0].text).zone
        forward = Forward(
            zone,
            words[0].text,
            tuple(word.text for word in words[1:]),
            tuple(map(written, words[1:])),
            _parse_options(directive),
            directive,
        )
        forward.excepted()
    except ValueError as error:
        raise _at(directive, error) from None
    return forward


def try_forward(directive: Directive) -> Forward | None:
    """The same; None for a directive that cannot be read."""
    try:
        return parse_forward(directive)
    except CorefileError:
        return None


def written(word: Token) -> str:
    """A word as it can be written anywhere: with its quotes, without an attached comment or CR."""
    return word.raw if word.raw.startswith('"') else word.text


def _parse_options(directive: Directive) -> tuple[Option, ...]:
    words = directive.options
    if any(word.text in ("{", "}") for word in words):
        raise CorefileError(directive.line, "this forward has a block inside its block, or words after it")
    options: list[Option] = []
    at = 0
    while at < len(words):
        stop = min(_line_end(words, at), at + 1 + _WORDS_OF.get(words[at].text, len(words)))
        taken = words[at:stop]
        values = tuple(word.text for word in taken[1:])
        options.append(Option(taken[0].text, values, " ".join(map(written, taken))))
        at = stop
    return tuple(options)


def _line_end(words: tuple[Token, ...], at: int) -> int:
    """The index after the last word on the same line."""
    while at + 1 < len(words) and words[at].last_line == words[at + 1].line:
        at += 1
    return at + 1


def _endpoint_of(upstream: str) -> Endpoint | None:
    try:
        return parse_endpoint(upstream.removeprefix("dns://"), default_port=DNS_PORT)
    except ValueError:
        return None


def _at(directive: Directive, error: ValueError) -> CorefileError:
    return error if isinstance(error, CorefileError) else CorefileError(directive.line, f"this forward: {error}")
