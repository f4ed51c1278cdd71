"""One object, or one whole list, or the error that ended it."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from trio.testing import MockClock

from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, Gone, NotFound, ServerTrouble
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from sidecar.kubernetes.one_shot import get_object, list_all
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
        pytest.param([page(thing("a"), token="x"), failure(500, "InternalError")], ApiError, id="the second page"),
        pytest.param([page(thing("a"), token="x"), failure(410, "Expired")], Gone, id="a token that expires again"),
    ],
)
async def test_what_ends_it_is_raised_as_it_is(
    autojump_clock: MockClock, answers: list[Answer], error: type[ApiError]
) -> None:
    async with client_in_memory(FaultyApi(answers)) as client:
        with pytest.raises(error):
            await list_all(client, THINGS)


async def test_a_continue_token_that_expired_restarts_the_list(autojump_clock: MockClock) -> None:
    first = page(thing("a"), thing("gone"), token="x")
    found, api = await listed(first, failure(410, "Expired"), page(thing("a"), token="y"), page(thing("b")))
    assert list(found) == ["default/a", "default/b"]
    assert [asked.params.get("continue") for asked in api.asked] == [None, "x", None, "y"]


async def test_a_list_is_asked_for_in_chunks_and_a_few_objects_in_one(autojump_clock: MockClock) -> None:
    api = FaultyApi([page(thing("a"), thing("b"), token="x"), page(thing("c"))])
    async with client_in_memory(api) as client:
        assert list(await list_all(client, THINGS, most=2)) == ["default/a", "default/b"]
    assert [asked.params["limit"] for asked in api.asked] == ["2"]
    _, api = await listed(page(thing("a"), token="x"), page(thing("b")))
    assert api.asked[0].params["limit"] == "500"
    assert int(api.asked[1].params["limit"]) > 500


async def test_an_item_that_is_no_object_is_reported_where_the_caller_wants_the_rest(
    autojump_clock: MockClock,
) -> None:
    garbled: list[Garbled] = []
    async with client_in_memory(FaultyApi([page(thing("a"), None, thing("b", size="large"))])) as client:
        found = await list_all(client, THINGS, on_garbled=garbled.append)
    assert isinstance(found["default/b"], Unreadable)
    assert (list(found), len(garbled)) == (["default/a", "default/b"], 1)


async def test_an_object_is_read_or_the_reason_is_raised(autojump_clock: MockClock) -> None:
    answers = [Answer([json.dumps(thing("a", size=size)).encode()]) for size in (3, "large")]
    async with client_in_memory(FaultyApi([*answers, failure(404, "NotFound")])) as client:
        assert (await get_object(client, f"{THINGS.path}/a", Thing)).spec.size == 3
        with pytest.raises(Garbled, match="Expected `int`"):
            await get_object(client, f"{THINGS.path}/a", Thing)
        with pytest.raises(NotFound):
            await get_object(client, f"{THINGS.path}/a", Thing)
