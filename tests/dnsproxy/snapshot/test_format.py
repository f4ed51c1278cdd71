"""The format of a snapshot: what was written is read back, and everything else is refused with the reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.corefile.upstream_routes import UpstreamRoute
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.snapshot.file import Services
from dnsproxy.snapshot.format import (
    VERSION,
    ObjectClaims,
    SavedRights,
    SavedUpstreams,
    Snapshot,
    SnapshotRefused,
    claim_shape,
    format_age,
    format_restored,
    format_snapshot,
    parse_snapshot,
    walk_objects,
)

SETTINGS: Final = {"API server": "https://192.0.2.1:6443", "ingress classes": "nginx"}
SERVICES: Final = {"edge/relay": ("192.0.2.10", "2001:db8::10")}
TAKEN: Final = 1_780_000_000.25


def claim(hostname: str, reach: Reach = Reach.NAME) -> Claim:
    return Claim(hostname, reach, Origin("Ingress", "web", "shop", "2026-01-01T00:00:00Z"), Terms((), "nginx"))


OBJECTS: Final = (
    ObjectClaims("Ingress", "shop/web", (claim("shop.example.org"), claim("*.shop.example.org", Reach.ONE_LABEL))),
    ObjectClaims("Ingress", "shop/api", (claim("api.example.org"),)),
)


def octets_of(
    *objects: ObjectClaims, taken: float = TAKEN, settings: dict[str, str] = SETTINGS, services: Services = SERVICES
) -> bytes:
    return b"".join(format_snapshot(objects, taken=taken, settings=settings, services=services))


WHOLE: Final = octets_of(*OBJECTS)


def signed(*lines: object) -> bytes:
    """Octets with a valid checksum, whatever the lines contain."""
    body = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    return body + f"sha256 {hashlib.sha256(body).hexdigest()}\n".encode()


def head(**changes: object) -> dict[str, Any]:
    plain = {
        "format": "switchback-snapshot",
        "version": VERSION,
        "taken": TAKEN,
        "settings": SETTINGS,
        "shape": claim_shape(),
        "services": SERVICES,
    }
    return {**plain, **changes}


text = st.text(max_size=20)
# Every field, also future ones.
claims = st.builds(Claim, **{name: st.from_type(hint) for name, hint in get_type_hints(Claim).items()})
objects = st.lists(
    st.builds(ObjectClaims, text, text, st.lists(claims, min_size=1, max_size=5).map(tuple)),
    max_size=8,
    unique_by=lambda one: (one.source, one.key),
)


@given(
    objects,
    st.floats(0, 1e11),
    st.dictionaries(text, text, max_size=3),
    st.dictionaries(text, st.lists(text, max_size=2).map(tuple), max_size=3),
)
def test_what_was_written_is_what_is_read(
    rows: list[ObjectClaims], taken: float, settings: dict[str, str], services: dict[str, tuple[str, ...]]
) -> None:
    octets = octets_of(*rows, taken=taken, settings=settings, services=services)
    assert parse_snapshot(octets, settings=settings) == Snapshot(taken, tuple(rows), services)


@pytest.mark.parametrize("bit", range(8))
def test_every_flipped_bit_is_refused(bit: int) -> None:
    for position in range(len(WHOLE)):
        damaged = bytearray(WHOLE)
        damaged[position] ^= 1 << bit
        with pytest.raises(SnapshotRefused):
            parse_snapshot(bytes(damaged), settings=SETTINGS)


def test_every_cut_and_every_octet_too_many_is_refused() -> None:
    for end in range(len(WHOLE)):
        with pytest.raises(SnapshotRefused):
            parse_snapshot(WHOLE[:end], settings=SETTINGS)
    for number in range(256):
        with pytest.raises(SnapshotRefused):
            parse_snapshot(WHOLE + bytes([number]), settings=SETTINGS)


@given(st.binary(max_size=300))
def test_garbage_is_refused_and_nothing_else_happens(garbage: bytes) -> None:
    for octets in (garbage, WHOLE[:200] + garbage, signed(head(), garbage), signed(garbage)):
        try:
            parse_snapshot(octets, settings=SETTINGS)
        except SnapshotRefused:
            continue
        assert not garbage.strip()


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        pytest.param(b"", "not a snapshot", id="empty"),
        pytest.param(b"\0" * 4096, "not a snapshot", id="zeros, as after a crash of the machine"),
        pytest.param(b"{}\n", "not a snapshot", id="other JSON"),
        pytest.param(b'{"format":"x","version":1}\n', "it is not a snapshot", id="another format"),
        pytest.param(b'{"a":"' + b"a" * (16 << 20), "not a snapshot", id="a head without end"),
        pytest.param(b'{"a":' * 10_000 + b"\n", "not a snapshot", id="a head too deep"),
        pytest.param(WHOLE[:-1], "cut short", id="the last octet missing"),
        pytest.param(WHOLE[: len(WHOLE) // 2], "cut short", id="half"),
        pytest.param(WHOLE.replace(b"api.", b"apj."), "its checksum does not match", id="one letter"),
        pytest.param(WHOLE.replace(b"sha256 ", b"SHA256 "), "cut short", id="another checksum"),
        pytest.param(signed(head(version=VERSION + 1)), "the newer format 2, and this", id="newer"),
        pytest.param(signed(head(version=0)), "the older format 0, and this", id="older"),
        pytest.param(
            b'{"format":"switchback-snapshot","version":99}\n', "the newer format 99", id="newer, with another checksum"
        ),
        pytest.param(signed(head(shape=["Claim.hostname"])), "another version of this program", id="another claim"),
        pytest.param(signed(head(taken=-1)), "it is damaged", id="a time before the epoch"),
        pytest.param(signed(head(taken=1e300)), "it is damaged", id="a time that no calendar has"),
        pytest.param(signed(head(taken="now")), "it is damaged", id="a time that is none"),
        pytest.param(signed(head(services={"a/b": "192.0.2.1"})), "it is damaged", id="services that are none"),
        pytest.param(signed(head(settings=[])), "it is damaged", id="settings that are none"),
        pytest.param(signed(head(), {"source": "Ingress", "key": "x"}), "it is damaged", id="no claims"),
        pytest.param(signed(head(), b"[" * 100_000), "it is damaged", id="a line too deep"),
        pytest.param(
            signed(head(), {"source": "Ingress", "key": "x", "claims": [{"hostname": "a", "reach": "every"}]}),
            "it is damaged",
            id="a reach that is none",
        ),
    ],
)
def test_the_reason_is_logged(octets: bytes, reason: str) -> None:
    with pytest.raises(SnapshotRefused) as caught:
        parse_snapshot(octets, settings=SETTINGS)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param(
            {**SETTINGS, "ingress classes": "traefik"},
            "ingress classes was nginx, and is traefik",
            id="another class",
        ),
        pytest.param({**SETTINGS, "ingress classes": ""}, "was nginx, and is not set", id="no class"),
        pytest.param({"API server": SETTINGS["API server"]}, "was nginx, and is not set", id="a setting fewer"),
        pytest.param({**SETTINGS, "gateway": "yes"}, "gateway was not set, and is yes", id="one source more"),
        pytest.param(
            {**SETTINGS, "a": "", "sources": "ingress"}, "sources was not set, and is ingress", id="an empty one"
        ),
        pytest.param({**SETTINGS, "a": ""}, "a was not set, and is not set", id="an empty one alone"),
        pytest.param(
            {**SETTINGS, "API server": "https://192.0.2.2:6443"}, "API server was https://192.0.2.1", id="other cluster"
        ),
    ],
)
def test_another_setting_is_named(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(SnapshotRefused) as caught:
        parse_snapshot(WHOLE, settings=settings)
    assert reason in str(caught.value)


def test_the_shape_names_all_that_a_claim_consists_of() -> None:
    assert {"Claim.hostname", "Claim.origin", "Terms.annotated", "Terms.since", "Origin.created"} <= set(claim_shape())


def store_with(count: int, *, per_object: int = 1) -> ClaimStore:
    store = ClaimStore()
    for number in range(count):
        hosts = [claim(f"h{index}.o{number}.example.org") for index in range(per_object)]
        store.replace("Ingress", f"shop/{number}", hosts)
    return store


def test_only_the_sources_that_are_asked_for_are_walked() -> None:
    store = store_with(2)
    store.replace("hosts file", "", [claim("static.example.org")])
    assert {one.source for one in walk_objects(store, ["Ingress", "HTTPRoute"])} == {"Ingress"}
    assert list(walk_objects(store, [])) == []


def test_an_object_of_many_hosts_is_walked_in_parts_and_read_as_one() -> None:
    store = store_with(2, per_object=1000)
    parts = list(walk_objects(store, ["Ingress"]))
    assert len(parts) > 2
    assert max(len(part.claims) for part in parts) <= 200
    snapshot = parse_snapshot(octets_of(*parts), settings=SETTINGS)
    assert {one.key: one.claims for one in snapshot.objects} == {
        f"shop/{number}": store.claims_at("Ingress", f"shop/{number}") for number in range(2)
    }


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda store: store.replace("Ingress", "shop/999", []), id="an object goes"),
        pytest.param(lambda store: store.replace("Ingress", "new", [claim("new.example.org")]), id="one comes"),
        pytest.param(lambda store: store.replace("Ingress", "shop/999", [claim("x.example.org")]), id="one changes"),
    ],
)
def test_the_store_may_change_between_two_pieces(change: Callable[[ClaimStore], object]) -> None:
    store = store_with(1000)
    pieces = format_snapshot(walk_objects(store, ["Ingress"]), taken=TAKEN, settings=SETTINGS, services={})
    octets = next(pieces) + next(pieces)
    change(store)
    snapshot = parse_snapshot(octets + b"".join(pieces), settings=SETTINGS)
    for one in snapshot.objects:
        assert one.claims == store.claims_at(one.source, one.key)


def test_no_piece_holds_much() -> None:
    objects = walk_objects(store_with(5000), ["Ingress"])
    pieces = list(format_snapshot(objects, taken=TAKEN, settings=SETTINGS, services={}))
    assert max(piece.count(b"\n") for piece in pieces) <= 201


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        pytest.param(-5, "0 s", id="a clock that was set back"),
        pytest.param(0, "0 s", id="now"),
        pytest.param(119, "119 s", id="seconds"),
        pytest.param(120, "2 min", id="minutes"),
        pytest.param(3 * 3600 + 5, "3 h", id="hours"),
        pytest.param(86_400 * 12.4, "12 days", id="days"),
    ],
)
def test_an_age_has_one_unit(seconds: float, shown: str) -> None:
    assert format_age(seconds) == shown


@pytest.mark.parametrize("taken", [0.0, 1_780_000_000.25, 253_402_300_799.9], ids=["the first", "some", "the last"])
def test_any_time_that_is_read_can_be_shown(taken: float) -> None:
    year = {0.0: "1970-01-01T00:00:00Z", 1_780_000_000.25: "2026-05-28T20:26:40Z"}.get(taken, "9999-12-31T23:59:59Z")
    assert parse_snapshot(octets_of(taken=taken), settings=SETTINGS).taken == taken
    assert format_restored(taken, now=taken + 7200) == (
        f"the cluster's names are from a snapshot, 2 h old (taken {year})"
    )


@pytest.mark.parametrize(
    "rights",
    [
        pytest.param(SavedRights(), id="nothing was read"),
        pytest.param(SavedRights(frozenset(), frozenset()), id="nobody has any"),
        pytest.param(SavedRights(frozenset({"shop", "web"}), frozenset({"nginx"})), id="some have"),
        pytest.param(SavedRights(classes=frozenset({"nginx"})), id="classes alone were read"),
        pytest.param(SavedRights(nginx_classes=frozenset({"nginx"})), id="classes of ingress-nginx"),
    ],
)
def test_rights_are_kept(rights: SavedRights) -> None:
    octets = b"".join(format_snapshot((), taken=TAKEN, settings=SETTINGS, services={}, rights=rights))
    assert parse_snapshot(octets, settings=SETTINGS).rights == rights


def test_the_upstreams_of_a_config_map_are_kept_and_a_snapshot_without_them_is_read() -> None:
    routes = (
        UpstreamRoute("corp.test.", ("10.0.0.5",)),
        UpstreamRoute(".", ("/etc/resolv.conf",), rotates=True, line=3),
    )
    saved = SavedUpstreams("kube-system/coredns", routes)
    octets = b"".join(format_snapshot((), taken=TAKEN, settings=SETTINGS, services={}, upstreams=saved))
    assert parse_snapshot(octets, settings=SETTINGS).upstreams == saved
    assert parse_snapshot(WHOLE, settings=SETTINGS).upstreams is None
    assert parse_snapshot(signed({**head()}), settings=SETTINGS).upstreams is None


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([head(settings={**SETTINGS, "ingress classes": "x" * 200_000})], id="another setting"),
        pytest.param(
            [head(), {"source": "Ingress", "key": "a/b", "claims": [{"reach": "x" * 200_000}]}], id="no reach"
        ),
    ],
)
def test_a_long_text_in_the_file_is_not_repeated_whole(lines: list[object]) -> None:
    with pytest.raises(SnapshotRefused) as error:
        parse_snapshot(signed(*lines), settings=SETTINGS)
    assert len(str(error.value)) < 700
