"""The explanation of one name: which claim answers it, by which rule, and which claims are excluded; or why none does.

The law: it matches the table. A name has an answer here exactly if the table has one, and the same one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from dnsproxy.admin.listing import Row, row_of
from dnsproxy.answers.answer_records import Claimed
from dnsproxy.dns.names import BadName, Reach, is_wildcard, is_within, parse_hostname
from dnsproxy.hostnames.claims import Claim, Origin, Rejection
from dnsproxy.hostnames.registrable import covered_domain
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.wildcards import wider
from dnsproxy.tap.recent import AskedBy, RecentClients
from sidecar.values.text import escape_controls, escaped_json

LONGEST: Final = 1_000
"""Characters of a requested name: enough to recognise a name that is too long."""

_SLICE: Final = 500
"""Rejections searched in one step, in less than a millisecond."""
_MOST: Final = 50
"""Excluded claims and rejections that are listed."""


@dataclass(frozen=True, slots=True)
class ExcludedClaim:
    """A claim that could answer the name, and why it does not."""

    hostname: str
    reach: Reach
    origin: Origin
    class_name: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one name. The field names are keys of the JSON document."""

    name: str
    """In normal form if it is a hostname, else as requested."""
    answer: Row | None
    """The row of the table that answers; None: queries are forwarded."""
    target: str
    """Where the addresses come from; empty without an answer."""
    ttl: int
    """Seconds."""
    left_out: tuple[ExcludedClaim, ...]
    rejected: tuple[str, ...]
    """Rejected hosts and lines that mention the name, with the reason."""
    reasons: tuple[str, ...]
    """Why there is no answer, apart from excluded claims and rejections."""
    notes: tuple[str, ...]
    """Notes on the data: a source that is not synced, the age of a snapshot."""
    asked_by: tuple[AskedBy, ...] | None = None
    """The clients that asked for it in the last minute, the last to ask first; None if the server does not record them
    (--tap recent)."""
    wide: str = ""
    """The registrable domain that the answering wildcard covers as a whole; empty if there is none."""
    condition: str = ""
    """What public DNS has to say for that answer (`--ownership`), after the addresses; empty if it has no say."""


_WORD: Final = re.compile(r"[\w.*-]+")
_DECODER: Final = msgspec.json.Decoder(Explanation)

ADVICE: Final = (
    "if it is to be answered (a CDN, a router, split-horizon DNS), trust it with --trust ZONE or --trust NETWORK; "
    "--deny NAME leaves it alone for good"
)
"""What to do about a name that leads elsewhere."""
_CONDITIONS: Final = {
    Claimed.VERIFIED: " where its public record leads to the load balancer, or has no address (--ownership verify)",
    Claimed.ENFORCED: " where its public record leads to the load balancer (--ownership enforce)",
}
_HELD: Final = "its namespace may take it again, and no wildcard of another one has it meanwhile (--hold)"


class _Candidate(NamedTuple):
    hostname: str
    reach: Reach
    bar: str
    """Why this row can't answer, whatever it contains; empty if it can."""


