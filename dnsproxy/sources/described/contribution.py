"""Contribution: the hostnames that one object of a described kind claims.

The law: one object in, claims and rejections out, as of an Ingress: an invalid host affects neither the object's other
hosts nor other objects.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import Final

from dnsproxy.dns.names import Reach, is_wildcard, parse_hostnames
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms, share_terms
from dnsproxy.hostnames.name_limits import too_many
from dnsproxy.hostnames.wildcards import reach_in_dns
from dnsproxy.sources.annotations import Annotations, origin_of, read_annotations, rejections_of
from dnsproxy.sources.class_names import refuse_class
from dnsproxy.sources.described.classes import DescribedObject
from dnsproxy.sources.described.field_path import places_at
from dnsproxy.sources.described.host_readers import NO_HOSTS
from dnsproxy.sources.described.kind import DescribedKind
from dnsproxy.sources.load_balancer import parse_point

Contribution = tuple[list[Claim], list[Rejection]]

_MOST_VALUES: Final = 10_000
"""At one path, with the places that have none: a megabyte may have 500,000, which would take half a second to read."""
_MOST_POINTS: Final = 16
"""Addresses and hostnames of one load balancer."""
_LONGEST_POINT: Final = 254
"""Characters: a hostname with its final dot."""


def contribution(
    kind: DescribedKind, one: DescribedObject, *, class_name: str | None, most: int | None
) -> Contribution:
    """A claim for each hostname of an object, each once, and a rejection for each that it does not get.

    `class_name`: the class that decides its target; of its hosts, the first `most` are read.
    """
    origin = origin_of(kind.name, one.metadata)
    bad_class = refuse_class(class_name)
    if bad_class is not None:
        return [], [Rejection(origin, bad_class)]
    annotations = read_annotations(one.metadata)
    hostnames, faults = _hostnames_of(kind, one, annotations, most=most)
    rejections = [Rejection(origin, fault) for fault in faults]
    if annotations.exclusion is not None:
        return [], rejections + rejections_of(origin, annotations, hostnames)
    refusal = kind.refusal(one.status) if kind.refusal is not None else None
    if refusal is not None:
        return [], rejections + [Rejection(origin, f"{name}: {refusal}") for name in hostnames]
    return _claims(kind, one, origin, hostnames, annotations, class_name), rejections


def _claims(
    kind: DescribedKind,
    one: DescribedObject,
    origin: Origin,
    hostnames: dict[str, bool],
    annotations: Annotations,
    class_name: str | None,
) -> list[Claim]:
    ingress_class = intern(class_name) if class_name else None
    status = _points_of(kind, one)
    return [
        Claim(
            name,
            _reach(kind, name, annotated=annotated),
            origin,
            share_terms(
                Terms(ingress_class=ingress_class, target=annotations.target, status=status, annotated=annotated)
            ),
        )
        for name, annotated in hostnames.items()
    ]


def _hostnames_of(
    kind: DescribedKind, one: DescribedObject, annotations: Annotations, *, most: int | None
) -> tuple[dict[str, bool], list[str]]:
    """The hostnames in normal form, in the object's order, with whether only an annotation has it; and the faults."""
    faults = [*annotations.faults, *annotations.bad_hostnames]
    found, bad_texts = parse_hostnames(_texts_of(kind, one, faults, most=most))
    hostnames = dict.fromkeys(found, False)
    for name in annotations.hostnames:
        hostnames.setdefault(name, True)
    return hostnames, faults + bad_texts


def _texts_of(kind: DescribedKind, one: DescribedObject, faults: list[str], *, most: int | None) -> list[str]:
    """The hostnames as written, each once, at most so many; adds to the faults."""
    texts: dict[str, None] = {}
    for field in kind.hosts:
        root, *rest = field.path
        for number, value in enumerate(places_at(getattr(one, root, None), tuple(rest))):
            if number == _MOST_VALUES:
                faults.append(f"it has more than {_MOST_VALUES:,} values where hostnames are: the others are left out")
                break
            found = field.read(value, most) if value is not None else NO_HOSTS
            faults += found.faults if most is None else found.faults[: max(0, most - len(faults))]
            for text in found.hostnames:
                if len(texts) == most and text not in texts:
                    faults.append(too_many(len(texts)))
                    return list(texts)
                texts[text] = None
    return list(texts)


def _reach(kind: DescribedKind, name: str, *, annotated: bool) -> Reach:
    return reach_in_dns(name) if annotated or not is_wildcard(name) else kind.wildcards


def _points_of(kind: DescribedKind, one: DescribedObject) -> tuple[str, ...]:
    """The load balancer in the status, in the form of Terms.status; what is neither address nor hostname is ignored."""
    points: dict[str, None] = {}
    for text in kind.points(one.status) if kind.points is not None else ():
        point = _point(text) if len(text) <= _LONGEST_POINT else None
        if point is not None:
            points[point] = None
        if len(points) == _MOST_POINTS:
            break
    return tuple(points)


@lru_cache(maxsize=1024)
def _point(text: str) -> str | None:
    """Cached, because 100,000 objects behind one load balancer have the same status."""
    point = parse_point(text)
    return intern(point) if point is not None else None
