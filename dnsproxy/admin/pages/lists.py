"""The lists: names, excluded claims, names that lead elsewhere, rejected hosts and lines.

The law: pure; a row shows the registry's state when it is rendered, and a row that no longer exists is omitted. Tested
in test_lists.py, through list_page.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup

from dnsproxy.admin.pages.list_page import List
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.wildcards import reaches
from sidecar.admin.page.document import Level, text
from sidecar.admin.page.markup import NOTHING, html, joined

_CLAIMS: Final = 5
"""Claims to one name that are shown; the page of the name shows more."""


def explain_link(hostname: str) -> Markup:
    """A name as a link to its explanation."""
    return html('<a href="why?{}">{}</a>', urlencode({"name": hostname}), hostname)


def _changed_names(registry: Registry, version: int) -> Mapping[str, bool] | None:
    changed = registry.store.changed_since(version)
    return None if changed is None else {one: bool(registry.store.claims_for(one)) for one in changed}


def _name_texts(registry: Registry, hostname: str, whole: bool) -> Iterable[str]:
    # Not a generator: there can be 100,000 names.
    texts = [hostname]
    for claim in registry.store.claims_for(hostname):
        texts += _origin_texts(claim, whole)
    return texts


def _origin_texts(claim: Claim, whole: bool) -> tuple[str, ...]:
    """The texts of the claiming object: its name and namespace, or the whole origin: `ingress shop/web`."""
    origin = claim.origin
    if whole or not origin.namespace:
        return (str(origin).lower(),)
    # The names of objects are in lower case (RFC 1123), and there can be 100,000: no string is built for each.
    return origin.name, origin.namespace


def _name_cells(registry: Registry, hostname: str) -> Sequence[Markup]:
    verdicts = [(reach, registry.verdict(hostname, reach)) for reach in reaches(hostname)]
    won = [(reach, one, one.winner) for reach, one in verdicts if one.winner is not None]
    if not won:
        excluded = [one for _, verdict in verdicts for one in verdict.excluded]
        if not excluded:
            return ()
        state = text(f"forwarded: {excluded[0].reason}", Level.WARN)
        return (
            explain_link(hostname),
            state,
            NOTHING,
            _origin(excluded[0].claim),
            text(excluded[0].claim.terms.ingress_class or "-"),
        )
    elsewhere = registry.outcomes.elsewhere_at((hostname, Reach.NAME))
    reach = "" if won[0][0] is Reach.NAME else f" ({' and '.join(reach.value for reach, _, _ in won)})"
    return (
        html("{}{}", explain_link(hostname), reach),
        text("answered", Level.OK) if elsewhere is None else text(elsewhere.reason, Level.WARN),
        _lines(address for _, verdict, _ in won for address in verdict.addresses),
        joined((_origin(claim) for _, _, claim in won), "<br>"),
        text(won[0][2].terms.ingress_class or "-"),
    )


def _origin(claim: Claim) -> Markup:
    return html("{} <code>{}</code>", claim.origin.kind, str(claim.origin).removeprefix(f"{claim.origin.kind} "))


def _lines(texts: Iterable[str]) -> Markup:
    return joined((html("<code>{}</code>", one) for one in dict.fromkeys(texts)), "<br>")


# The keys of rows with excluded claims, and of names that lead elsewhere, are `HOSTNAME REACH`.


def _format_row(row: tuple[str, Reach]) -> str:
    return f"{row[0]} {row[1].name}"


def _parse_row(key: str) -> tuple[str, Reach]:
    hostname, _, reach = key.rpartition(" ")
    return hostname, Reach[reach]


def _lost_texts(registry: Registry, key: str, whole: bool) -> Iterator[str]:
    yield key
    for excluded in registry.outcomes.excluded_at(_parse_row(key)):
        yield from _origin_texts(excluded.claim, whole)
        yield excluded.reason.lower()


def _lost_cells(registry: Registry, key: str) -> Sequence[Markup]:
    row = _parse_row(key)
    excluded = registry.outcomes.excluded_at(row)
    if not excluded:
        return ()
    more = len(excluded) - _CLAIMS
    rest = [html("and {} more", f"{more:,}")] if more > 0 else []
    return (
        explain_link(row[0]),
        joined([*(_origin(one.claim) for one in excluded[:_CLAIMS]), *rest], "<br>"),
        joined((html("{}", one.reason) for one in excluded[:_CLAIMS]), "<br>"),
    )


def _elsewhere_texts(registry: Registry, key: str, whole: bool) -> Iterator[str]:
    yield key
    one = registry.outcomes.elsewhere_at(_parse_row(key))
    if one is not None:
        yield from _origin_texts(one.claim, whole)
        yield one.reason.lower()


def _elsewhere_cells(registry: Registry, key: str) -> Sequence[Markup]:
    row = _parse_row(key)
    one = registry.outcomes.elsewhere_at(row)
    return () if one is None else (explain_link(row[0]), _origin(one.claim), text(one.reason))


# The keys of rejections are `SOURCE\0OBJECT\0NUMBER`: one hosts file can have many rejected lines.


def _rejected_keys(registry: Registry, place: tuple[str, str]) -> Iterable[str]:
    # Padded, so that they sort as text.
    return (f"{place[0]}\0{place[1]}\0{number:08}" for number in range(len(registry.store.rejections_at(place))))


def _rejected(registry: Registry, key: str) -> Rejection | None:
    source, _, rest = key.partition("\0")
    place, _, number = rest.rpartition("\0")
    rejections = registry.store.rejections_at((source, place))
    return rejections[int(number)] if int(number) < len(rejections) else None


def _rejected_texts(registry: Registry, key: str, _: bool) -> Iterator[str]:
    one = _rejected(registry, key)
    if one is not None:
        yield f"{one.origin} {one.reason}".lower()


def _rejected_cells(registry: Registry, key: str) -> Sequence[Markup]:
    one = _rejected(registry, key)
    if one is None:
        return ()
    return (
        text(str(one.origin)),
        text(one.reason),
        text("yes, it was configured") if one.deliberate else text("no", Level.WARN),
    )


LISTS: Final = (
    List(
        "names",
        "Names",
        ("Name", "Result", "Addresses", "Claimed by", "Class"),
        "No object, file or flag claims any name.",
        lambda registry: registry.store.names_now(),
        lambda registry: registry.store.names(),
        lambda _, hostname: (hostname,),
        lambda registry: registry.store.version,
        _changed_names,
        _name_texts,
        _name_cells,
    ),
    List(
        "left-out",
        "Excluded",
        ("Name", "Claimed by", "Reason"),
        "No claim is excluded: every claim to a name counts.",
        lambda registry: registry.outcomes.excluded_rows_now(),
        lambda registry: registry.outcomes.excluded_rows(),
        lambda _, row: (_format_row(row),),
        lambda registry: registry.outcomes.judged,
        lambda *_: None,
        _lost_texts,
        _lost_cells,
    ),
    List(
        "elsewhere",
        "Lead elsewhere",
        ("Name", "Claimed by", "Its record"),
        "No claimed name that was asked lately leads elsewhere.",
        lambda registry: registry.outcomes.elsewhere_rows_now(),
        lambda registry: registry.outcomes.elsewhere_rows(),
        lambda _, row: (_format_row(row),),
        lambda registry: registry.outcomes.led,
        lambda *_: None,
        _elsewhere_texts,
        _elsewhere_cells,
    ),
    List(
        "skipped",
        "Rejected",
        ("Object or line", "Reason", "Intended"),
        "No host or line of any object or file is rejected.",
        lambda registry: registry.store.rejected_now(),
        lambda registry: registry.store.rejected(),
        _rejected_keys,
        lambda registry: registry.store.rejections_version,
        lambda *_: None,
        _rejected_texts,
        _rejected_cells,
    ),
)
