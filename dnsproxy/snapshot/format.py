"""The format of a snapshot: the claims of a cluster's objects, the addresses of target Services, and the upstreams.

The law: octets are accepted only if they are exactly as written, with the same settings, by a program with the same
fields in a claim. Otherwise they are refused as a whole, with the reason.

The octets are lines: a head (JSON), one object per line (JSON), and the SHA-256 of everything before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar, get_args, get_type_hints

import msgspec

from dnsproxy.corefile.upstream_routes import UpstreamRoute
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, with_terms
from dnsproxy.hostnames.holds import Held, Holds
from sidecar.values.text import cut, message_of

VERSION: Final = 1
"""The version of the format. The fields of a claim are compared separately."""
LARGEST: Final = 1 << 30
"""Octets; 100,000 names are 39 MB."""

_FORMAT: Final = "switchback-snapshot"
_LONGEST: Final = 200
"""Characters of a setting in a message."""
_LONGEST_HEAD: Final = 16 << 20
"""Octets; enough for the addresses of 100,000 Services."""
_TRAILER: Final = len(b"sha256 \n") + 64
_SLICE: Final = 200
"""Claims encoded in one piece, in a third of a millisecond."""
_YEAR_10000: Final = 253_402_300_800

T = TypeVar("T")

Settings = Mapping[str, str]
"""What a snapshot depends on: the API server, the sources and their filters, each by a readable name."""


class SnapshotRefused(ValueError):
    """Octets that are not a usable snapshot; the message is the reason, as part of a sentence."""


class ObjectClaims(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The claims of one object of one source; a large object takes several of these in a row."""

    source: str
    key: str
    claims: tuple[Claim, ...]
    held: Held | None = None
    """Not an object, but who has a name."""


class SavedUpstreams(msgspec.Struct, frozen=True):
    """The last good upstreams of a ConfigMap."""

    config_map: str
    """`NAMESPACE/NAME`."""
    routes: tuple[UpstreamRoute, ...]
    domains: tuple[str, ...] = ()
    """The cluster domains that its Corefile names."""
    all_domains: bool = False
    """Whether there are no others."""


class SavedRights(msgspec.Struct, frozen=True):
    """What gave rights; None for what was not read. As of Rights."""

    namespaces: frozenset[str] | None = None
    classes: frozenset[str] | None = None
    steered: dict[str, str] | None = None
    """The Services that the target `auto` stands for, as of Targets."""
    nginx_classes: frozenset[str] | None = None
    balancers: dict[str, tuple[str, ...]] | None = None
    """As of Targets."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that was read and checked."""

    taken: float
    """Seconds since the epoch."""
    objects: tuple[ObjectClaims, ...]
    """Each object once."""
    services: Mapping[str, tuple[str, ...]]
    """The addresses of the Services that targets name, by `NAMESPACE/NAME`."""
    upstreams: SavedUpstreams | None = None
    """None if no ConfigMap with upstreams was read."""
    held: tuple[Held, ...] = ()
    """Who has a name, where the claims do not show it."""
    rights: SavedRights = field(default_factory=SavedRights)


class _Format(msgspec.Struct, frozen=True):
    format: str
    version: int


class _Head(_Format, frozen=True):
    taken: Annotated[float, msgspec.Meta(ge=0, lt=_YEAR_10000)]
    settings: dict[str, str]
    shape: tuple[str, ...]
    services: dict[str, tuple[str, ...]]
    upstreams: SavedUpstreams | None = None
    rights: SavedRights = SavedRights()


_FORMAT_DECODER: Final = msgspec.json.Decoder(_Format)
_HEAD_DECODER: Final = msgspec.json.Decoder(_Head)
_OBJECT_DECODER: Final = msgspec.json.Decoder(ObjectClaims)


def walk_objects(store: ClaimStore, sources: Iterable[str]) -> Iterator[ObjectClaims]:
    """The claims of some sources. The store may change in between: each object is as it is when it is reached."""
    for source in sorted(set(sources)):
        for key in store.keys(source):
            claims = store.claims_at(source, key)
            for start in range(0, len(claims), _SLICE):
                yield ObjectClaims(source, key, claims[start : start + _SLICE])


def walk_held(holds: Holds) -> Iterator[ObjectClaims]:
    """Who has a name, where the claims do not show it."""
    for row in holds.rows():
        yield ObjectClaims("", "", (), row)


