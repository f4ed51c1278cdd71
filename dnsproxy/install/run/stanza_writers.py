"""Stanza writers: the programs that would put a stanza back after its removal, and how they are ended.

The law: a pod or a Deployment in the namespace of the installation is a writer by its command line, whatever its name;
so is the holder of operate's Lease, if none of these is one. What may not be read is an error, never an absence.
Deployments are scaled to 0, which the next `kubectl apply` or `helm upgrade` undoes; nothing else is ended here.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise
from typing import Any, Final

import msgspec
import trio

from dnsproxy.cluster_dns.operate_objects import LEASE
from dnsproxy.cluster_dns.read import read_one
from dnsproxy.cluster_dns.requests import DEPLOYMENT, Fault, Kind, Request
from dnsproxy.cluster_dns.servers import pod_of
from dnsproxy.install.change.refusal import ChangeRefused
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.leases.leading import DURATION
from sidecar.kubernetes.leases.lease_keeper import Lease
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.workload import Container, PodSpec, Workload
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

SECONDS: Final = 120.0
"""For the pods of all writers to end: four times what Kubernetes gives them."""
SCALE: Final = Kind("Scale", "deployments/scale", "apps", Workload)
"""Its verb `patch` is the right to end a Deployment."""
_PAUSE: Final = 1.0
"""Seconds between two looks."""
_ANSWER: Final = 10.0
"""Seconds for one answer of the API server."""
_PROGRAMS: Final = frozenset(["dnsproxy", "kubectl-switchback"])
_OPERATE: Final = "operate"
_INSTALL: Final = "install"
_ENDED: Final = frozenset(["Succeeded", "Failed"])
_HASH: Final = "pod-template-hash"
"""The label that a ReplicaSet of a Deployment has in its name, after the Deployment's."""


class _PodStatus(msgspec.Struct, frozen=True):
    phase: str | None = None


