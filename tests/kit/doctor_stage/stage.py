"""The stage: one network namespace with a real API server, real servers and real DNS, on which states are played.

The law: a state begins on an empty stage and leaves nothing behind: its objects are deleted, its rules replaced and its
DNS ended. The doctor runs as a user would run it, as a program in the pod's place, whose imports are behind it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.dns.addresses import is_address
from tests.kit.apiserver import ApiServer, running_apiserver, send
from tests.kit.coredns import started_coredns
from tests.kit.doctor_stage.network import apply, build, set_ipv6
from tests.kit.doctor_stage.objects import BASE, DNS_ADDRESS, DNSPROXY, PUBLIC_DNS, Object, collection_of, path_of
from tests.kit.doctor_stage.rights import kubeconfig_without
from tests.kit.doctor_stage.servers import running_servers
from tests.kit.doctor_stage.states import Records, State, Verdict
from tests.kit.gateway_api import GROUP as GATEWAY_GROUP
from tests.kit.gateway_api import RESOURCES, install_crds
from tests.kit.networks import Network, one_network
from tests.kit.prepared_program import PreparedProgram, prepared_program
from tests.kit.processes import wait_for
from tests.kit.programs import program
from tests.kit.scraping import is_ready
from tests.kit.serve_process import serving

PEERS: Final = ("etcd", "kube-apiserver", "coredns", "nginx", "haproxy", "nft", "ip")
DOCTOR: Final = ("dnsproxy.doctor.command", "dnsproxy.doctor.collect.looking", "dnsproxy.doctor.judge.diagnose")
MERGE: Final = "application/merge-patch+json"
SERVICE_RANGE: Final = "10.96.0.0/16,2001:db8:96::/112"
_SERVER: Final = """\
.:53 {{
    bind {address}
    file {zone} .
}}
"""
_ZONE: Final = """\
$ORIGIN .
$TTL 5
@ IN SOA ns.invalid. root.invalid. 1 60 60 60 60
"""


@dataclass
class Stage:
    """A running stage."""

    folder: Path
    network: Network
    api: ApiServer
    dnsproxy: PreparedProgram
    """In the pod's place."""
    _namespaces: set[str] = field(default_factory=lambda: {"default", "kube-system"})

    def play(self, state: State) -> Verdict:
        """The doctor's verdict."""
        host = (state.host,) if state.host else ()
        with self.staged(state):
            if state.saved is not None:
                saved = str(self.folder / "facts.json")
                self.ask_doctor(*state.saved, "--save", saved, kubeconfig=self._kubeconfig(state))
                return self.ask_doctor(*host, *state.arguments, "--from", saved, kubeconfig=None)
            return self.ask_doctor(*host, *state.arguments, kubeconfig=self._kubeconfig(state))

    @contextmanager
    def staged(self, state: State) -> Iterator[None]:
        """The cluster of a state for the duration of the block, in its network."""
        with self.network.entered(), ExitStack() as stack:
            apply(state.at)
            if state.pod_has_ipv6:
                set_ipv6(self.network, on=True)
                stack.callback(set_ipv6, self.network, on=False)
            stack.enter_context(self._objects((*BASE, *state.plane, *state.objects)))
            if state.dnsproxy:
                stack.enter_context(self._dnsproxy(state))
            stack.enter_context(self._dns(state))
            yield

    def ask_doctor(self, *arguments: str, kubeconfig: Path | None) -> Verdict:
        """The verdict with these arguments, inside `staged`; without a kubeconfig, no API server is asked."""
        where = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        words = ["doctor", *arguments, *where, "--public-dns", PUBLIC_DNS, "--output", "json"]
        done = self.dnsproxy.run(*words, environment={**os.environ, "NO_COLOR": "1"})
        return Verdict(done.returncode, _document(done.stdout), done.stderr)

    def _kubeconfig(self, state: State) -> Path:
        """That of an administrator, or of an account with all rights in `deploy/components/doctor` but the denied."""
        if not state.denied:
            return self.api.kubeconfig
        return kubeconfig_without(self.api, state.denied, self.folder)

    @contextmanager
    def _objects(self, objects: Sequence[Object]) -> Iterator[None]:
        """Objects for the duration of the block; of two with one path, the later one."""
        by_path = {path_of(one): one for one in objects}
        with self.api.connection() as connection, ExitStack() as stack:
            if any(GATEWAY_GROUP in path for path in by_path):
                install_crds(self.api, ("gatewayclasses", *RESOURCES))
            for path, one in by_path.items():
                self._create_namespace(one["metadata"].get("namespace"))
                made = {key: value for key, value in one.items() if key != "status"}
                send(connection, "POST", collection_of(one), made)
                stack.callback(send, connection, "DELETE", path)
                if "status" in one:
                    send(connection, "PATCH", f"{path}/status", {"status": one["status"]}, content_type=MERGE)
            yield

    @contextmanager
    def _dnsproxy(self, state: State) -> Iterator[None]:
        """Dnsproxy at the address of its Service, from the moment at which its sources are read."""
        where = ["--listen", f"{DNSPROXY}:53", "--upstream", PUBLIC_DNS, "--kubeconfig", str(self.api.kubeconfig)]
        with serving(self.folder, *where, "--source", "ingress", "--ttl", "1", *state.dnsproxy) as one:
            wait_for(partial(is_ready, one.admin), process=one.process, log=one.log)
            yield

    def _create_namespace(self, name: str | None) -> None:
        """A namespace, which stays: without a controller-manager it cannot be deleted."""
        if name is not None and name not in self._namespaces:
            self._namespaces.add(name)
            self.api.create_namespace(name)

    @contextmanager
    def _dns(self, state: State) -> Iterator[None]:
        """The cluster's DNS and public DNS, from their readiness."""
        cluster = state.corefile or self._server(DNS_ADDRESS, "cluster", state.dns)
        public = self._server(PUBLIC_DNS, "public", state.dns if state.public is None else state.public)
        corefile = self.folder / "Corefile"
        corefile.write_text(cluster + public)
        with started_coredns([program("coredns"), "-conf", str(corefile)], folder=self.folder):
            yield

    def _server(self, address: str, name: str, records: Records) -> str:
        zone = self.folder / f"{name}.zone"
        zone.write_text(_ZONE + "".join(_records(records)))
        return _SERVER.format(address=address, zone=zone)