def format_snapshot(
    objects: Iterable[ObjectClaims],
    *,
    taken: float,
    settings: Settings,
    services: Mapping[str, tuple[str, ...]],
    upstreams: SavedUpstreams | None = None,
    rights: SavedRights = SavedRights(),  # noqa: B008  # a frozen value
) -> Iterator[bytes]:
    """The octets, in pieces that each take less than a millisecond to encode. `taken` in seconds since the epoch."""
    head = _Head(_FORMAT, VERSION, taken, dict(settings), claim_shape(), dict(services), upstreams, rights)
    piece = msgspec.json.encode(head) + b"\n"
    digest = hashlib.sha256(piece)
    yield piece
    lines: list[ObjectClaims] = []
    waiting = 0
    for one in objects:
        lines.append(one)
        waiting += len(one.claims) or 1
        if waiting >= _SLICE:
            piece = _encode_lines(lines)
            digest.update(piece)
            yield piece
            lines, waiting = [], 0
    piece = _encode_lines(lines)
    digest.update(piece)
    yield piece + _format_trailer(digest.hexdigest())


def parse_snapshot(octets: bytes, *, settings: Settings) -> Snapshot:
    """The snapshot, if it was taken with exactly these settings. Raises SnapshotRefused."""
    first_line = octets[: octets.find(b"\n", 0, _LONGEST_HEAD) + 1]
    _check_format(first_line)
    body, trailer = octets[:-_TRAILER], octets[-_TRAILER:]
    if not trailer.startswith(b"sha256 ") or not trailer.endswith(b"\n"):
        raise SnapshotRefused("it is cut short")
    if trailer != _format_trailer(hashlib.sha256(body).hexdigest()):
        raise SnapshotRefused("it is damaged: its checksum does not match its content")
    head = _decode(_HEAD_DECODER.decode, first_line)
    if head.shape != claim_shape():
        raise SnapshotRefused("another version of this program wrote it, with other fields in a claim")
    if head.settings != dict(settings):
        raise SnapshotRefused(_difference(head.settings, settings))
    objects = _decode(_OBJECT_DECODER.decode_lines, memoryview(body)[len(first_line) :])
    held = tuple(one.held for one in objects if one.held is not None)
    claimed = tuple(_join(_with_shared_terms(one) for one in objects if one.held is None))
    return Snapshot(head.taken, claimed, head.services, head.upstreams, held, head.rights)


def claim_shape() -> tuple[str, ...]:
    """The fields of a claim and of its parts; if they differ, a stored claim means something else."""
    return tuple(sorted(_walk_fields(Claim)))


def format_restored(taken: float, *, now: float) -> str:
    """The note about names from a snapshot; both times in seconds since the epoch."""
    when = datetime.fromtimestamp(taken, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"the cluster's names are from a snapshot, {format_age(now - taken)} old (taken {when})"


def format_age(seconds: float) -> str:
    """An age in one unit: `40 s`, `5 min`, `3 h`, `12 days`."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _check_format(first_line: bytes) -> None:
    """Checked before the checksum, because another version may keep its checksum elsewhere."""
    head = _decode(_FORMAT_DECODER.decode, first_line)
    if head.format != _FORMAT:
        raise SnapshotRefused("it is not a snapshot")
    if head.version != VERSION:
        age = "newer" if head.version > VERSION else "older"
        raise SnapshotRefused(f"it has the {age} format {head.version}, and this program reads {VERSION}")


def _decode(decode: Callable[[bytes | memoryview], T], octets: bytes | memoryview) -> T:
    try:
        return decode(octets)
    except (ValueError, RecursionError) as error:
        raise SnapshotRefused(f"it is damaged, or not a snapshot: {message_of(error)}") from None


def _encode_lines(lines: list[ObjectClaims]) -> bytes:
    return msgspec.json.Encoder().encode_lines(lines)


def _format_trailer(digest: str) -> bytes:
    return f"sha256 {digest}\n".encode()


def _with_shared_terms(one: ObjectClaims) -> ObjectClaims:
    """The same; its claims share equal terms, as those of sources do."""
    return ObjectClaims(one.source, one.key, tuple(map(with_terms, one.claims)))


def _join(objects: Iterable[ObjectClaims]) -> Iterator[ObjectClaims]:
    joined: dict[tuple[str, str], ObjectClaims] = {}
    for one in objects:
        before = joined.get((one.source, one.key))
        joined[one.source, one.key] = (
            one if before is None else ObjectClaims(one.source, one.key, before.claims + one.claims)
        )
    yield from joined.values()


def _difference(then: Settings, now: Settings) -> str:
    """The first setting that differs, if possible by more than that it is empty: one without a value looks the same."""
    differing = [name for name in {*then, *now} if then.get(name) != now.get(name)]
    name = min(differing, key=lambda name: (not then.get(name) and not now.get(name), name))
    before, after = (cut(settings.get(name) or "not set", _LONGEST) for settings in (then, now))
    name = cut(name, _LONGEST)
    return f"it was taken with another setting: {name} was {before}, and is {after}"


def _walk_fields(kind: Any) -> Iterator[str]:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        for argument in get_args(kind):
            yield from _walk_fields(argument)
        return
    for name, hint in get_type_hints(kind).items():
        yield f"{kind.__name__}.{name}"
        yield from _walk_fields(hint)