def explain(
    registry: Registry, text: str, *, ttl: int, notes: Sequence[str] = (), rejections: Iterable[Rejection] = ()
) -> Explanation:
    """What happens to queries for a name; `rejections` are those that mention it."""
    rejected = tuple(f"{one.origin}: {one.reason}" for one in islice(rejections, _MOST))
    try:
        hostname = parse_hostname(text)
    except BadName as error:
        return Explanation(text, None, "", ttl, (), rejected, (str(error),), tuple(notes))
    answer, target, condition = None, "", ""
    left_out: list[ExcludedClaim] = []
    held, waits = _HELD if registry.is_barred(hostname) else "", ""
    for candidate in _candidates(hostname, registry.denied, registry.closed):
        verdict = registry.verdict(candidate.hostname, candidate.reach)
        bar = candidate.bar or waits or (held if answer is None and candidate.hostname != hostname else "")
        if verdict.winner is not None and (answer is not None or bar):
            before = f"{answer.hostname} of {answer.origin} comes first" if answer else ""
            left_out.append(_excluded(verdict.winner, bar or before))
        elif verdict.winner is not None:
            answer = row_of(verdict.winner, verdict, registry.outcomes.elsewhere_at((hostname, Reach.NAME)))
            target = _target_of(verdict.winner, registry.targets)
            condition = _CONDITIONS.get(registry.claimed(verdict.winner), "")
        elif verdict.unready is not None and answer is None and not bar:
            waits = f"{verdict.unready.origin} has {candidate.hostname}, and no endpoint of its target is ready"
        if not candidate.bar:
            left_out += [_excluded(excluded.claim, excluded.reason) for excluded in verdict.excluded]
    reasons = () if answer else tuple(_reasons(registry, hostname, left_out))
    shown = tuple(left_out[:_MOST])
    wide = covered_domain(answer.hostname) if answer else ""
    return Explanation(
        hostname, answer, target, ttl, shown, rejected, reasons, tuple(notes), wide=wide, condition=condition
    )


def find_explanation(
    registry: Registry, text: str, *, ttl: int, notes: Sequence[str], recent: RecentClients | None = None
) -> Generator[None, None, Explanation]:
    """The explanation, in steps, because there may be many rejections; `recent`: who asked, if that is recorded."""
    mentions_it = _mention_of(text)
    found: list[Rejection] = []
    rejections = iter(list(registry.store.rejections()))
    while part := list(islice(rejections, _SLICE)):
        found += [one for one in part if mentions_it(one)]
        yield
    explanation = explain(registry, text, ttl=ttl, notes=notes, rejections=found)
    return replace(explanation, asked_by=recent.asked_by(explanation.name)) if recent is not None else explanation


def format_explanation_json(
    registry: Registry, text: str, *, ttl: int, notes: Sequence[str], recent: RecentClients | None = None
) -> Iterator[bytes]:
    """The explanation as JSON, in pieces; most of them are empty."""
    found: list[Explanation] = []

    def work() -> Generator[None, None, None]:
        found.append((yield from find_explanation(registry, text, ttl=ttl, notes=notes, recent=recent)))

    for _ in work():
        yield b""
    # In ASCII: people read it with curl, and a class of a tenant could have what controls a terminal.
    yield escaped_json(found[0]).encode() + b"\n"


def parse_explanation(octets: bytes) -> Explanation:
    """The explanation. Raises ValueError for any other document."""
    try:
        return _DECODER.decode(octets)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def format_explanation(explanation: Explanation) -> Iterator[str]:
    """Lines of text, the verdict first."""
    answer = explanation.answer
    if answer is None:
        yield escape_controls(f"{explanation.name} is not in the table: queries for it are forwarded")
    else:
        yield escape_controls(f"{explanation.name} {verdict_words(answer, explanation.condition)}")
        yield from (escape_controls(f"  {name:<6}  {fact}") for name, fact in answer_facts(answer, explanation))
    for reason in explanation.reasons:
        yield escape_controls(f"  because  {reason}")
    for one in explanation.left_out:
        shown = one.hostname if one.hostname != explanation.name else "it"
        yield escape_controls(f"  excluded  {one.origin} claims {shown}: {one.reason}")
    for rejected in explanation.rejected:
        yield escape_controls(f"  rejected  {rejected}")
    for asked in asked_by_lines(explanation):
        yield escape_controls(f"  asked by  {asked}")
    for note in explanation.notes:
        yield escape_controls(f"  note  {note}")


def format_document(explanation: Explanation) -> str:
    """The explanation as JSON for a terminal or a program."""
    return escaped_json(asdict(explanation), indent=2)


def verdict_words(answer: Row, condition: str) -> str:
    """What happens to queries for a name of the table, after the name."""
    addresses = ", ".join(answer.addresses)
    if answer.forwarded:
        return f"is in the table with {addresses}, and forwarded"
    return f"is answered with {addresses}{condition}"