def _document(text: str) -> dict[str, Any]:
    with suppress(ValueError):
        return dict(json.loads(text))
    return {}


def _records(records: Records) -> Iterator[str]:
    for name, values in records.items():
        for value in values:
            if is_address(value):
                yield f"{name}. IN {'AAAA' if ':' in value else 'A'} {value}\n"
            else:
                yield f"{name}. IN CNAME {value}.\n"


@contextmanager
def running_stage(folder: Path) -> Iterator[Stage]:
    """The stage, from its readiness."""
    with one_network() as network, ExitStack() as stack:
        build(network)
        # Entered only here and in `play`: a thread that began inside, as the one of pytest-timeout, would stay there.
        with network.entered():
            stack.enter_context(running_servers(folder))
            api = stack.enter_context(running_apiserver(folder, service_range=SERVICE_RANGE))
            dnsproxy = stack.enter_context(prepared_program(folder, "dnsproxy", *DOCTOR))
        yield Stage(folder, network, api, dnsproxy)


@pytest.fixture(scope="session")
def doctor_stage(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:  # noqa: ARG001  # may skip
    """One stage for all modules of a worker. Import it in the conftest.py of their folder, with `root`."""
    with running_stage(tmp_path_factory.mktemp("stage")) as one:
        yield one


@pytest.fixture(scope="module")
def stage(doctor_stage: Stage) -> Stage:
    """Import it where it is used."""
    return doctor_stage