class _Pod(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: PodSpec | None = None
    status: _PodStatus | None = None


_POD: Final = Kind("Pod", "pods", "", _Pod)
_LEASE: Final = Kind("Lease", "leases", "coordination.k8s.io", Lease)


@dataclass(frozen=True, slots=True)
class Writer:
    """Something that keeps a stanza in the cluster's DNS."""

    kind: str
    """`Deployment`, another owner of pods, `Pod`, or `Lease` for a program that no pod here is known to run."""
    namespace: str
    name: str
    program: str
    """`dnsproxy operate` or `dnsproxy install`."""

    def __str__(self) -> str:
        if self.kind == _LEASE.name:
            return f"{self.program} on {self.name}, which holds the Lease {self.namespace}/{LEASE}"
        return f"{self.program} in {self.kind} {self.namespace}/{self.name}"

    @property
    def scales(self) -> bool:
        """Whether it can be ended by scaling."""
        return self.kind == DEPLOYMENT.name


def requests_of(namespace: str) -> tuple[Request, ...]:
    """What is read to find the writers of an installation."""
    return Request(DEPLOYMENT, namespace), Request(_POD, namespace), Request(_LEASE, namespace, LEASE)


async def find_writers(client: ApiClient, namespace: str) -> tuple[Writer, ...]:
    """The writers of the installation in a namespace. Raises StartError with status 3 if one may be there unseen."""
    deployments, pods, lease = [await _read(client, request) for request in requests_of(namespace)]
    programs = [*_of_pods(pods or (), namespace), *_of_deployments(deployments or (), namespace)]
    writers = dict.fromkeys(writer for writer, writes in programs if writes)
    # An operate that leaves the stanza to its owner holds the Lease too.
    explained = any(writer.program.endswith(_OPERATE) for writer, _ in programs)
    if lease is not None and not explained and await _is_renewed(client, namespace, lease):
        host = (lease.spec.holder_identity or "").rpartition("_")[0]
        writers[Writer(_LEASE.name, namespace, host or "an unknown host", f"dnsproxy {_OPERATE}")] = None
    return tuple(writers)


def check_none(writers: Sequence[Writer]) -> None:
    """Raises ChangeRefused, with the way out, if there are any."""
    if writers:
        verb = "restores" if len(writers) == 1 else "restore"
        raise ChangeRefused(f"{_listed(writers)} {verb} the stanza, and nothing was changed", _remedy(writers))


def check_scalable(writers: Iterable[Writer]) -> None:
    """Raises ChangeRefused for writers that are no Deployments."""
    check_none([writer for writer in writers if not writer.scales])


async def stop_writers(
    client: ApiClient,
    namespace: str,
    writers: Sequence[Writer],
    *,
    seconds: float = SECONDS,
    on_wait: Callable[[float], None] = lambda _: None,
) -> None:
    """Scale Deployments to 0, and wait until their last pods have ended. Raises StartError."""
    for writer in writers:
        await _scale_down(client, writer)
    began = trio.current_time()
    with trio.move_on_after(seconds):
        while left := [one for one in await find_writers(client, namespace) if one in writers]:
            on_wait(trio.current_time() - began)
            await trio.sleep(_PAUSE)
        return
    raise StartError(
        f"{_listed(left)} did not end within {seconds:g} s: remove a lost node with `kubectl delete node`, or suspend "
        "what scales it again (Argo CD, Flux); the stanza was not removed",
        status=ExitStatus.NO,
    )


async def _scale_down(client: ApiClient, writer: Writer) -> None:
    request = Request(SCALE, writer.namespace, writer.name)
    path = f"{Request(DEPLOYMENT, writer.namespace, writer.name).path}/scale"
    body = json.dumps({"spec": {"replicas": 0}}).encode()
    try:
        await client.change("PATCH", path, {}, body, content_type="application/merge-patch+json", seconds=_ANSWER)
    except NotFound:
        return
    except Forbidden as error:
        right = str(request).replace(request.verb, "patch", 1)
        text = f"not allowed to {right}, which ends {writer}: {error}; the stanza was not removed"
        raise StartError(text, status=ExitStatus.UNKNOWN) from error
    except ApiError as error:
        text = f"{writer} cannot be ended: {error}; the stanza was not removed"
        raise StartError(text, status=ExitStatus.UNKNOWN) from error


async def _read(client: ApiClient, request: Request) -> Any:
    """The answer to a request, None if the object does not exist. Raises StartError."""
    found = await read_one(client, request)
    if isinstance(found, Fault):
        text = f"whether a program in {request.namespace} would restore the stanza is unknown, and nothing was removed"
        text += f": {found}; or name the namespace of dnsproxy with --service"
        raise StartError(text, status=ExitStatus.UNKNOWN)
    return found


async def _is_renewed(client: ApiClient, namespace: str, lease: Lease) -> bool:
    """Whether the holder of the Lease is alive, which only a renewal shows: clocks differ."""
    *_, request = requests_of(namespace)
    held, now = lease.metadata.resource_version, lease
    with trio.move_on_after(DURATION):
        while now is not None and now.spec is not None and now.spec.holder_identity:
            if now.metadata.resource_version != held:
                return True
            await trio.sleep(_PAUSE)
            now = await _read(client, request)
    return False


def _of_pods(pods: Iterable[_Pod], namespace: str) -> Iterator[tuple[Writer, bool]]:
    """The owners of running pods that run one of the programs, each with whether it writes."""
    for pod in pods:
        if pod.status is not None and pod.status.phase in _ENDED:
            continue
        for program, writes in _programs_of(pod.spec):
            kind, name = _owner_of(pod.metadata)
            yield Writer(kind, namespace, name, program), writes


def _owner_of(pod: Metadata) -> tuple[str, str]:
    """Kind and name of what would create the pod again, or of the pod itself."""
    owner = next(iter(pod.owner_references or ()), None)
    if owner is None:
        return _POD.name, pod.name
    suffix = f"-{(pod.labels or {}).get(_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return DEPLOYMENT.name, owner.name.removesuffix(suffix)
    return owner.kind, owner.name


def _of_deployments(deployments: Iterable[Workload], namespace: str) -> Iterator[tuple[Writer, bool]]:
    """A Deployment counts while none of its pods is there, too: the next one is about to start."""
    for one in deployments:
        if one.spec is not None and one.spec.replicas != 0:
            for program, writes in _programs_of(pod_of(one)):
                yield Writer(DEPLOYMENT.name, namespace, one.metadata.name, program), writes


def _programs_of(pod: PodSpec | None) -> Iterator[tuple[str, bool]]:
    for container in (pod.containers if pod else None) or ():
        # A shell has the whole line in one word.
        words = [word for each in (*(container.command or ()), *(container.args or ())) for word in each.split()]
        line = [*dropwhile(lambda word: posixpath.basename(word) not in _PROGRAMS, words)][1:]
        if line and line[0] in (_OPERATE, _INSTALL):
            yield f"dnsproxy {line[0]}", not _leaves_the_dns_alone(line, container)


def _leaves_the_dns_alone(line: Sequence[str], container: Container) -> bool:
    """Whether it prints, or works on a file."""
    prints = {"--method=print", "--dry-run"} & {*line} or ("--method", "print") in pairwise(line)
    by_variable = any((one.name, one.value) == ("DNSPROXY_METHOD", "print") for one in container.env or ())
    return bool(prints) or by_variable or any(word.partition("=")[0] == "--file" for word in line)


def _listed(writers: Iterable[Writer]) -> str:
    return " and ".join(map(str, writers))


def _remedy(writers: Sequence[Writer]) -> str:
    others = [writer for writer in writers if not writer.scales]
    if not others:
        return "`dnsproxy uninstall --stop-writers` scales it to 0, waits until its pods have ended, and uninstalls"
    return "; ".join(_end_by_hand(writer) for writer in others) + "; then run this again"


def _end_by_hand(writer: Writer) -> str:
    if writer.kind == _LEASE.name:
        return f"end it on {writer.name}"
    return f"end it with `kubectl -n {writer.namespace} delete {writer.kind.lower()} {writer.name}`"