def answer_facts(answer: Row, explanation: Explanation) -> Iterator[tuple[str, str]]:
    """The facts about an answer, each with its name, for `dnsproxy explain` and the page."""
    origin = answer.origin
    rule = "the exact name"
    if answer.reach is not Reach.NAME:
        rule = f"the wildcard {answer.hostname}, which covers {answer.reach.value}"
    yield "rule", rule
    if explanation.wide:
        yield "covers", f"the wildcard covers the whole domain {explanation.wide}"
    yield "origin", f"{origin}, created {origin.created}" if origin.created else str(origin)
    yield "class", answer.class_name or "-"
    yield "target", explanation.target
    if answer.leads:
        yield "leads", f"{answer.leads}; {ADVICE}"
    yield "TTL", f"{explanation.ttl} s"


def asked_by_lines(explanation: Explanation) -> Iterator[str]:
    """A line for each client that asked in the last minute; none if that is not recorded."""
    if explanation.asked_by is None:
        return
    for one in explanation.asked_by:
        times = "once" if one.count == 1 else f"{one.count} times"
        yield f"{one.client}{one.subnet and f' for {one.subnet}'}, {times} in the last minute, last at {one.last}"
    if not explanation.asked_by:
        yield "no client in the last minute"


def _candidates(hostname: str, denied: Sequence[str], closed: Sequence[str]) -> Iterator[_Candidate]:
    """The rows that could answer, in the order in which the table looks them up."""
    if not is_wildcard(hostname):
        yield _Candidate(hostname, Reach.NAME, "")
    denial = "it is denied (--deny)" if hostname in denied and not is_wildcard(hostname) else ""
    deeper = ""
    for wildcard in (*([hostname] if is_wildcard(hostname) else []), *wider(hostname)):
        bar = denial or _bar_of(hostname, wildcard, closed)
        yield _Candidate(wildcard, Reach.ONE_LABEL, bar or deeper)
        yield _Candidate(wildcard, Reach.ANY_LABELS, bar)
        deeper = "an Ingress wildcard covers one label only"


def _bar_of(hostname: str, wildcard: str, closed: Sequence[str]) -> str:
    """Why a wildcard does not reach a hostname in a search domain; empty if it does."""
    base, parent = hostname.removeprefix("*."), wildcard.removeprefix("*.")
    for domain in closed:
        if is_within(base, domain) and not is_within(parent, domain):
            return f"no wildcard reaches into the search domain {domain}; --allow {domain} allows that"
    return ""


def _excluded(claim: Claim, reason: str) -> ExcludedClaim:
    return ExcludedClaim(claim.hostname, claim.reach, claim.origin, claim.terms.ingress_class, reason)


def _reasons(registry: Registry, hostname: str, left_out: Sequence[ExcludedClaim]) -> Iterator[str]:
    if not left_out:
        yield "no object claims it"
    refused = registry.refusal(hostname)
    if refused is not None and all(one.reason != refused for one in left_out):
        yield refused


def _target_of(claim: Claim, targets: Targets) -> str:
    terms = claim.terms
    if terms.addresses:
        return "its own addresses"
    target = ",".join(targets.target_of(claim))
    if terms.target is not None:
        return f"{target}, which the object chose"
    if terms.ingress_class is not None and terms.ingress_class in targets.by_class:
        return f"--target-for {terms.ingress_class}={target}"
    return f"--target {target}"


def _mention_of(text: str) -> Callable[[Rejection], bool]:
    """A test whether a rejection mentions a name or a wildcard above it; `b.org` is not mentioned by `a.b.org`."""
    asked = text.strip().lower().removesuffix(".")
    try:
        hostname = parse_hostname(text)
    except BadName:
        return lambda rejection: asked in rejection.reason.lower()
    wanted = {asked, *(one.hostname for one in _candidates(hostname, (), ()))}
    return lambda rejection: not wanted.isdisjoint(word.rstrip(".") for word in _WORD.findall(rejection.reason.lower()))
