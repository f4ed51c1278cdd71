"""A real NSD whose connections end after one reply, or lose their path: every query is answered, over TCP and TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from dnsproxy.forward.settings import TlsEndpoint
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward import certificates
from tests.kit import upstream_replies
from tests.kit.dns_server import Running, running, wait_until
from tests.kit.messages import TXT, query
from tests.kit.networks import one_network, root
from tests.kit.nsd import running_nsd
from tests.kit.ports import free_port
from tests.kit.programs import program

pytestmark = pytest.mark.peer("nsd")
__all__ = ["root"]

ONE_QUERY = "tcp-query-count: 1"


def records(number: int, *, octets: int) -> str:
    """TXT records whose replies are at least so large."""
    text = " ".join(f'"{place:03}{"x" * 197}"' for place in range(-(-octets // 200)))
    return "".join(f"h{place} IN TXT {text}\n" for place in range(number))


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy computer may need more than the deadline of a query for so many connections; nothing here waits for it."""
    monkeypatch.setattr("dnsproxy.forward.stream_forwarder.GIVE_UP", 20.0)


async def ask_all(world: Running, number: int) -> list[bytes]:
    """The replies to concurrent queries of clients over TCP."""
    found: list[bytes] = []

    async def ask(place: int) -> None:
        found.append(await world.ask_stream(query(f"h{place}.example.org", TXT, ident=place)))

    async with trio.open_nursery() as nursery:
        for place in range(number):
            nursery.start_soon(ask, place)
    return found


async def test_large_answers_over_tcp_all_arrive_though_each_ends_its_connection(tmp_path: Path) -> None:
    with running_nsd(tmp_path, records(40, octets=4000), options=[ONE_QUERY]) as port:
        async with running(Endpoint("127.0.0.1", port)) as world:
            for _ in range(3):
                found = await ask_all(world, 40)
                assert {upstream_replies.rcode_of(reply) for reply in found} == {upstream_replies.NOERROR}
                assert min(map(len, found)) > 4000
            assert not world.server.counters.forward_timeouts


async def test_queries_over_tls_are_all_answered_though_each_ends_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    with running_nsd(tmp_path, records(50, octets=200), options=[ONE_QUERY, *over_tls(tmp_path, port)]):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities.pem"))
        async with running(TlsEndpoint("127.0.0.1", port, certificates.NAME)) as world:
            for _ in range(3):
                found = await ask_all(world, 50)
                assert {upstream_replies.rcode_of(reply) for reply in found} == {upstream_replies.NOERROR}
            assert not world.server.counters.forward_timeouts


@pytest.mark.usefixtures("root")
@pytest.mark.peer("nft", "ip")
async def test_a_connection_whose_packets_a_firewall_drops_costs_no_client_over_tcp_its_reply(tmp_path: Path) -> None:
    """A NAT that has lost its state does this; both kernels send the lost segments again for minutes."""
    with one_network() as network, network.entered(), running_nsd(tmp_path, records(40, octets=4000)) as port:
        async with running(Endpoint("127.0.0.1", port)) as world:
            # One query: if several wait, and NSD is scheduled late, some are asked on a second connection.
            await ask_all(world, 1)
            (connection,) = world.forwarder.upstreams.used[0].pipeline._connections
            drop_packets_between(connection._stream.socket.getsockname()[1], port)
            with capture_logs() as logs:
                for _ in range(3):
                    found = await ask_all(world, 40)
                    assert {upstream_replies.rcode_of(reply) for reply in found} == {upstream_replies.NOERROR}
                await wait_until(lambda: connection.ended)
            assert connection.silent
            assert not world.server.counters.forward_timeouts
    assert [line["upstream"] for line in logs if line["log_level"] == "warning"] == [f"127.0.0.1:{port}"]


def drop_packets_between(one: int, other: int) -> None:
    """Have the kernel drop what this network sends between two TCP ports.

    One port alone would match a client as well, which may get the same number for its connection to another port.
    """
    rules = f"tcp sport {one} tcp dport {other} drop; tcp sport {other} tcp dport {one} drop;"
    ruleset = f"table inet lost {{ chain lost {{ type filter hook output priority 0; {rules} }}\n}}\n"
    subprocess.run([program("nft"), "-f", "-"], input=ruleset.encode(), check=True)


def over_tls(folder: Path, port: int) -> list[str]:
    """The options of NSD for a port with TLS, whose files are written."""
    made = certificates.CA.issue_cert(certificates.NAME)
    made.private_key_pem.write_to_path(folder / "key.pem")
    made.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    certificates.CA.cert_pem.write_to_path(folder / "authorities.pem")
    files = [f"tls-service-key: {folder}/key.pem", f"tls-service-pem: {folder}/certificate.pem"]
    return [f"ip-address: 127.0.0.1@{port}", f"tls-port: {port}", *files]
