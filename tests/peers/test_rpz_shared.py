"""Two primaries of one zone with one Lease, on a real API server: a secondary that changes between them goes on.

The secondary is dnspython's: it asks one primary, then the other one, while objects come and one primary is killed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import dns.exception
import dns.name
import dns.query
import dns.rdatatype
import dns.xfr
import dns.zone
import pytest

from sidecar.values.endpoints import Endpoint
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.ports import free_port

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

ZONE = "rpz.example.org"
SECONDS = 90.0


@contextmanager
def serving(api: ApiServer, listen: Endpoint, other: Endpoint) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "dnsproxy", "serve", "--listen", str(listen), "--admin", "off"]
    command += ["--upstream", "127.0.0.1:9", "--source", "ingress", "--kubeconfig", str(api.kubeconfig)]
    command += ["--target", "192.0.2.10", "--rpz", ZONE, "--rpz-serial", "lease:default/dnsproxy-rpz"]
    command += ["--rpz-notify", str(other), "--lameduck", "0", "--drain", "1"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


class Secondary:
    """A secondary of dnspython that notes what it sees."""

    def __init__(self) -> None:
        self.zone = dns.zone.Zone(ZONE)
        self.serials: list[int] = []
        self.faults: list[str] = []
        self.served: set[Endpoint] = set()

    @property
    def names(self) -> set[str]:
        return {str(name) for name in self.zone if name != dns.name.empty}

    def ask(self, primary: Endpoint) -> None:
        """Take over what a primary has beyond ours."""
        before = self.names
        query, serial = dns.xfr.make_query(self.zone)
        with suppress(dns.xfr.TransferError, dns.exception.Timeout, OSError, EOFError):
            try:
                dns.query.inbound_xfr(primary.host, self.zone, query, port=primary.port, timeout=5, lifetime=10)
            except dns.xfr.SerialWentBackwards:
                # An older primary: a secondary keeps what it has (RFC 1034 section 4.3.5).
                return
            self.served.add(primary)
            soa = self.zone.find_rdataset("@", dns.rdatatype.SOA)
            now = soa[0].serial
            if serial and (now - serial) % 2**32 >= 2**31:
                self.faults.append(f"serial {now} after {serial}")
            if before - self.names:
                self.faults.append(f"at serial {now} of {primary}: {sorted(before - self.names)} are gone")
            self.serials.append(now)


def wait_for(condition: object, what: str) -> None:
    assert callable(condition)
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)  # another process


@pytest.mark.timeout(240)
def test_a_secondary_that_changes_between_two_primaries_never_goes_back_and_misses_no_name(tmp_path: Path) -> None:
    one, other = (Endpoint(host, free_port()) for host in ("127.0.0.1", "127.0.0.2"))
    secondary = Secondary()

    def look_at(*primaries: Endpoint) -> set[str]:
        for primary in primaries:
            secondary.ask(primary)
        return secondary.names

    with ExitStack() as stack:
        api = stack.enter_context(running_apiserver(tmp_path))
        api.create_ingress("first", ["first.example.org"])
        leader = stack.enter_context(serving(api, one, other))
        wait_for(lambda: "first.example.org" in look_at(one), "the first primary publishes")
        stack.enter_context(serving(api, other, one))
        wait_for(lambda: look_at(other) and other in secondary.served, "the second one serves the zone of the first")
        wanted = {"first.example.org"}
        before: list[int] = []

        def churn() -> None:
            for number in range(60):
                api.create_ingress(f"app-{number}", [f"app-{number}.example.org"])
                if number == 30:
                    leader.send_signal(signal.SIGKILL)
                    before.append(secondary.serials[-1])

        wanted |= {f"app-{number}.example.org" for number in range(60)}
        changing = threading.Thread(target=churn)
        changing.start()
        while changing.is_alive():
            look_at(one, other)
        changing.join()
        wait_for(lambda: wanted <= look_at(one, other), "the other one takes over")
        # Not since the end of the changes: the other one may have taken over during them.
        (at_the_kill,) = before
        assert secondary.serials[-1] != at_the_kill
        # The first one comes back, and serves what the second one published.
        stack.enter_context(serving(api, one, other))
        secondary.served.clear()
        wait_for(lambda: look_at(one) and one in secondary.served, "the first one serves again")
        api.create_ingress("last", ["last.example.org"])
        wait_for(lambda: "last.example.org" in look_at(one), "a change comes through the one that does not lead")
    assert secondary.faults == []
    assert wanted <= secondary.names
    assert one in secondary.served
