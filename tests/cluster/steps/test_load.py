"""The load counts correctly: lost, wrong and late replies must show."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.steps import load

WANTED = "192.0.2.7"
ADDRESS = socket.inet_aton(WANTED)


def answered(query: bytes) -> bytes:
    """A reply with one A record."""
    record = b"\xc0\x0c\0\1\0\1\0\0\0\5\0\4" + ADDRESS
    return query[:2] + b"\x84\x00\0\1\0\1\0\0\0\0" + query[12:] + record


@contextmanager
def nameserver(*replies: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """A server on 127.0.0.54, whose port 53 load.py asks; it sends all of the replies to each query."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        try:
            server.bind(("127.0.0.54", 53))
        except PermissionError:
            pytest.skip("port 53 needs root")

        def serve() -> None:
            while True:
                query, client = server.recvfrom(4096)
                if not query:
                    return
                for said in [reply(query) for reply in replies]:
                    if said is not None:
                        server.sendto(said, client)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
                end.sendto(b"", ("127.0.0.54", 53))
            thread.join()


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answered, "ok"),
        (lambda query: answered(query)[:-1] + b"\x08", "another address"),
        (lambda query: query[:2] + b"\x84\x02" + query[4:], "rcode 2"),
        (lambda query: query[:2] + b"\x84\x03" + query[4:], "rcode 3"),
        (lambda query: bytes([query[0] ^ 1]) + answered(query)[1:], "TimeoutError"),
        (lambda _: None, "TimeoutError"),
    ],
    ids=["right", "another address", "SERVFAIL", "NXDOMAIN", "another ID", "silence"],
)
def test_a_lookup_is_counted_correctly(
    reply: Callable[[bytes], bytes | None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if said == "TimeoutError":
        monkeypatch.setattr(load, "PATIENCE", 0.2)
    with nameserver(reply):
        assert load.look_up("127.0.0.54", "h1.apps.example.org", WANTED) == said


@pytest.mark.parametrize("at", [0, 13], ids=["another ID", "another name"])
def test_a_late_reply_to_an_earlier_owner_of_the_port_is_dropped(at: int) -> None:
    def of_another(query: bytes) -> bytes:
        """REFUSED, as CoreDNS says to its own look for a loop, four seconds late when dnsproxy hangs."""
        reply = bytearray(query)
        reply[2:4] = b"\x84\x05"
        reply[at] ^= 1
        return bytes(reply)

    with nameserver(of_another, answered):
        assert load.look_up("127.0.0.54", "h1.apps.example.org", WANTED) == "ok"


def test_every_number_is_asked_once() -> None:
    asked: list[int] = []

    def ask(number: int) -> str:
        asked.append(number)
        return "ok" if number % 2 else "lost"

    counted = load.many(ask, lambda number: number < 100, workers=8)
    assert sorted(asked) == list(range(100))
    assert counted["said"] == {"ok": 50, "lost": 50}
    times = counted["first_and_last"]
    assert isinstance(times, dict)
    # What went well needs no time; a loss is looked up in the logs of the other programs.
    assert times.keys() == {"lost"}
    assert times["lost"] == sorted(times["lost"])


def test_a_paced_load_asks_at_its_rate_and_counts_no_wait_as_an_answer() -> None:
    begun = time.monotonic()
    counted = load.many(lambda _: "ok", lambda number: number < 10, workers=20, pace=5.0)
    assert counted["said"] == {"ok": 10}
    assert time.monotonic() - begun >= 9 / 5
    slowest = counted["slowest"]
    assert isinstance(slowest, float)
    # The last one has waited for longer; a thread without a processor may lose a part of it.
    assert slowest < 9 / 5


def test_a_name_that_should_not_exist_is_right_if_it_does_not() -> None:
    with nameserver(lambda query: query[:2] + b"\x84\x03" + query[4:]):
        assert load.look_up("127.0.0.54", "h1.example.org", load.NXDOMAIN) == "ok"
    with nameserver(answered):
        assert load.look_up("127.0.0.54", "h1.example.org", load.NXDOMAIN) != "ok"


def test_it_runs_until_it_is_stopped_and_asks_at_least_the_given_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, asked = tmp_path / "stop", list[str]()

    def fetch(url: str) -> str:
        asked.append(url)
        if len(asked) >= 40:
            stop.touch()
        return "ok"

    monkeypatch.setattr(load, "fetch", fetch)
    monkeypatch.setattr(load, "look_up", lambda *_: "ok")
    assert load.main("http", str(stop), "http://app.example.org/")["said"] == {"ok": len(asked)}
    # Each of four workers may be at one more request when the file appears.
    assert 40 <= len(asked) <= 44
    assert load.main("dns", str(stop), "192.0.2.53", "example.org", "192.0.2.7", "70")["said"] == {"ok": 70}


def test_a_page_of_a_given_address_is_asked_for_by_its_name_and_resolves_nothing() -> None:
    asked: list[bytes] = []

    def answer() -> None:
        client, _ = server.accept()
        with client:
            asked.append(client.recv(4096))
            client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=answer)
        thread.start()
        assert load.fetch(f"http://app.example.org:{port}/there", "::1") == "ok"
        thread.join()
    assert asked[0].startswith(b"GET /there HTTP/1.1\r\n")
    assert f"host: app.example.org:{port}\r\n".encode() in asked[0]


def test_a_refused_connection_is_no_success() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert load.fetch(f"http://127.0.0.1:{unused.getsockname()[1]}/") == "ConnectionRefusedError"
