"""What a `forward` directive says: the zone it takes, its upstreams, its options.

The law: it is read the way CoreDNS's plugin/forward/setup.go reads it, options on one line included, and nothing that
it says is lost; what an imported file says cannot be read, and such a directive is refused. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.corefile.lexer import Token
from dnsproxy.corefile.model import CorefileError, Directive, shown
from dnsproxy.corefile.zones import DNS_PORT, is_at_or_below, normalize_zone, parse_origin
from sidecar.endpoints import Endpoint, parse_endpoint

MAXIMUM_UPSTREAMS = 15
"""CoreDNS refuses more (`max` in plugin/forward/setup.go)."""

# How many words an option takes; one that is not listed takes the rest of its line.
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
    """As CoreDNS reads them."""
    raw: str
    """Name and values as a file has them, one blank between."""


@dataclass(frozen=True, slots=True)
class Forward:
    """One `forward` directive."""

    zone: str | None
    """In the form of normalize_zone; None where an environment variable decides."""
    zone_text: str
    upstreams: tuple[str, ...]
    """As CoreDNS reads them: addresses, files, names, `tls://` and the like."""
    upstreams_raw: tuple[str, ...]
    options: tuple[Option, ...]
    directive: Directive

    def serves(self, zone: str) -> bool:
        """Whether a question for the whole zone comes here: inside its own zone, and not under its `except`."""
        if self.zone is None or not is_at_or_below(zone, self.zone):
            return False
        return not any(is_at_or_below(zone, excepted) for excepted in self.excepted())

    def excepted(self) -> list[str]:
        """The zones that its `except` lines leave out."""
        return [normalize_zone(name) for option in self.options if option.name == "except" for name in option.values]

    def endpoints(self) -> list[Endpoint]:
        """Its upstreams that are plain addresses."""
        found = [_endpoint_of(upstream) for upstream in self.upstreams]
        return [endpoint for endpoint in found if endpoint is not None]


def parse_forward(directive: Directive) -> Forward:
    """The meaning of a `forward` directive. Raises CorefileError for what CoreDNS or we cannot take."""
    words = directive.arguments
    minimum = 2
    if len(words) < minimum:
        raise CorefileError(directive.line, "this forward names no zone or no upstream")
    if directive.unread:
        found = directive.unread[0]
        reason = f"the options of this forward stand in another file, {shown(found.pattern)}"
        raise CorefileError(found.line, reason, "write them out in its place")
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


def written(word: Token) -> str:
    """A word as it can stand anywhere: with its quotes, without a comment or CR glued to it."""
    return word.raw if word.raw.startswith('"') else word.text


def _parse_options(directive: Directive) -> tuple[Option, ...]:
    words = directive.options
    if any(word.text in ("{", "}") for word in words):
        raise CorefileError(directive.line, "this forward has a block inside its block, or words behind it")
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
    """The index behind the last word on the line of that word."""
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
