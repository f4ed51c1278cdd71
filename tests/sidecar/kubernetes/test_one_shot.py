"""One whole list, or the error that ended it."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from trio.testing import MockClock

from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, NotFound, ServerTrouble
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from sidecar.kubernetes.one_shot import list_all
from tests.kit.faulty_api import CUT, Answer, FaultyApi, client_in_memory, failure, page, thing


class _Spec(msgspec.Struct):
    size: int = 0


class Thing(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec


THINGS = Collection("Thing", "/apis/example.org/v1/things", Thing, label_selector="a=b")


async def listed(*answers: Answer) -> tuple[dict[str, Any], FaultyApi]:
    api = FaultyApi(answers)
    async with client_in_memory(api) as client:
        return await list_all(client, THINGS), api


async def test_all_pages_are_one_list(autojump_clock: MockClock) -> None:
    found, api = await listed(page(thing("a"), token="x"), page(thing("b"), thing("c")))
    assert list(found) == ["default/a", "default/b", "default/c"]
    assert api.asked[0].params["labelSelector"] == "a=b"
    assert api.asked[1].params["continue"] == "x"


async def test_nothing_is_a_list_too(autojump_clock: MockClock) -> None:
    assert (await listed(page()))[0] == {}


async def test_an_object_that_cannot_be_read_is_said_to_be_so(autojump_clock: MockClock) -> None:
    found, _ = await listed(page(thing("a", size="large"), thing("b", size=1)))
    assert isinstance(found["default/a"], Unreadable)
    assert isinstance(found["default/b"], Thing)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        pytest.param([failure(403, "Forbidden")], Forbidden, id="forbidden"),
        pytest.param([failure(404, "NotFound")], NotFound, id="no such kind"),
        pytest.param([failure(503, "ServiceUnavailable")], ServerTrouble, id="ill"),
        pytest.param([Answer([b"<html>"])], Garbled, id="no list"),
        pytest.param([page(None)], Garbled, id="no object"),
        pytest.param([Answer([b'{"met', CUT])], ServerTrouble, id="cut"),
        pytest.param([page(thing("a"), token="x"), failure(410, "Expired")], ApiError, id="the second page"),
    ],
)
async def test_what_ends_it_is_raised_as_it_is(
    autojump_clock: MockClock, answers: list[Answer], error: type[ApiError]
) -> None:
    async with client_in_memory(FaultyApi(answers)) as client:
        with pytest.raises(error):
            await list_all(client, THINGS)
