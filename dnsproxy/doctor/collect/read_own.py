"""Reads our own parts and the cluster's DNS: Services, pods, settings, answers of admin ports, our stanzas.

The law: admin ports are asked through the API server's proxy to pods, which works from everywhere for a user who may
`get pods/proxy`; without that right only the age of the table stays unknown. Only the variables in KEPT are stored: a
user's own may be private. What is known of the cluster's DNS comes from cluster_dns, as in `dnsproxy status`. Tested in
tests/dnsproxy/doctor/collect/test_collecting.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from dnsproxy.admin.subjects_document import LARGEST, parse_subjects
from dnsproxy.admin.subjects_document import PATH as SUBJECTS
from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.image import format_version
from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.original_upstreams import find_original
from dnsproxy.cluster_dns.own_service import FoundOwn
from dnsproxy.cluster_dns.probe_results import places_to_ask
from dnsproxy.cluster_dns.servers import labels_of, pod_of
from dnsproxy.cluster_dns.taken_hosts import TakenLine, find_taken_lines
from dnsproxy.cluster_dns.traces import Trace, find_traces
from dnsproxy.corefile.upstream_routes import UpstreamRoute
from dnsproxy.corefile.zones import ROOT
from dnsproxy.doctor.collect.read_hosts import make_service
from dnsproxy.doctor.collect.read_sources import TLS_HOSTS, VARIABLE, names_sources
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.cluster_dns import AnsweringLine, ClusterDns, LineNames, OriginalUpstreams, Stanza
from dnsproxy.doctor.facts.model import Admin, OwnService, Port
from sidecar.admin.asking import NoAnswer, get
from sidecar.kubernetes.endpoint_slices import SERVICE_NAME, EndpointSlice
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.structs.network import Service as RawService
from sidecar.kubernetes.structs.workload import Workload
from sidecar.loop.side_by_side import read_each, side_by_side
from sidecar.values.endpoints import Endpoint

DNSPROXY_ADMIN_PORT: Final = 8081
RELAY_ADMIN_PORT: Final = 8082
KEPT: Final = frozenset(
    ["DNSPROXY_TARGET", "DNSPROXY_TARGET_FOR", "DNSPROXY_ROUTES_NAMESPACE", VARIABLE, "DNSPROXY_CLASS_OF",
     "DNSPROXY_INGRESS_CLASS", "DNSPROXY_GATEWAY_CLASS", "DNSPROXY_ZONE", "DNSPROXY_OWNERSHIP", "DNSPROXY_TLS_ONLY",
     TLS_HOSTS, "PROXY_ROUTE", "PROXY_PROXY_PROTOCOL", "PROXY_ADVERTISE"]
)  # fmt: skip
_MOST_PODS: Final = 3
_NOT_READY: Final = 503
_PROXY_FAILED: Final = "error trying to reach"
_PROGRAMS: Final = frozenset(["dnsproxy", "proxy"])
_COMMANDS: Final = {"dnsproxy": "dnsproxy serve", "relay": "proxy"}


async def read_own_service(reader: Reader, key: str) -> OwnService:
    """One of our own Services."""
    namespace, _, name = key.partition("/")
    where = f"in namespace {namespace}"
    what = f"get services {name} {where}"
    raw = await reader.get(f"/api/v1/namespaces/{namespace}/services/{name}", RawService, what)
    if raw is None:
        failed = any(failure.what == what for failure in reader.failures)
        return OwnService(key, found=None if failed else False)
    service = make_service(raw)
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    async with side_by_side() as start:
        workload = start(read_workload, reader, namespace, raw)
        slices = start(_read_slices, reader, path, f"list endpointslices {where}", f"{SERVICE_NAME}={name}")
    pods = pods_of(slices.value or [])
    ready = None if slices.value is None else sum(pods.values())
    return OwnService(
        key,
        found=True,
        addresses=service.cluster_ips,
        ports=tuple(Port(port.port, port.name) for port in service.ports),
        ready=ready,
        pods=tuple(address for address, _ in pods),
        pod_names=tuple(pod for _, pod in pods),
        image=workload.value.image,
        settings=workload.value.settings,
    )


def with_found(part: OwnService, own: FoundOwn) -> OwnService:
    """Dnsproxy's Service with what cluster_dns knows about it; as it is if it was not found."""
    if not part.found:
        return part
    return msgspec.structs.replace(
        part, ask_at=tuple(map(str, own.endpoints)), loop=own.loop, faults=tuple(map(str, own.faults))
    )


async def _read_slices(reader: Reader, path: str, what: str, selector: str) -> list[EndpointSlice] | None:
    return await reader.list(path, EndpointSlice, what, selector=selector)


