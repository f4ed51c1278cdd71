"""What the pods of dnsproxy say about their names: asked directly, or through the API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dnsproxy.admin.pod_documents import MOST_PODS
from dnsproxy.admin.subjects_document import format_subjects
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.hostnames.wide_wildcards import WideWildcard
from dnsproxy.install.report.hint_rows import Hints
from dnsproxy.install.run.hint_reading import read_hints
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.doctor.collect.cluster_api import Api
from tests.dnsproxy.install.run.test_version_reading import OWN, SLICES, pods
from tests.kit.ports import free_port

ROUTER = UnknownAddress(address="198.51.100.1", hostnames=3, asked=4, examples=("app.example.org",))
LESS = UnknownAddress(address="198.51.100.1", hostnames=2, asked=2, examples=("app.example.org",))
WIDE = WideWildcard(hostname="*.example.org", origin="Ingress shop/web")


def said(*addresses: UnknownAddress, wide: tuple[WideWildcard, ...] = ()) -> str:
    return format_subjects((), unknown_addresses=addresses, wide=wide)[0].decode()


def proxied(pod: str, port: int) -> str:
    return f"/api/v1/namespaces/switchback/pods/{pod}:{port}/proxy/subjects"


@pytest.fixture
def port() -> int:
    """A port on which nothing listens."""
    return free_port()


async def read(api: Api, admin: Endpoint | None = None) -> Hints:
    async with api.client() as client:
        return await read_hints(client, OWN, admin)


async def test_what_several_pods_say_is_there_once(port: int) -> None:
    slices = [pods("dnsproxy", "a", "b", port=port)]
    answers = {proxied("a", port): said(LESS, wide=(WIDE,)), proxied("b", port): said(ROUTER)}
    assert await read(Api({SLICES: slices, **answers})) == Hints((ROUTER,), (WIDE,))


async def test_one_pod_that_says_nothing_hides_no_other(port: int) -> None:
    slices = [pods("dnsproxy", "a", "b", port=port)]
    api = Api({SLICES: slices, proxied("b", port): said(ROUTER)}, status={proxied("a", port): 403})
    assert await read(api) == Hints((ROUTER,))


@pytest.mark.parametrize(
    ("answer", "status"),
    [(None, 403), (None, 404), (None, 500), ("", 200), ("ready", 200), ("[]", 200), ('{"subjects": 1}', 200),
     (json.dumps({"subjects": [], "wide": [{"hostname": "example.org", "origin": "x"}]}), 200)],
    ids=["forbidden", "an older one", "failing", "empty", "text", "a list", "a number", "no wildcard"],
)  # fmt: skip
async def test_a_pod_that_gives_no_document_is_a_reason(answer: str | None, status: int, port: int) -> None:
    objects: dict[str, Any] = {SLICES: [pods("dnsproxy", "a", port=port)]}
    if answer is not None:
        objects[proxied("a", port)] = answer
    found = await read(Api(objects, status={} if status == 200 else {proxied("a", port): status}))
    assert found.unknown.startswith("pod a: ")
    assert (found.unknown_addresses, found.wide) == ((), ())


async def test_where_no_dnsproxy_runs_nothing_is_unknown(port: int) -> None:
    assert await read(Api({})) == Hints()
    assert await read(Api({SLICES: []})) == Hints()
    assert await read(Api({SLICES: [pods("dnsproxy", "a", port=port, ready=False)]})) == Hints()


async def test_pods_that_may_not_be_listed_are_a_reason() -> None:
    assert "could not be listed" in (await read(Api({}, status={SLICES: 403}))).unknown


async def test_only_a_few_pods_are_asked(port: int) -> None:
    many = [f"p{number}" for number in range(3 * MOST_PODS)]
    api = Api({SLICES: [pods("dnsproxy", *many, port=port)], **{proxied(one, port): said(ROUTER) for one in many}})
    assert (await read(api)).unknown_addresses == (ROUTER,)
    assert len([path for _, path in api.asked if path.endswith("/subjects")]) == MOST_PODS


async def test_a_server_that_is_named_is_asked_alone_and_may_say_nothing(port: int) -> None:
    api = Api({SLICES: [pods("dnsproxy", "a", port=port)], proxied("a", port): said(ROUTER)})
    found = await read(api, Endpoint("127.0.0.1", port))
    assert found.unknown.startswith(f"--from 127.0.0.1:{port}: ")
    assert api.asked == []
