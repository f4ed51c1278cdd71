"""Stanza writers: the programs that would put a stanza back after its removal, and how they are ended.

The law: a pod, and what makes pods, in the namespace of the installation is a writer by its command line, whatever its
name; so is the holder of operate's Lease, if none of these is one. What may not be read is an error, never an absence.
Deployments are scaled to 0, which the next `kubectl apply` or `helm upgrade` undoes; nothing else is ended here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import msgspec
import trio

from dnsproxy.cluster_dns.operate_objects import LEASE
from dnsproxy.cluster_dns.read import read_one
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.requests import CONFIG_MAP, DAEMON_SET, DEPLOYMENT, Fault, Kind, Request
from dnsproxy.cluster_dns.servers import pod_of
from dnsproxy.install.run.container_commands import METHOD, OPERATE, config_maps_of, started_by
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.leases.leading import DURATION
from sidecar.kubernetes.leases.lease_keeper import Lease
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.workload import Container, PodSpec, PodTemplate, Workload
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import cut

SECONDS: Final = 120.0
"""For the pods of all writers to end: four times what Kubernetes gives them."""
SCALE: Final = Kind("Scale", "deployments/scale", "apps", Workload)
"""Its verb `patch` is the right to end a Deployment."""
_PAUSE: Final = 1.0
"""Seconds between two looks."""
_ANSWER: Final = 10.0
"""Seconds for one answer of the API server."""
_LONGEST: Final = 253
"""Of a name that is shown, as of a DNS name: a Lease may have any text for a holder."""
_ENDED: Final = frozenset(["Succeeded", "Failed"])
_HASH: Final = "pod-template-hash"
"""The label that a ReplicaSet of a Deployment has in its name, after the Deployment's."""


class _PodStatus(msgspec.Struct, frozen=True):
    phase: str | None = None