def pods_of(slices: Iterable[EndpointSlice]) -> dict[tuple[str, str], bool]:
    """Address and name of each pod, with its readiness."""
    return {
        (address, endpoint.target_ref.name if endpoint.target_ref and endpoint.target_ref.name else ""): (
            endpoint.conditions is None or endpoint.conditions.ready is not False
        )
        for one in slices
        for endpoint in one.endpoints or ()
        for address in (endpoint.addresses or ())[:1]
    }


@dataclass(frozen=True, slots=True)
class OwnWorkload:
    """What the pods of one of our Services run; empty if it is unknown."""

    image: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


async def read_workload(reader: Reader, namespace: str, raw: RawService) -> OwnWorkload:
    """The workload whose pods a Service selects: a Deployment, or a DaemonSet with one on each node."""
    selector = (raw.spec.selector or {}) if raw.spec else {}
    for plural in ("deployments", "daemonsets") if selector else ():
        path = f"/apis/apps/v1/namespaces/{namespace}/{plural}"
        workloads = await reader.list(path, Workload, f"list {plural}.apps in namespace {namespace}") or []
        matching = next((one for one in workloads if selector.items() <= labels_of(one).items()), None)
        if matching is not None:
            return OwnWorkload(_image_of(matching), await _settings_of(reader, namespace, matching))
    return OwnWorkload()


def _image_of(workload: Workload) -> str:
    """That of the container that starts our program, else of the first one."""
    containers = pod_of(workload).containers or ()
    ours = [one for one in containers if one.program in _PROGRAMS]
    return next((one.image or "" for one in (*ours, *containers)), "")


async def _settings_of(reader: Reader, namespace: str, workload: Workload) -> dict[str, str]:
    settings: dict[str, str] = {}
    for container in pod_of(workload).containers or ():
        for source in container.env_from or ():
            reference = source.get("configMapRef")
            name = reference.get("name") if isinstance(reference, dict) else None
            if isinstance(name, str):
                settings |= await reader.config_map(namespace, name) or {}
        settings |= {variable.name: variable.value for variable in container.env or () if variable.value is not None}
        flags = _flags((*(container.command or ()), *(container.args or ())))
        if VARIABLE in flags:
            settings = {key: value for key, value in settings.items() if not names_sources(key)}
        settings |= flags
    return {key: value for key, value in settings.items() if key in KEPT or names_sources(key)}


def _flags(words: tuple[str, ...]) -> dict[str, str]:
    """Flags such as `--route X --route=Y`, as the values of their variables."""
    found: dict[str, list[str]] = {}
    for word, following in zip(words, (*words, "")[1:], strict=True):
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_").upper()
        for variable in (f"PROXY_{name}", f"DNSPROXY_{name}"):
            if flag.startswith("--") and variable in KEPT:
                found.setdefault(variable, []).append(value if equals else following)
    return {variable: " ".join(values) for variable, values in found.items()}


async def read_admin(reader: Reader, part: OwnService, program: str, port: int) -> list[Admin]:
    """The answers of the admin ports of its pods, through the API server."""
    pods = tuple(filter(None, part.pod_names))[:_MOST_PODS]
    return await read_each(lambda pod: _read_page(reader, part.key.partition("/")[0], pod, program, port), pods)


async def _read_page(reader: Reader, namespace: str, pod: str, program: str, port: int) -> Admin:
    base = f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy"
    where, what = f"pod {namespace}/{pod}", f"get pods/proxy {pod} in namespace {namespace}"
    try:
        text = await reader.text(f"{base}/readyz", what)
    except ApiError as error:
        ready = False if str(error).startswith(f"{_NOT_READY}: ") and _PROXY_FAILED not in str(error) else None
        return Admin(program, where, ready, str(error).removeprefix(f"{_NOT_READY}: "))
    page = Admin(program, where, True, text.strip())
    with suppress(ApiError):
        page = with_metrics(page, await reader.text(f"{base}/metrics", what))
    if program == "dnsproxy":
        with suppress(ApiError):
            page = with_subjects(page, await reader.text(f"{base}{SUBJECTS}", what))
    return page


async def ask_admin(endpoint: Endpoint, program: str) -> Admin:
    """The answer of an admin port that is dialled directly; `program` is `dnsproxy` or `relay`."""
    where, command = str(endpoint), _COMMANDS.get(program, program)
    try:
        text = (await get(endpoint, "/readyz", program=command)).body.decode(errors="replace").strip()
        page = Admin(program, where, True, text)
    except NoAnswer as error:
        if error.status != _NOT_READY:
            return Admin(program, where, None, str(error))
        page = Admin(program, where, False, error.said)
    with suppress(NoAnswer):
        page = with_metrics(page, (await get(endpoint, "/metrics", program=command)).body.decode(errors="replace"))
    if program == "dnsproxy":
        with suppress(NoAnswer):
            reply = await get(endpoint, SUBJECTS, program=command, largest=LARGEST)
            page = with_subjects(page, reply.body.decode(errors="replace"))
    return page


