"""The known objects after lists and watches."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from sidecar.kubernetes.protocol import Entry
from sidecar.kubernetes.store import Store


class Thing(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


def entry(key: str, version: str) -> Entry[Thing]:
    return Entry(key, version, Thing(ObjectMeta(key, resource_version=version)))


class Receiver:
    """What somebody holds who was told every change."""

    def __init__(self) -> None:
        self.held: dict[str, Thing | Unreadable] = {}

    def take(self, changes: dict[str, Thing | Unreadable | None]) -> None:
        for key, value in changes.items():
            if value is None:
                del self.held[key]
            else:
                self.held[key] = value


KEYS = st.sampled_from("abcde")
EVENTS = st.lists(st.tuples(KEYS, st.booleans()), max_size=12)


@given(st.lists(st.tuples(EVENTS, EVENTS, st.booleans(), st.booleans())))
def test_watch_and_relist_agree_with_a_fresh_list(rounds: list[tuple[list[tuple[str, bool]], ...]]) -> None:
    """Some changes are watched, some missed; some lists are cut. After the last whole list, all is as it is."""
    cluster: dict[str, Entry[Thing]] = {}
    store: Store[Thing] = Store()
    receiver = Receiver()
    version = 0

    def happen(key: str, exists: bool) -> Entry[Thing]:
        nonlocal version
        version += 1
        cluster.pop(key, None)
        if exists:
            cluster[key] = entry(key, str(version))
        return cluster.get(key) or Entry(key, str(version), None)

    def read(*, pages: bool) -> None:
        relist = store.relist()
        listed = list(cluster.values())
        receiver.take(relist.take(listed[:2]))
        if pages:
            receiver.take(relist.take(listed[2:]))
            receiver.take(store.apply(relist.missing()))

    for watched, missed, whole, _ in rounds:
        for change in watched:
            receiver.take(store.apply([happen(*change)]))
        for change in missed:
            happen(*change)
        read(pages=bool(whole))
    read(pages=True)
    assert receiver.held == {key: one.value for key, one in cluster.items()}
    assert len(store) == len(cluster)


def test_what_did_not_change_is_not_told_again() -> None:
    """A new list of 100,000 objects after an outage costs what changed."""
    store: Store[Thing] = Store()
    store.apply([entry("a", "1"), entry("b", "1")])
    assert store.relist().take([entry("a", "1"), entry("b", "2")]).keys() == {"b"}


def test_versions_are_compared_for_equality_only() -> None:
    """They are opaque: a smaller one is as new as a larger."""
    store: Store[Thing] = Store()
    store.apply([entry("a", "9")])
    assert store.apply([entry("a", "10")]).keys() == {"a"}
    assert store.apply([entry("a", "9")]).keys() == {"a"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("1", "01", id="a leading zero"),
        pytest.param("1", "+1", id="a sign"),
        pytest.param("1", "1_", id="an underscore"),
        pytest.param("10", "1_0", id="an underscore inside"),
        pytest.param("1", " 1", id="a blank"),
        pytest.param("1", "\u0661", id="a digit of another script"),
        pytest.param("1", "\u00b9", id="a superscript"),
        pytest.param("0", "00", id="zeros"),
        pytest.param("9" * 19, "9" * 20, id="many digits"),
        pytest.param("1", "v1", id="a letter"),
    ],
)
def test_versions_are_equal_only_if_their_texts_are(one: str, other: str) -> None:
    """A number is stored as one, and is shown as it came."""
    store: Store[Thing] = Store()
    for version in (one, other, one):
        assert store.apply([entry("a", version)]).keys() == {"a"}
        assert store.apply([entry("a", version)]) == {}
        assert store.version_of("a") == version


def test_object_without_version_always_counts_as_changed() -> None:
    """Rather too often than never."""
    store: Store[Thing] = Store()
    store.apply([entry("a", "")])
    assert store.apply([entry("a", "")]).keys() == {"a"}


def test_only_heavy_losses_are_doubted() -> None:
    """All of anything, or more than nine tenths of twenty and more."""

    def is_doubted(held: int, left: int) -> bool:
        store: Store[Thing] = Store()
        store.apply([entry(str(number), "1") for number in range(held)])
        relist = store.relist()
        relist.take([entry(str(number), "1") for number in range(left)])
        return relist.is_doubtful

    assert is_doubted(1, 0)
    assert is_doubted(100, 0)
    assert is_doubted(100, 9)
    assert not is_doubted(0, 0)
    assert not is_doubted(19, 1)
    assert not is_doubted(100, 10)


def test_an_object_that_comes_twice_in_a_list_counts_once() -> None:
    store: Store[Thing] = Store()
    store.apply([entry(str(number), "1") for number in range(100)])
    relist = store.relist()
    for _ in range(20):
        relist.take([entry("7", "1")])
    assert relist.is_doubtful
    assert {one.key for one in relist.missing()} == {str(number) for number in range(100) if number != 7}


@pytest.mark.parametrize(
    ("expected", "held", "left", "doubted"),
    [
        pytest.param(100, 0, 0, True, id="the first list is empty"),
        pytest.param(100, 0, 9, True, id="the first list has next to nothing"),
        pytest.param(100, 0, 10, False, id="the first list has enough"),
        pytest.param(100, 30, 0, True, id="a list was cut before"),
        pytest.param(1, 100, 9, True, id="more are held than were expected"),
        pytest.param(0, 0, 0, False, id="nothing was expected"),
    ],
)
def test_what_an_earlier_run_knew_is_missed_too(expected: int, held: int, left: int, doubted: bool) -> None:
    """Until a list is believed."""
    store: Store[Thing] = Store(expected=expected)
    store.apply([entry(str(number), "1") for number in range(held)])
    relist = store.relist()
    relist.take([entry(str(number), "1") for number in range(left)])
    assert relist.is_doubtful is doubted


def test_an_object_is_new_once_its_version_was_forgotten() -> None:
    """In a restored cluster, another content may have the version that is known."""
    store: Store[Thing] = Store()
    store.apply([entry("a", "1"), entry("b", "2")])
    store.forget_versions()
    assert len(store) == 2
    assert list(store.apply([entry("a", "1")])) == ["a"]
    assert store.apply([entry("a", "1")]) == {}
    assert store.apply([Entry("b", "2", None)]) == {"b": None}
