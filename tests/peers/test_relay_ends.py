"""The real proxy command in cases that need a process: signals, limits, memory, faults."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.kit.log_lines import whole_lines
from tests.kit.processes import end_process
from tests.kit.programs import program
from tests.kit.relaying import read_header, read_to_end, send_all, until
from tests.kit.relays import start_relay
from tests.kit.scraping import scrape

V4 = "127.0.0.1"
BLOCK = bytes(range(256)) * 1024
"""A quarter of a megabyte."""


@dataclass
class Running:
    """The relay's process, and the backend's listening socket."""

    process: subprocess.Popen[bytes]
    backend: trio.socket.SocketType
    port: int
    admin: str
    log: Path

    async def connect(self) -> trio.socket.SocketType:
        client = trio.socket.socket()
        try:
            await client.connect((V4, self.port))
        except BaseException:
            client.close()
            raise
        return client

    async def accept(self) -> trio.socket.SocketType:
        backend, _ = await self.backend.accept()
        await read_header(backend)
        return backend

    async def pair(self) -> tuple[trio.socket.SocketType, trio.socket.SocketType]:
        return await self.connect(), await self.accept()

    def events(self) -> list[Any]:
        """The lines of the log."""
        return [json.loads(line) for line in whole_lines(self.log) if line.startswith("{")]

    def said(self, event: str) -> int:
        return sum(row["event"] == event for row in self.events())

    def resident(self) -> int:
        """Resident memory in octets."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(command, stderr=output, stdout=output)


@asynccontextmanager
async def running(folder: Path, *arguments: str, wrapper: Sequence[str] = ()) -> AsyncIterator[Running]:
    log = folder / "relay.log"
    with trio.socket.socket() as backend, ExitStack() as stack:
        await backend.bind((V4, 0))
        backend.listen(4096)
        target = backend.getsockname()[1]

        def command(port: int, admin: int) -> list[str]:
            where = ["--route", f"{V4}:{port}={V4}:{target}", "--admin", f"{V4}:{admin}"]
            return [*wrapper, sys.executable, "-m", "proxy", *where, *arguments]

        process, (port, admin) = await trio.to_thread.run_sync(start_relay, command, log)
        stack.callback(end_process, process)
        yield Running(process, backend, port, f"{V4}:{admin}", log)


async def test_a_drain_under_load_breaks_no_download_and_takes_no_new_client(tmp_path: Path) -> None:
    count, blocks = 40, 8
    whole = hashlib.sha256(BLOCK * blocks).hexdigest()
    go_on = trio.Event()
    received: list[tuple[str, str]] = []
    async with running(tmp_path, "--drain", "60") as relay:
        async with trio.open_nursery() as nursery:

            async def serve(backend: trio.socket.SocketType) -> None:
                with backend:
                    for number in range(blocks):
                        if number == blocks // 2:
                            await go_on.wait()
                        await send_all(backend, BLOCK)

            async def download(client: trio.socket.SocketType) -> None:
                with client:
                    octets, end = await read_to_end(client)
                    received.append((hashlib.sha256(octets).hexdigest(), end))

            for _ in range(count):
                client, backend = await relay.pair()
                nursery.start_soon(download, client)
                nursery.start_soon(serve, backend)
            relay.process.send_signal(signal.SIGTERM)
            await until(lambda: relay.said("draining"))
            with pytest.raises(ConnectionRefusedError):
                await relay.connect()
            go_on.set()
        assert received == [(whole, "fin")] * count
        assert await trio.to_thread.run_sync(relay.process.wait, 30) == 0
        assert not relay.said("connections reset")


async def test_what_has_not_finished_by_the_end_of_the_grace_is_reset_and_the_status_is_0(tmp_path: Path) -> None:
    async with running(tmp_path, "--drain", "0.5") as relay:
        pairs = [await relay.pair() for _ in range(20)]
        for client, backend in pairs:
            await backend.send(b"a part")
            assert await client.recv(100) == b"a part"
        relay.process.send_signal(signal.SIGTERM)
        for client, backend in pairs:
            with client, backend:
                assert await read_to_end(client) == (b"", "reset")
                assert await read_to_end(backend) == (b"", "reset")
        assert await trio.to_thread.run_sync(relay.process.wait, 30) == 0
        assert relay.said("connections reset") == 1


