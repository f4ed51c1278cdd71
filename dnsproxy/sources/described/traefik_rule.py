"""Rules of Traefik: the hostnames that the rule of an IngressRoute or IngressRouteTCP can match.

The law: pure; a hostname is claimed only if the rule names it and, if its other matchers allow it, matches it. Regular
expressions are not evaluated, because a tenant's could take for ever. A rule that Traefik refuses claims nothing.

Where versions differ, the newest counts: since v3.7 the v3 syntax has wildcards of one label, `Host(`*`)` for every
name, and HostSNI in any case. In an older v3, such a rule matches nothing.
https://doc.traefik.io/traefik/reference/routing-configuration/http/routing/rules-and-priority/
https://github.com/traefik/traefik/tree/v3.7.13/pkg/muxer
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from dnsproxy.hostnames.name_limits import too_many
from dnsproxy.sources.described.traefik_matchers import Role, Syntax, read_matchers
from dnsproxy.sources.described.traefik_names import EVERY, NONE, OTHERS, PATTERNED, MentionedNames
from dnsproxy.sources.described.traefik_syntax import BadRule, Matcher, Operator, Step, parse_steps
from sidecar.values.text import quoted

__all__ = ["RuleHosts", "Syntax", "parse_rule"]

_HOST: Final = re.compile(r"[\w.-]+", re.ASCII)
_PLAIN: Final = re.compile(
    r"(?P<matcher>Host|HostSNI)\(`(?P<host>[\w.-]+)`\)(?P<paths>(?: && Path(?:Prefix)?\(`[!-_a-~]+`\))*)", re.ASCII
)
"""The form of nearly all rules: one name, and paths. Both syntaxes read it alike."""
_MOST_FAULTS: Final = 10
"""Of one rule: 64 KiB may have 2,500 regular expressions."""
_MOST_SHOWN: Final = 3
"""Hostnames in one fault."""


class RuleHosts(msgspec.Struct, frozen=True, gc=False):
    """The hostnames of one rule."""

    hostnames: tuple[str, ...] = ()
    """As written, each once, without regard to case and a final dot. A wildcard covers one label."""
    every_name: bool = False
    """Whether an alternative of the rule matches names that the rule does not mention."""
    faults: tuple[str, ...] = ()
    """What the rule serves and the hostnames do not have, or why it serves nothing."""


def parse_rule(text: str, *, matcher: str, syntax: Syntax | None = None, most: int | None = None) -> RuleHosts:
    """The hostnames of a rule, at most `most`.

    `matcher` is `Host` for an IngressRoute and `HostSNI` for an IngressRouteTCP. Without `syntax`, which leaves it to
    Traefik's configuration, the rule has v3 syntax, or v2 syntax if only that accepts it.
    """
    plain = _PLAIN.fullmatch(text)
    if plain is not None and plain["matcher"] == matcher and (matcher == "Host" or not plain["paths"]):
        # 20,000 objects with two such rules each would otherwise take a second more of a start.
        return RuleHosts((plain["host"],))
    return _parse_any(text, matcher, syntax, most)


def _parse_any(text: str, matcher: str, syntax: Syntax | None, most: int | None) -> RuleHosts:
    try:
        steps = parse_steps(text)
        dialect = _choose_dialect(steps, matcher, syntax)
    except BadRule as error:
        return RuleHosts(faults=(str(error),))
    names = MentionedNames(host for host in dialect.hosts_of(steps) if dialect.is_possible(host))
    value = _evaluate(steps, dialect, names)
    faults = list(dict.fromkeys(_faults_of(steps, dialect)))
    hostnames = _claimed(value, names, faults)
    if most is not None and len(hostnames) > most:
        faults.append(too_many(most))
    if value.possible & OTHERS:
        faults.extend(_exceptions("it matches every name", names.in_set(~value.possible)))
    if value.possible == NONE and not faults:
        faults.append("its rule can match no hostname")
    return RuleHosts(tuple(hostnames[:most]), bool(value.possible & OTHERS), tuple(_first(faults)))


class _Dialect(NamedTuple):
    """The meaning of matchers in one syntax."""

    matcher: str
    syntax: Syntax
    roles: dict[str, Role]

    def is_every(self, host: str) -> bool:
        return host == "*" and (self.matcher == "HostSNI" or self.syntax == "v3")

    def is_possible(self, host: str) -> bool:
        """Whether a request or connection can have a hostname that the argument matches."""
        return _HOST.fullmatch(host.removeprefix("*.") if self.syntax == "v3" else host) is not None

    def hosts_of(self, steps: Sequence[Step]) -> Iterator[str]:
        for step in steps:
            if isinstance(step, Matcher) and self.roles[step.name] is Role.HOSTS:
                yield from step.arguments


def _choose_dialect(steps: Sequence[Step], matcher: str, syntax: Syntax | None) -> _Dialect:
    calls = [step for step in steps if isinstance(step, Matcher)]
    try:
        chosen: Syntax = syntax or "v3"
        return _Dialect(matcher, chosen, read_matchers(calls, matcher, chosen))
    except BadRule as error:
        if syntax is not None:
            raise
        try:
            return _Dialect(matcher, "v2", read_matchers(calls, matcher, "v2"))
        except BadRule:
            raise error from None


class _Value(NamedTuple):
    """Of a part of the rule."""

    possible: int
    """The names that it can match."""
    named: int
    """Those of them that it matches because of their name."""


def _evaluate(steps: Sequence[Step], dialect: _Dialect, names: MentionedNames) -> _Value:
    values: list[_Value] = []
    for step in steps:
        if isinstance(step, Matcher):
            values.append(_value_of(step, dialect, names))
        else:
            right, left = values.pop(), values.pop()
            values.append(_join(left, right, step))
    return values.pop()


def _join(left: _Value, right: _Value, operator: Operator) -> _Value:
    if operator is Operator.OR:
        return _Value(left.possible | right.possible, left.named | right.named)
    return _Value(left.possible & right.possible, left.named & right.possible | left.possible & right.named)


def _value_of(call: Matcher, dialect: _Dialect, names: MentionedNames) -> _Value:
    role = dialect.roles[call.name]
    if role is Role.OTHER:
        return _Value(EVERY, NONE)
    if role is Role.PATTERNS:
        return _Value(~PATTERNED if call.negated else ~OTHERS, NONE)
    hosts = names.set_of(call.arguments)
    covered = EVERY if any(map(dialect.is_every, call.arguments)) else hosts
    return _Value(~covered, NONE) if call.negated else _Value(covered, hosts)


def _claimed(value: _Value, names: MentionedNames, faults: list[str]) -> list[str]:
    """The named hosts; not a wildcard below which the rule excludes a name, since the table would answer that too."""
    hosts = []
    for host in names.in_set(value.named):
        exceptions = list(_exceptions(f"it matches {quoted(host)}", names.below(host, ~value.possible)))
        faults.extend(exceptions)
        if not exceptions:
            hosts.append(host)
    return hosts


def _exceptions(what: str, hosts: Iterator[str]) -> Iterator[str]:
    """At most one fault."""
    shown = [quoted(host) for host in islice(hosts, _MOST_SHOWN + 1)]
    if shown:
        listed = ", ".join(shown[:_MOST_SHOWN]) + (" and others" if len(shown) > _MOST_SHOWN else "")
        yield f"{what} except {listed}, which a table of names cannot express: only names that it lists are claimed"


def _faults_of(steps: Sequence[Step], dialect: _Dialect) -> Iterator[str]:
    """The arguments that no hostname expresses."""
    for step in steps:
        role = dialect.roles[step.name] if isinstance(step, Matcher) else Role.OTHER
        if isinstance(step, Matcher) and role is Role.PATTERNS:
            yield from (
                f"{step.name}({quoted(one)}) is a regular expression: names that only it matches are not claimed"
                for one in step.arguments
            )
    for host in dialect.hosts_of(steps):
        if not dialect.is_possible(host) and not dialect.is_every(host):
            yield f"{dialect.matcher}({quoted(host)}) {_why_impossible(host, dialect)}"


def _why_impossible(host: str, dialect: _Dialect) -> str:
    if "{" in host:
        return f"has a regular expression, which Traefik reads only in {dialect.matcher}Regexp"
    if host.startswith("*"):
        return "is a wildcard, which Traefik knows only in the v3 syntax, as a whole first label"
    return "matches nothing: no hostname has these characters"


def _first(faults: Sequence[str]) -> list[str]:
    if len(faults) <= _MOST_FAULTS:
        return list(faults)
    return [*faults[:_MOST_FAULTS], f"and {len(faults) - _MOST_FAULTS:,} faults more"]
