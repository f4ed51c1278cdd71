r"""Rewrite lines: the names of dnsproxy's table as `rewrite` lines of a CoreDNS (plugin/rewrite), and back.

The law: `parse_rewrites` of what `format_rewrites` writes gives the same rewrites, and CoreDNS rewrites exactly the
names that the table answers with a Service. CoreDNS takes the first line that matches a name in lower case, so exact
names come first, then the wildcards, the narrowest first. A name that keeps its own answer under a wildcard is
rewritten to itself. Only names in normal form become text: no character of them means anything to a Corefile or, but
for the dot, to a regular expression.

A wildcard covers no label that begins with an underscore: `_acme-challenge`, `_dmarc` and SRV names are no hosts, and a
rewritten TXT query has no answer. Labels with a dot or a backslash in them, which CoreDNS escapes, are no hosts either.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dnsproxy.corefile.model import Corefile, CorefileError, Directive, shown
from dnsproxy.dns.names import Reach, is_wildcard, parse_hostname
from dnsproxy.dns.rewrite_probe import NONCE, REFERENCE, format_marker, is_marker

MOST: Final = 500
"""Lines that an install writes: CoreDNS compares every query for another name with each of them."""

_HEAD: Final = ("stop", "name")
_TAIL: Final = ("answer", "auto")
_LABEL: Final = r"[^._\\][^.\\]*"
_ONE: Final = rf"{_LABEL}\."
_ANY: Final = rf"(?:{_LABEL}\.)+"
_DIGITS: Final = 16
"""Of the digest: two sets of lines of one cluster never share it."""
_SERVICE: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One name, or all names below a wildcard, and the Service that answers for it."""

    hostname: str
    """In normal form, `*.` in front of a wildcard."""
    reach: Reach
    service: str = ""
    """`NAMESPACE/NAME`; empty for a name that keeps its own answer, although a wildcard covers it."""

    @property
    def key(self) -> tuple[str, Reach]:
        """The names that it is about: of two rewrites with the same key, one counts."""
        return self.hostname, self.reach

    @property
    def base(self) -> str:
        """The hostname without the `*.` of a wildcard."""
        return self.hostname.removeprefix("*.")


@dataclass(frozen=True, slots=True)
class RewriteLines:
    """What our own lines say."""

    rewrites: tuple[Rewrite, ...]
    marker: str
    """The name below which these lines answer a probe (dns/rewrite_probe.py)."""


def check_rewrite(rewrite: Rewrite) -> None:
    """Raises ValueError if a name is not in normal form, or the Service is none."""
    if parse_hostname(rewrite.hostname) != rewrite.hostname:
        raise ValueError(f"{rewrite.hostname!a} is not in normal form")
    if is_wildcard(rewrite.hostname) != (rewrite.reach is not Reach.NAME):
        raise ValueError(f"{rewrite.hostname!a} does not reach {rewrite.reach.value}")
    if rewrite.service and not _SERVICE.fullmatch(rewrite.service):
        raise ValueError(f"{rewrite.service!a} is not a Service")


def format_rewrites(rewrites: Iterable[Rewrite], domain: str) -> tuple[str, ...]:
    """The lines for these rewrites, and the one that answers probes.

    `domain`: the cluster domain without a final dot. Raises ValueError for names that are not in normal form.
    """
    if parse_hostname(domain) != domain or is_wildcard(domain):
        raise ValueError(f"{domain!a} is not a domain in normal form")
    ordered = sorted({rewrite.key: rewrite for rewrite in rewrites}.values(), key=_order)
    for rewrite in ordered:
        check_rewrite(rewrite)
    lines = [_line(*_words(rewrite, domain)) for rewrite in ordered]
    digest = hashlib.sha256("\n".join([domain, *lines]).encode()).hexdigest()[:_DIGITS]
    return (*lines, _line(*_probe_words(format_marker(digest, domain), domain)))


def parse_rewrites(value: Corefile) -> RewriteLines:
    """What the lines of a file of ours say; of a text that holds plugins. Raises CorefileError for any other line."""
    directives = [directive for block in value.blocks for directive in block.directives]
    markers = [marker for directive in directives if (marker := _marker_of(directive))]
    if len(markers) != 1:
        raise CorefileError(1, f"it has {len(markers)} rewrite lines that answer a probe, not one")
    domain = markers[0].split(".", 2)[2]
    rewrites = tuple(_parse(one, domain) for one in directives if not _marker_of(one))
    return RewriteLines(rewrites, markers[0])


