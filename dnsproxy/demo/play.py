"""Plays the story: starts the programs, sends a pod's requests without and with Switchback, and checks the replies.

The law: every verdict compares what was received from a socket with what must be received; nothing is assumed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import trio

from dnsproxy.demo import pod
from dnsproxy.demo.children import run_child, wait_for_listener
from dnsproxy.demo.coredns import run_coredns
from dnsproxy.demo.ingress import serve_ingress
from dnsproxy.demo.story import Step
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.ownership import OwnershipSettings
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.program import serve
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.sources.static_names import parse_host_flag
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint

HOSTNAME: Final = "app.example.org"
ELSEWHERE: Final = "www.example.org"
"""A name of the same domain, whose server is outside the cluster."""
ELSEWHERE_ADDRESS: Final = "192.0.2.80"

PUBLIC: Final = "127.0.0.10"
"""Plays the load balancer's address, which kube-proxy short-circuits to the ingress."""
RELAY: Final = "127.0.0.20"
_NOWHERE: Final = Endpoint("127.0.0.1", 9)


@dataclass(frozen=True, slots=True)
class Stage:
    """The endpoints of the story's programs."""

    public_dns: Endpoint
    dnsproxy: Endpoint
    cluster_dns: Endpoint
    """CoreDNS if it is installed, else dnsproxy itself."""
    http_port: int
    has_coredns: bool


Report = Callable[[Step], Awaitable[None]]


async def play(stage: Stage, report: Report) -> list[Step]:
    """Run all steps; each one is reported as soon as its verdict is known."""
    steps = []
    for act in (_without, _with_name, _with_fetch, _elsewhere):
        steps.append(await act(stage))
        await report(steps[-1])
    return steps


async def _without(stage: Stage) -> Step:
    resolved = await pod.resolve(stage.public_dns, HOSTNAME)
    fetched = await _fetch(resolved, stage)
    refused = fetched.status is None and not fetched.body
    return Step(
        title="Without Switchback, the pod is refused",
        tried=f"the pod asks the public DNS for {HOSTNAME} and fetches http://{HOSTNAME}:{stage.http_port}/ from there",
        expected=f"{PUBLIC}, and a connection closed without a response, because it has no PROXY header",
        seen=f"{_shown(resolved)}, and {_response(fetched)}",
        good=resolved.addresses == (PUBLIC,) and refused,
    )


async def _with_name(stage: Stage) -> Step:
    resolved = await pod.resolve(stage.cluster_dns, HOSTNAME)
    asked = "CoreDNS, with kubeadm's Corefile and our stanza, asks" if stage.has_coredns else "the pod asks"
    return Step(
        title="With Switchback, the load balancer's address is replaced by the relay's",
        tried=f"{asked} dnsproxy for {HOSTNAME}, and dnsproxy asks the public DNS",
        expected=RELAY,
        seen=_shown(resolved),
        good=resolved.addresses == (RELAY,),
    )


async def _with_fetch(stage: Stage) -> Step:
    fetched = await _fetch(await pod.resolve(stage.cluster_dns, HOSTNAME), stage)
    expected = f"hello {pod.ADDRESS} port {fetched.port}"
    return Step(
        title="The ingress answers, and sees the pod's own address",
        tried=f"the pod fetches http://{HOSTNAME}:{stage.http_port}/ from there, and the relay adds the PROXY header",
        expected=f"200, {expected!r}",
        seen=_response(fetched),
        good=fetched.status == 200 and fetched.body == expected,  # noqa: PLR2004  # OK
    )


async def _elsewhere(stage: Stage) -> Step:
    ours = await pod.resolve(stage.dnsproxy, ELSEWHERE)
    direct = await pod.resolve(stage.public_dns, ELSEWHERE)
    same = bool(ours.message) and ours.message[2:] == direct.message[2:]
    return Step(
        title="A name of the same domain that leads elsewhere is answered as before",
        tried=f"the pod asks dnsproxy for {ELSEWHERE}, and then the public DNS",
        expected=f"{ELSEWHERE_ADDRESS}, and the same octets from both",
        seen=f"{_shown(ours)}, and {'the same octets' if same else 'different octets'} from both",
        good=same and ours.addresses == (ELSEWHERE_ADDRESS,),
    )


async def _fetch(resolved: pod.Resolved, stage: Stage) -> pod.Fetched:
    """Fetch from the first address of a name."""
    if not resolved.addresses:
        return pod.Fetched(None, "no address to fetch from", 0)
    return await pod.fetch(resolved.addresses[0], stage.http_port, HOSTNAME)


def _shown(resolved: pod.Resolved) -> str:
    return ", ".join(resolved.addresses) or resolved.rcode


def _response(fetched: pod.Fetched) -> str:
    if fetched.status is None:
        return fetched.body or "a connection closed without a response"
    return f"{fetched.status}, {fetched.body!r}"


@asynccontextmanager
async def set_stage() -> AsyncIterator[Stage]:
    """Run all programs: the ingress, the public DNS, dnsproxy, the relay, and CoreDNS if it is installed."""
    with tempfile.TemporaryDirectory(prefix="switchback-demo-") as folder:
        async with trio.open_nursery() as nursery:
            ingress = listen_tcp(Endpoint(PUBLIC, 0), flag="the demo's ingress")
            http_port = bound_endpoint(ingress).port
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(ingress))
            await nursery.start(trio.serve_listeners, serve_ingress, [listener])
            public = await _start_dns(
                nursery, upstream=_NOWHERE, hosts={HOSTNAME: PUBLIC, ELSEWHERE: ELSEWHERE_ADDRESS}
            )
            dnsproxy = await _start_dns(nursery, upstream=public, replaced={PUBLIC: RELAY})
            async with _run_relay(http_port), _cluster_dns(Path(folder), public, dnsproxy) as cluster_dns:
                has_coredns = cluster_dns is not None
                yield Stage(public, dnsproxy, cluster_dns or dnsproxy, http_port, has_coredns)
            nursery.cancel_scope.cancel()


async def _start_dns(
    nursery: trio.Nursery,
    *,
    upstream: Endpoint,
    hosts: Mapping[str, str] = MappingProxyType({}),
    replaced: Mapping[str, str] = MappingProxyType({}),
) -> Endpoint:
    """A `dnsproxy serve` with these names, or that replaces these addresses of its upstream (`--replace`)."""
    settings = ServeSettings(
        listen=(Endpoint("127.0.0.1", 0),),
        forwarding=ForwardSettings((upstream,)),
        targets=Targets(),
        guards=Guards(),
        hosts=tuple(parse_host_flag(f"{name}={address}") for name, address in hosts.items()),
        ownership=OwnershipSettings(replaced=tuple((address, (target,)) for address, target in replaced.items())),
    )
    bound = await nursery.start(lambda task_status: serve(settings, stopping=trio.Event(), task_status=task_status))
    endpoint: Endpoint = bound.dns[0]
    return endpoint


@asynccontextmanager
async def _run_relay(port: int) -> AsyncIterator[None]:
    route = f"{RELAY}:{port}={PUBLIC}:{port}"
    async with run_child([sys.executable, "-m", "proxy", "--route", route, "--admin", "off"]):
        await wait_for_listener(Endpoint(RELAY, port))
        yield


@asynccontextmanager
async def _cluster_dns(folder: Path, public: Endpoint, dnsproxy: Endpoint) -> AsyncIterator[Endpoint | None]:
    program = shutil.which("coredns")
    if program is None:
        yield None
        return
    async with run_coredns(program, folder, upstream=public, dnsproxy=dnsproxy) as endpoint:
        yield endpoint
