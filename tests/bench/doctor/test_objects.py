from __future__ import annotations

import json

import pytest

from tests.bench.doctor.filling import copy_of
from tests.bench.doctor.objects import BigKind, Size, hostname_of, texts_of

KINDS = tuple(Size().counts)


@pytest.mark.parametrize("number", [1, 9, 99, 1234, 99_999])
def test_what_differs_between_two_objects_keeps_its_length(number: int) -> None:
    assert list(map(len, texts_of(number))) == list(map(len, texts_of(0)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_copy_of_the_first_object_is_the_other_object(kind: BigKind) -> None:
    copied = json.loads(copy_of(json.dumps(kind.make(0)).encode(), "no-uid", 1234))
    assert copied == kind.make(1234)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_object_is_kept_at_its_own_place(kind: BigKind) -> None:
    assert len({kind.stored_at(number) for number in range(300)}) == 300
    assert "{}" not in kind.collection(1)


def test_hosts_are_different() -> None:
    assert len({hostname_of(number) for number in range(1000)}) == 1000