def _order(rewrite: Rewrite) -> tuple[bool, int, list[str], bool]:
    labels = rewrite.base.split(".")[::-1]
    is_exact = rewrite.reach is Reach.NAME
    return not is_exact, 0 if is_exact else -len(labels), labels, rewrite.reach is Reach.ANY_LABELS


def _line(kind: str, before: str, after: str) -> str:
    return " ".join(("rewrite", *_HEAD, kind, before, after, *_TAIL))


def _words(rewrite: Rewrite, domain: str) -> tuple[str, str, str]:
    base = _escaped(rewrite.base)
    namespace, _, name = rewrite.service.partition("/")
    after = f"{name}.{namespace}.svc.{domain}."
    if rewrite.reach is Reach.NAME:
        return "exact", f"{rewrite.hostname}.", after if rewrite.service else f"{rewrite.hostname}."
    covered = f"{_ONE if rewrite.reach is Reach.ONE_LABEL else _ANY}{base}"
    return ("regex", rf"^{covered}\.$", after) if rewrite.service else ("regex", rf"^({covered})\.$", "{1}.")


def _probe_words(marker: str, domain: str) -> tuple[str, str, str]:
    return "regex", rf"^{NONCE}\.{_escaped(marker)}\.$", f"{REFERENCE}.{domain}."


def _escaped(hostname: str) -> str:
    return hostname.replace(".", r"\.")


def _marker_of(directive: Directive) -> str:
    """The marker that a line answers for; empty if it is another line."""
    kind, before, after = _said(directive)
    marker = before.removeprefix(rf"^{NONCE}\.").removesuffix(r"\.$").replace(r"\.", ".")
    if kind != "regex" or not is_marker(marker):
        return ""
    same = (kind, before, after) == _probe_words(marker, marker.split(".", 2)[2])
    return marker if same else ""


def _said(directive: Directive) -> tuple[str, str, str]:
    words = tuple(word.text for word in directive.words)
    if directive.name == "rewrite" and len(words) == len(_HEAD) + 3 + len(_TAIL):
        kind, before, after = words[len(_HEAD) : -len(_TAIL)]
        if (words[: len(_HEAD)], words[-len(_TAIL) :]) == (_HEAD, _TAIL):
            return kind, before, after
    return "", "", ""


def _parse(directive: Directive, domain: str) -> Rewrite:
    kind, before, after = _said(directive)
    is_exempt = after in (before, "{1}.")
    name, _, namespace = after.removesuffix(f".svc.{domain}.").partition(".")
    rewrite = Rewrite(*_key_of(kind, before, is_exempt=is_exempt), "" if is_exempt else f"{namespace}/{name}")
    try:
        check_rewrite(rewrite)
    except ValueError:
        raise _unknown(directive) from None
    if (kind, before, after) != _words(rewrite, domain):
        raise _unknown(directive)
    return rewrite


def _key_of(kind: str, before: str, *, is_exempt: bool) -> tuple[str, Reach]:
    if kind == "exact":
        return before.removesuffix("."), Reach.NAME
    opening, closing = ("^(", r")\.$") if is_exempt else ("^", r"\.$")
    inner = before.removeprefix(opening).removesuffix(closing)
    prefix, reach = (_ANY, Reach.ANY_LABELS) if inner.startswith(_ANY) else (_ONE, Reach.ONE_LABEL)
    return f"*.{inner.removeprefix(prefix)}".replace(r"\.", "."), reach


def _unknown(directive: Directive) -> CorefileError:
    text = " ".join((directive.name, *(word.text for word in directive.words)))
    return CorefileError(directive.line, f"{shown(text)} is not a line that dnsproxy writes")


def hostnames_of(rewrites: Iterable[Rewrite]) -> tuple[str, ...]:
    """The names that are rewritten to a Service, sorted."""
    return tuple(sorted({rewrite.hostname for rewrite in rewrites if rewrite.service}))