def with_metrics(page: Admin, text: str) -> Admin:
    """The page with the values of its metrics; unreadable metrics change nothing."""
    ages: dict[str, float] = {}
    unhealthy: list[str] = []
    waiting = 0
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == "dnsproxy_source_contact_age_seconds":
                    ages[sample.labels.get("source", "")] = round(sample.value, 1)
                elif sample.name == "dnsproxy_forward_upstream_healthy" and not sample.value:
                    unhealthy.append(sample.labels.get("upstream", ""))
                elif sample.name == "dnsproxy_table_names_without_address":
                    waiting = int(sample.value)
    except (ValueError, OverflowError):
        return page
    return msgspec.structs.replace(page, ages=ages, unhealthy_upstreams=tuple(unhealthy), waiting_names=waiting)


def with_subjects(page: Admin, text: str) -> Admin:
    """The page with what an operator should know about the names; another document changes nothing."""
    try:
        document = parse_subjects(text.encode("utf-8", "replace"))
    except ValueError:
        return page
    return msgspec.structs.replace(page, unknown_addresses=document.unknown_addresses, wide=document.wide)


def make_dns(found: Found, own: Sequence[Endpoint]) -> ClusterDns:
    """The cluster's DNS as facts; `own` are the addresses of dnsproxy's Service."""
    service, server, cache = found.service, found.server, found.node_local
    deciding, original, traces = found.asked_by_pods, find_original(found, own), find_traces(found)
    version = format_version(server.version) if server and server.version else ""
    return ClusterDns(
        service=f"{service.namespace}/{service.name}" if service else "",
        addresses=service.addresses if service else (),
        server=f"{server}: {server.program.value} {version}".strip() if server else "",
        ask_at=tuple(map(str, places_to_ask(found))),
        node_local=str(cache.server) if cache else "",
        node_local_addresses=cache.addresses if cache else (),
        node_local_passes_on=bool(cache and cache.passes_on),
        stanzas=tuple(map(_stanza, traces)),
        where=str(deciding) if deciding else "",
        decides=_sources(found),
        printed_as=_printed_as(found),
        faults=tuple(map(str, found.faults)),
        upstreams_in=original.source,
        upstreams=tuple(map(_upstreams, original.routes)),
        lines=_answering_lines(found, traces),
    )


def _stanza(trace: Trace) -> Stanza:
    addresses = tuple(map(str, trace.addresses))
    marker = trace.rewrites.marker if trace.rewrites else ""
    return Stanza(str(trace.target), trace.method.value, trace.zones, addresses, trace.fault, marker)


def _printed_as(found: Found) -> str:
    choice = choose_method(found)
    return choice.form.value if choice.method is Method.PRINT and choice.form is not None else ""


def _upstreams(route: UpstreamRoute) -> OriginalUpstreams:
    return OriginalUpstreams(route.zone, route.upstreams, route.excepted, route.fault, route.line)


def _sources(found: Found) -> tuple[str, ...]:
    """The ConfigMaps of the workload that decides about public names."""
    server = found.asked_by_pods
    corefile = server.corefile if server else None
    sources = [corefile.source] if corefile else []
    sources += [hook.source for hook in (corefile.hooks if corefile else ()) if hook.source is not None]
    sources += [file.source for file in (corefile.files if corefile else ())]
    sources += [server.stub_domains.source] if server and server.stub_domains else []
    return tuple(dict.fromkeys(map(str, sources)))


def _answering_lines(found: Found, traces: Sequence[Trace]) -> tuple[AnsweringLine, ...]:
    """The lines of other tools before our stanzas, or before the stanza that an install would write.

    Those of `dnsproxy status`, and of no host in particular: a file of facts can be judged for another host.
    """
    return tuple(map(_line_fact, _lines_before(found, traces)))


def _lines_before(found: Found, traces: Sequence[Trace]) -> Iterator[TakenLine]:
    stanzas = [trace for trace in traces if trace.method is not Method.OVERRIDE_REWRITES]
    for trace in stanzas:
        yield from find_taken_lines(found, trace.method, trace.zones)
    if not stanzas:
        yield from find_taken_lines(found, Method.COREFILE, (ROOT,))


def _line_fact(line: TakenLine) -> AnsweringLine:
    names, excepted = line.names, tuple(LineNames(one.kind, one.text) for one in line.excepted)
    return AnsweringLine(line.what, names.kind, names.text, names.gives, line.text, excepted)
