"""The admin server, with answers.py, sending.py and newest.py, on real loopback sockets, with clients of every kind."""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry, Counter

from sidecar.admin import sending
from sidecar.admin import server as admin
from sidecar.admin.answers import JSON, Answer, page_answer
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.descriptors import admin_share
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint


class World:
    """What the served functions read; a test changes it."""

    def __init__(self) -> None:
        self.readiness = Readiness(ready=True, reason="ready")
        self.page = "<h1>status</h1>"
        self.pieces = 0
        self.turns: list[int] = []
        self.endpoint = Endpoint("127.0.0.1", 0)

    async def ready(self) -> Readiness:
        return self.readiness

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream(self.endpoint.host, self.endpoint.port)

    async def ask(self, octets: bytes) -> tuple[int, dict[str, str], bytes]:
        async with await self.connect() as stream:
            await stream.send_all(octets)
            return parse(await read_all(stream))

    async def get(self, target: str, method: str = "GET", headers: str = "") -> tuple[int, dict[str, str], bytes]:
        return await self.ask(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())


async def read_all(stream: trio.SocketStream) -> bytes:
    return b"".join([bytes(part) async for part in stream])


def parse(response: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = response.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:]), body


@asynccontextmanager
async def served() -> AsyncIterator[World]:
    world = World()
    registry = CollectorRegistry()
    Counter("things", "Things that happened.", registry=registry).inc(3)

    def fail(_: object) -> Answer:
        raise RuntimeError("a bug in a page")

    def pieces() -> Iterator[bytes]:
        yield b"["
        world.pieces += 1
        yield b""
        yield b"1]"

    def steps(number: int) -> Generator[None, None, str]:
        for _ in range(number):
            world.turns.append(number)
            yield
        return "<h1>found</h1>"

    def tagged(query: Mapping[str, str]) -> Answer:
        return Answer(int(query.get("status", "200")), b"body", JSON, {"ETag": query.get("tag", '"one"')})

    async def slow(query: Mapping[str, str]) -> Answer:
        await trio.sleep_until(trio.current_time() + float(query["seconds"]))
        return Answer(200, b"at last")

    listener = listen_tcp(world.endpoint, flag="--admin")
    world.endpoint = bound_endpoint(listener)
    async with trio.open_nursery() as nursery:
        await nursery.start(
            lambda *, task_status: serve_admin(
                [listener],
                readiness=world.ready,
                registry=registry,
                page=lambda: world.page,
                routes={
                    "/table": lambda _: Answer(200, pieces(), JSON),
                    "/note": lambda query: Answer(200, str(query).encode()),
                    "/tagged": tagged,
                    "/slow": slow,
                    "/broken": fail,
                    "/endless": lambda _: Answer(200, itertools.repeat(b"x" * 1_000_000)),
                    "/steps": lambda query: page_answer(steps(int(query.get("number", "3")))),
                    "/breaks": lambda _: Answer(200, (1 // number * b"x" for number in (1, 1, 0))),
                },
                names=frozenset({"admin.example.org"}),
                task_status=task_status,
            )
        )
        yield world
        nursery.cancel_scope.cancel()


async def test_health_is_always_ok() -> None:
    async with served() as world:
        world.readiness = Readiness(ready=False, reason="no table yet")
        assert (await world.get("/healthz"))[0] == 200


async def test_readiness_gives_the_status_and_the_reason_of_now() -> None:
    async with served() as world:
        assert (await world.get("/readyz"))[::2] == (200, b"ready\n")
        world.readiness = Readiness(ready=False, reason="backend unreachable (dns-nxdomain)")
        assert (await world.get("/readyz"))[::2] == (503, b"backend unreachable (dns-nxdomain)\n")


async def test_more_lines_follow_the_reason_and_a_stranger_gets_none() -> None:
    async with served() as world:
        world.readiness = Readiness(ready=True, reason="ready", more=("route a", "route b"))
        assert (await world.get("/readyz"))[::2] == (200, b"ready\nroute a\nroute b\n")
        found = await world.ask(b"GET /readyz HTTP/1.1\r\nHost: example.net\r\n\r\n")
        assert found[::2] == (200, b"ready\n")


@pytest.mark.parametrize(
    ("host", "detailed"),
    [
        pytest.param("Host: 10.244.0.5:8082", True, id="the kubelet, by the pod's address"),
        pytest.param("Host: admin.example.org", True, id="a known name"),
        pytest.param("Host:", True, id="none stated"),
        pytest.param("Host: example.net:8082", False, id="a stranger's name"),
        pytest.param("Host: localhost.example.net", False, id="a name below a stranger's"),
    ],
)
async def test_a_stranger_gets_the_readiness_without_its_reason(host: str, detailed: bool) -> None:
    async with served() as world:
        for ready, status, word in ((True, 200, b"ready\n"), (False, 503, b"not ready\n")):
            world.readiness = Readiness(ready=ready, reason="of backend.example.org")
            found = await world.ask(f"GET /readyz HTTP/1.1\r\n{host}\r\n\r\n".encode())
            assert found[::2] == (status, b"of backend.example.org\n" if detailed else word)


async def test_a_readiness_check_that_hangs_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang() -> Readiness:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(admin, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(World, "ready", lambda _: hang())
    async with served() as world:
        status, _, body = await world.get("/readyz")
        assert status == 503
        assert b"took longer" in body


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("", "text/plain", id="text for whoever says nothing"),
        pytest.param("Accept: application/openmetrics-text\r\n", "application/openmetrics-text", id="openmetrics"),
    ],
)
async def test_metrics_come_in_the_format_that_is_asked_for(accept: str, content_type: str) -> None:
    async with served() as world:
        status, headers, body = await world.get("/metrics", headers=accept)
        assert status == 200
        assert headers["content-type"].startswith(content_type)
        assert b"things_total 3.0" in body


async def test_the_page_is_html_that_may_load_nothing() -> None:
    async with served() as world:
        status, headers, body = await world.get("/?x=1")
        assert (status, body) == (200, b"<h1>status</h1>")
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["content-security-policy"].startswith("default-src 'none'")


async def test_a_page_has_its_style_and_script_from_here_alone() -> None:
    async with served() as world:
        policy = (await world.get("/"))[1]["content-security-policy"]
        assert {one for one in policy.replace(";", "").split() if "'" in one} == {"'none'", "'self'"}
        for path in ("/style.css", "/script.js", "/icon.svg"):
            status, headers, _ = await world.get(path)
            assert (status, headers["x-content-type-options"]) == (200, "nosniff")
            assert (await world.get(path, headers=f"If-None-Match: {headers['etag']}\r\n"))[0] == 304


async def test_a_page_that_takes_steps_comes_when_it_is_made() -> None:
    async with served() as world:
        status, headers, body = await world.ask(b"GET /steps HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert (status, body) == (200, b"<h1>found</h1>")
        assert "content-security-policy" in headers


async def test_those_who_ask_for_much_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else runs on the loop waits for one slice, and not for one of each client."""
    monkeypatch.setattr(sending, "SLICE", 0)
    async with served() as world, trio.open_nursery() as nursery:
        for number in (1_000, 1_001, 1_002):
            nursery.start_soon(world.get, f"/steps?number={number}")
    changes = sum(1 for one, other in itertools.pairwise(world.turns) if one != other)
    assert sorted(world.turns) == [1_000] * 1_000 + [1_001] * 1_001 + [1_002] * 1_002
    assert changes > 1_000


async def test_of_too_many_large_answers_the_oldest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "MAXIMUM_STREAMS", 2)
    async with served() as world, await world.connect() as oldest:
        await oldest.send_all(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await oldest.receive_some(1) == b"H"
        async with await world.connect() as other:
            await other.send_all(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert await other.receive_some(1) == b"H"
            assert (await world.get("/table"))[0] == 200
            with contextlib.suppress(trio.BrokenResourceError):
                await read_all(oldest)


async def test_an_answer_in_pieces_comes_in_chunks_with_an_end() -> None:
    async with served() as world:
        status, headers, body = await world.get("/table")
        assert (status, headers["content-type"], headers["transfer-encoding"]) == (200, "application/json", "chunked")
        assert body == b"1\r\n[\r\n2\r\n1]\r\n0\r\n\r\n"


async def test_a_client_of_http_1_0_gets_the_pieces_as_they_are() -> None:
    async with served() as world:
        _, headers, body = await world.ask(b"GET /table HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert "transfer-encoding" not in headers
        assert body == b"[1]"


async def test_head_makes_no_piece() -> None:
    async with served() as world:
        status, headers, body = await world.get("/table", method="HEAD")
        assert (status, body, world.pieces) == (200, b"", 0)
        assert "content-length" not in headers


async def test_an_answer_that_breaks_off_has_no_end_and_the_server_lives() -> None:
    async with served() as world:
        assert (await world.get("/breaks"))[2] == b"1\r\nx\r\n1\r\nx\r\n"
        assert (await world.get("/healthz"))[0] == 200


async def test_others_are_served_while_a_large_answer_is_sent() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await stream.receive_some(1) == b"H"
        assert (await world.get("/healthz"))[0] == 200


async def test_an_answer_without_end_is_cut_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "STREAM_SECONDS", 0.05)
    async with served() as world, await world.connect() as stream:
        await stream.send_all(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        last = b""
        with contextlib.suppress(trio.BrokenResourceError):
            async for part in stream:
                last = bytes(part)
        assert not last.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("target", "given"),
    [
        pytest.param("/tagged", '"one"', id="the same"),
        pytest.param("/tagged", 'W/"one"', id="weak and strong"),
        pytest.param("/tagged?tag=W/%22one%22", '"one"', id="strong and weak"),
        pytest.param("/tagged", '"zero", W/"one" , "two"', id="one of several"),
        pytest.param("/tagged", "*", id="any"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_what_the_client_has_already_is_not_sent_again(target: str, given: str, method: str) -> None:
    async with served() as world:
        status, headers, body = await world.get(target, method, f"If-None-Match: {given}\r\n")
        assert (status, body) == (304, b"")
        assert headers["etag"].removeprefix("w/") == '"one"'
        assert not {"content-length", "content-type", "transfer-encoding"} & set(headers)


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        pytest.param("/tagged", "", 200, id="nothing is said"),
        pytest.param("/tagged", 'If-None-Match: "two"\r\n', 200, id="another"),
        pytest.param("/tagged", "If-None-Match: one\r\n", 200, id="without quotes"),
        pytest.param("/tagged", "If-None-Match:\r\n", 200, id="empty"),
        pytest.param("/tagged", 'If-None-Match: ,,W/,"\r\n', 200, id="nonsense"),
        pytest.param("/tagged?status=503", 'If-None-Match: "one"\r\n', 503, id="a failure"),
        pytest.param("/note", 'If-None-Match: ""\r\n', 200, id="a resource without a tag"),
        pytest.param("/note", "If-None-Match: *\r\n", 200, id="any, of a resource without a tag"),
    ],
)
async def test_what_the_client_may_not_have_is_sent(target: str, headers: str, status: int) -> None:
    async with served() as world:
        answer = await world.get(target, headers=headers)
        assert answer[0] == status
        assert answer[2] != b""


async def test_a_tagged_answer_may_be_kept_to_be_asked_about_and_others_not_at_all() -> None:
    async with served() as world:
        assert (await world.get("/tagged"))[1]["cache-control"] == "no-cache"
        assert (await world.get("/note"))[1]["cache-control"] == "no-store"


async def test_an_answer_that_takes_its_time_is_waited_for_and_others_are_served_meanwhile() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(b"GET /slow?seconds=0.2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await world.get("/healthz"))[0] == 200
        assert parse(await read_all(stream))[2] == b"at last"


async def test_an_answer_that_never_comes_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "ROUTE_SECONDS", 0.05)
    async with served() as world:
        assert (await world.get("/slow?seconds=1000"))[0] == 500


@pytest.mark.parametrize(
    ("target", "fields"),
    [
        pytest.param("/note", {}, id="no query"),
        pytest.param("/note?name=a&name=b%20c", {"name": "b c"}, id="the last of a name, decoded"),
        pytest.param("/note?name=", {"name": ""}, id="empty value"),
        pytest.param("/note?name=%ff%00", {"name": "\ufffd\0"}, id="octets that are no UTF-8"),
        pytest.param("/note?=&&&;", {"": "", ";": ""}, id="nonsense"),
        pytest.param("/note?" + "&".join(f"n{number}=" for number in range(17)), {}, id="too many fields"),
    ],
)
async def test_a_route_gets_the_fields_of_the_query(target: str, fields: dict[str, str]) -> None:
    async with served() as world:
        status, headers, body = await world.get(target)
        assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert body.decode() == str(fields)


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    async with served() as world:
        status, headers, body = await world.get("/", method="HEAD")
        assert (status, headers["content-length"], body) == (200, "15", b"")


@pytest.mark.parametrize(
    ("request_octets", "status"),
    [
        pytest.param(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, id="unknown path"),
        pytest.param(b"GET //healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, id="doubled slash"),
        pytest.param(b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, id="octets that are no target"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405, id="unknown method"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 413, id="a body"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n", 413, id="a body to come"
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 413, id="a chunked body"
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400, id="a length that is none"
        ),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, id="TLS"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\n\r\n", 400, id="PROXY header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 20_000, 431, id="a head without end"),
        pytest.param(b"GET /broken HTTP/1.1\r\nHost: localhost\r\n\r\n", 500, id="a page with a bug"),
        pytest.param(b"GET http://example.org/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, id="absolute form"),
        pytest.param(
            b"GET http://127.0.0.1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, id="absolute form without a path"
        ),
        pytest.param(
            b"GET http://example.org HTTP/1.1\r\nHost: localhost\r\n\r\n", 421, id="absolute form of a stranger"
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", 421, id="the name of a stranger"),
        pytest.param(b"GET /nothing HTTP/1.1\r\nHost: example.org\r\n\r\n", 421, id="a stranger, unknown path"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org\r\n\r\n", 400, id="two names"),
        pytest.param(b"GET /metrics HTTP/1.1\r\nHost: example.org\r\n\r\n", 200, id="a scraper with a name"),
        pytest.param(b"GET / HTTP/1.0\r\n\r\n", 200, id="HTTP/1.0 without a name"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: Admin.example.org\r\n\r\n", 200, id="a name of --admin-host"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: example.org:6443\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
            421,
            id="forged by a neighbour",
        ),
    ],
)
async def test_whatever_is_asked_gets_its_status_and_the_server_lives(request_octets: bytes, status: int) -> None:
    async with served() as world:
        assert (await world.ask(request_octets))[0] == status
        assert (await world.get("/healthz"))[0] == 200


async def test_a_client_that_leaves_in_the_middle_costs_nothing() -> None:
    async with served() as world:
        stream = await world.connect()
        await stream.send_all(b"GET / HT")
        await stream.aclose()
        reset = await world.connect()
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        await reset.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reset.aclose()
        assert (await world.get("/healthz"))[0] == 200


async def test_a_head_that_drips_is_cut_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "HEAD_SECONDS", 0.05)
    async with served() as world, await world.connect() as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\n")
        assert await read_all(stream) == b""


async def test_a_reader_that_does_not_read_is_cut_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SEND_SECONDS", 0.05)
    async with served() as world, await world.connect() as stream:
        world.page = "x" * 50_000_000
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # Nothing ran for four times the deadline, so it has passed.
        await trio.testing.wait_all_tasks_blocked(0.2)
        received = 0
        with contextlib.suppress(trio.BrokenResourceError):
            async for part in stream:
                received += len(part)
        assert received < len(world.page)


async def test_any_number_of_idle_clients_leaves_room_for_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    # A test holds both ends of each.
    monkeypatch.setattr(admin, "descriptor_limit", lambda: 256)
    async with served() as world, trio.open_nursery() as nursery:
        idle = [await world.connect() for _ in range(admin_share(256) * 3)]
        assert (await world.get("/healthz"))[0] == 200
        for stream in idle:
            nursery.start_soon(stream.aclose)
