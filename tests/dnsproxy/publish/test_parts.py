"""Parts of a document: joined whole or not at all."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.publish import parts
from dnsproxy.publish.parts import Part, count_parts, is_part, join_parts, split_document


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "LARGEST_PART", 10)
        yield


@given(st.binary(max_size=160), st.randoms(use_true_random=False))
def test_the_parts_in_any_order_make_the_document(octets: bytes, rng: random.Random) -> None:
    pieces = split_document(octets)
    assert all(is_part(part.key) and count_parts(part.key) == len(pieces) for part in pieces)
    assert all(len(part.octets) <= 10 for part in pieces)
    rng.shuffle(pieces)
    assert join_parts([*pieces, Part("README", b"")]) == octets


def test_a_document_for_more_parts_than_there_may_be_is_refused() -> None:
    with pytest.raises(ValueError, match="161 octets, more than 16 ConfigMaps"):
        split_document(b"x" * 161)


ONE = split_document(b"one" * 700_000)
OTHER = split_document(b"two" * 700_000)


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        pytest.param([], "no part", id="nothing"),
        pytest.param([Part("names.json.gz", b"x")], "no part", id="another name"),
        pytest.param(ONE[:-1], "not all of one", id="one is missing"),
        pytest.param([*ONE[:1], *OTHER[1:]], "not all of one", id="mixed"),
        pytest.param([ONE[0], ONE[1], Part(ONE[2].key, b"x")], "not all of one", id="one is broken"),
        pytest.param([*ONE, *OTHER], "two publications", id="two documents"),
    ],
)
def test_what_is_no_one_document_is_refused(pieces: list[Part], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        join_parts(pieces)


def test_a_document_beside_parts_of_another_is_taken() -> None:
    """Leftovers of a killed writer do no harm."""
    assert join_parts([*ONE, *OTHER[:2]]) == b"one" * 700_000


@pytest.mark.parametrize(
    "key", ["", "names", "names-0123456789abcdef-1-of-1.json", "names-0123456789ABCDEF-1-of-1.json.gz", "x.json.gz"]
)
def test_other_keys_are_no_parts(key: str) -> None:
    assert (is_part(key), count_parts(key)) == (False, 0)