class _Pod(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: PodSpec | None = None
    status: _PodStatus | None = None


class _JobSpec(msgspec.Struct, frozen=True):
    template: PodTemplate | None = None


class _JobTemplate(msgspec.Struct, frozen=True):
    spec: _JobSpec | None = None


class _CronJobSpec(msgspec.Struct, frozen=True, rename="camel"):
    suspend: bool | None = None
    job_template: _JobTemplate | None = None


class _CronJob(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _CronJobSpec | None = None


_POD: Final = Kind("Pod", "pods", "", _Pod)
_STATEFUL_SET: Final = Kind("StatefulSet", "statefulsets", "apps", Workload)
_CRON_JOB: Final = Kind("CronJob", "cronjobs", "batch", _CronJob)
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
    kinds = (_POD, DEPLOYMENT, _STATEFUL_SET, DAEMON_SET, _CRON_JOB)
    return *(Request(kind, namespace) for kind in kinds), Request(_LEASE, namespace, LEASE)


async def find_writers(client: ApiClient, namespace: str) -> tuple[Writer, ...]:
    """The writers of the installation in a namespace. Raises StartError with status 3 if one may be there unseen."""
    pods, *makers, cron_jobs, lease = [await _read(client, request) for request in requests_of(namespace)]
    owners = [
        *_of_pods(pods, [one.metadata.name for one in cron_jobs]),
        *_of_workloads(zip((DEPLOYMENT, _STATEFUL_SET, DAEMON_SET), makers, strict=True)),
        *_of_cron_jobs(cron_jobs),
    ]
    variables = await _variables(client, namespace, (container for *_, container in owners))
    writers: dict[Writer, None] = {}
    explained = False
    for kind, name, container in owners:
        for started in started_by(container, _joined(variables, container)):
            # An operate that leaves the stanza to its owner holds the Lease too.
            explained = explained or started.command == OPERATE
            if started.writes:
                writers[Writer(kind, namespace, name, f"dnsproxy {started.command}")] = None
    if lease is not None and not explained and await _is_renewed(client, namespace, lease):
        writers[_holder(lease, pods, namespace)] = None
    return tuple(writers)


_Owned = tuple[str, str, Container]
"""Kind and name of what would make a pod again, and one of its containers."""


def _holder(lease: Lease, pods: Sequence[_Pod], namespace: str) -> Writer:
    """The program that holds operate's Lease: what makes its pod, or a host."""
    identity = (lease.spec.holder_identity if lease.spec else None) or ""
    host = cut(identity.rpartition("_")[0], _LONGEST) or "an unknown host"
    pod = next((one for one in pods if one.metadata.name == host), None)
    kind, name = (_LEASE.name, host) if pod is None else _owner_of(pod.metadata, ())
    return Writer(kind, namespace, name, f"dnsproxy {OPERATE}")


async def _variables(
    client: ApiClient, namespace: str, containers: Iterable[Container]
) -> Mapping[str, Mapping[str, str]]:
    """The data of the ConfigMaps that become variables of our programs, of those that may be read."""
    wanted = dict.fromkeys(name for one in containers if any(started_by(one)) for name in config_maps_of(one))
    found = {name: await read_one(client, Request(CONFIG_MAP, namespace, name)) for name in wanted}
    return {name: one.data or {} for name, one in found.items() if one is not None and not isinstance(one, Fault)}


def _joined(variables: Mapping[str, Mapping[str, str]], container: Container) -> dict[str, str]:
    """The method alone: a prefix or a Secret could name others."""
    methods = [said for name in config_maps_of(container) if (said := variables.get(name, {}).get(METHOD)) is not None]
    return {METHOD: methods[-1]} if methods else {}


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
    if found is None and request.name is None:
        # A namespace that is absent has empty lists.
        found = f"{request} is not served: is there something between here and the API server?"
    elif not isinstance(found, Fault):
        return found
    text = f"whether a program in {request.namespace} would restore the stanza is unknown, and nothing was removed"
    text += f": {found}; or name the namespace of dnsproxy with --service"
    raise StartError(text, status=ExitStatus.UNKNOWN)


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


def _of_pods(pods: Iterable[_Pod], cron_jobs: Sequence[str]) -> Iterator[_Owned]:
    """The containers of pods that have not ended."""
    for pod in pods:
        if pod.status is None or pod.status.phase not in _ENDED:
            kind, name = _owner_of(pod.metadata, cron_jobs)
            for container in _containers(pod.spec):
                yield kind, name, container


def _owner_of(pod: Metadata, cron_jobs: Sequence[str]) -> tuple[str, str]:
    """Kind and name of what would create the pod again, or of the pod itself."""
    owner = next(iter(pod.owner_references or ()), None)
    if owner is None:
        return _POD.name, pod.name
    suffix = f"-{(pod.labels or {}).get(_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return DEPLOYMENT.name, owner.name.removesuffix(suffix)
    # A Job of a CronJob has the minute of its start behind the CronJob's name.
    before, _, minute = owner.name.rpartition("-")
    if owner.kind == "Job" and before in cron_jobs and minute.isdecimal():
        return _CRON_JOB.name, before
    return owner.kind, owner.name


def _of_workloads(listed: Iterable[tuple[Kind[Workload], Iterable[Workload]]]) -> Iterator[_Owned]:
    """One counts while none of its pods is there, too: the next one is about to start."""
    for kind, workloads in listed:
        for one in workloads:
            if one.spec is not None and one.spec.replicas != 0:
                for container in _containers(pod_of(one)):
                    yield kind.name, one.metadata.name, container


def _of_cron_jobs(cron_jobs: Iterable[_CronJob]) -> Iterator[_Owned]:
    for one in cron_jobs:
        if one.spec is None or one.spec.suspend or one.spec.job_template is None or one.spec.job_template.spec is None:
            continue
        template = one.spec.job_template.spec.template
        for container in _containers(template.spec if template else None):
            yield _CRON_JOB.name, one.metadata.name, container


def _containers(pod: PodSpec | None) -> Iterator[Container]:
    """Those that run as long as the pod."""
    if pod is not None:
        sidecars = (one for one in pod.init_containers or () if one.restart_policy == "Always")
        yield from chain(pod.containers or (), sidecars)


def _listed(writers: Iterable[Writer]) -> str:
    return " and ".join(map(str, writers))


def _remedy(writers: Sequence[Writer]) -> str:
    others = [writer for writer in writers if not writer.scales]
    if not others:
        them, their = ("it", "its") if len(writers) == 1 else ("them", "their")
        ends = f"scales {them} to 0, waits until {their} pods have ended"
        return f"`dnsproxy uninstall --stop-writers` {ends}, and uninstalls"
    again = "run this again with --stop-writers" if len(others) < len(writers) else "run this again"
    return "; ".join(_end_by_hand(writer) for writer in others) + f"; then {again}"


def _end_by_hand(writer: Writer) -> str:
    if writer.kind == _LEASE.name:
        return f"end it on {writer.name}"
    if writer.kind == _CRON_JOB.name:
        spec = """'{"spec": {"suspend": true}}'"""
        return f"suspend it with `kubectl -n {writer.namespace} patch cronjob {writer.name} -p {spec}`"
    return f"end it with `kubectl -n {writer.namespace} delete {writer.kind.lower()} {writer.name}`"