async def test_while_it_drains_the_relay_is_not_ready(tmp_path: Path) -> None:
    async with running(tmp_path, "--drain", "60") as relay:
        client, backend = await relay.pair()
        with client, backend:
            relay.process.send_signal(signal.SIGTERM)
            await until(lambda: relay.said("draining"))
            host, port = relay.admin.split(":")
            async with await trio.open_tcp_stream(host, int(port)) as admin:
                await admin.send_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = b"".join([bytes(part) async for part in admin])
            assert answer.startswith(b"HTTP/1.1 503")
            assert answer.endswith(b"stopping\n")


async def test_a_hundred_slow_readers_cost_a_bounded_memory_each(tmp_path: Path) -> None:
    count, most_each = 100, 300_000
    async with running(tmp_path) as relay:
        warm = await relay.pair()
        for stream in warm:
            stream.close()
        before = await trio.to_thread.run_sync(relay.resident)
        pairs = [await relay.pair() for _ in range(count)]
        sent = [0] * count

        async def fill(number: int) -> None:
            backend = pairs[number][1]
            while True:
                # Once the kernel's buffers and ours are full, the stream pauses for two seconds.
                with trio.move_on_after(2) as stuck:
                    sent[number] += await backend.send(BLOCK)
                if stuck.cancelled_caught:
                    return

        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(fill, number)
        after = await trio.to_thread.run_sync(relay.resident)
        assert after - before < count * most_each
        # All data that they were sent has arrived; one of them is read to its end.
        client, backend = pairs[count // 2]
        backend.shutdown(socket.SHUT_WR)
        octets, end = await read_to_end(client)
        assert (len(octets), end) == (sent[count // 2], "fin")
        for pair in pairs:
            for stream in pair:
                stream.close()


async def test_probes_leave_the_log_and_the_descriptors_as_they_were(tmp_path: Path) -> None:
    async with running(tmp_path) as relay:
        said, open_before = len(relay.events()), relay.descriptors()

        async def hear_out(backend: trio.socket.SocketType) -> None:
            with backend:
                await read_to_end(backend)

        async def serve() -> None:
            while True:
                backend, _ = await relay.backend.accept()
                nursery.start_soon(hear_out, backend)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            for _ in range(500):
                (await relay.connect()).close()
            await until(lambda: scrape(relay.admin)["proxy_connections_total"] == 500)
            await until(lambda: scrape(relay.admin)["proxy_connections_active"] == 0)
            nursery.cancel_scope.cancel()
        assert len(relay.events()) == said
        await until(lambda: relay.descriptors() <= open_before + 1)


@pytest.mark.peer("strace")
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("accept4:error=EMFILE:when=2..12", id="EMFILE in accept"),
        pytest.param("accept4:error=ECONNABORTED:when=2..12", id="ECONNABORTED in accept"),
        pytest.param("accept4:error=ENOBUFS:when=2..12", id="ENOBUFS in accept"),
    ],
)
async def test_a_fault_in_accept_delays_only_new_clients(tmp_path: Path, fault: str) -> None:
    # -D: the relay is our child, and strace is not; killing strace would leave the relay running.
    wrapper = [program("strace"), "-D", "-f", "-q", "-o", os.devnull, "-e", "trace=accept4", "-e", f"inject={fault}"]
    async with running(tmp_path, wrapper=wrapper) as relay:
        client, backend = await relay.pair()
        with client, backend:
            waiting = await relay.connect()
            with waiting:
                await waiting.send(b"waited")
                await client.send(b"still here")
                assert await backend.recv(100) == b"still here"
                served = await relay.accept()
                with served:
                    assert await served.recv(100) == b"waited"
        assert relay.process.poll() is None


@pytest.mark.peer("strace")
async def test_no_descriptor_for_a_backend_costs_that_client_alone(tmp_path: Path) -> None:
    fault = "socket:error=EMFILE:when=1..1000"
    async with running(tmp_path) as relay:
        client, backend = await relay.pair()
        command = [program("strace"), "-f", "-q", "-o", os.devnull, "-p", str(relay.process.pid)]
        tracer = start([*command, "-e", "trace=socket", "-e", f"inject={fault}"], tmp_path / "strace.log")
        try:
            with client, backend:
                await until(lambda: "TracerPid:\t0" not in Path(f"/proc/{relay.process.pid}/status").read_text())
                # The reset may arrive before connect returns.
                with suppress(ConnectionResetError), await relay.connect() as ended:
                    assert await read_to_end(ended) == (b"", "reset")
                await client.send(b"still here")
                assert await backend.recv(100) == b"still here"
                assert relay.said("not accepting for now") == 1
                assert not relay.said("backend unreachable")
        finally:
            tracer.terminate()
            tracer.wait()
        again, served = await relay.pair()
        again.close()
        served.close()
