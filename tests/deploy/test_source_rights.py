"""The components `source-...`, each beside the base alone: what dnsproxy may read with it, and how it does without."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import dns.message
import dns.query
import pytest

from dnsproxy.sources.names import OTHERS, SERVICE
from dnsproxy.sources.settings import SourceOptions
from dnsproxy.sources.source_plans import plan_other
from tests.deploy.called import DNSPROXY, NEVER_ALLOWED, is_ready, rows
from tests.deploy.calls import Caller, account, parse_call
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import BASE, DEPLOY, Manifest, compose, find, render, settings_of
from tests.kit import custom_resources as api
from tests.kit.allowed import wait_until_allowed
from tests.kit.apiserver import ApiServer
from tests.kit.log_lines import whole_lines
from tests.kit.polling import poll_until
from tests.kit.serve_process import Serving, serving

pytestmark = pytest.mark.peer(
    *("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint"),
    *("traefik-crds", "contour-crds", "openshift-crds", "istio-crds"),
)

RELAY: Final = "192.0.2.50"
NAME: Final = "r.example.org"
NEIGHBOUR: Final = "neighbour.example.net"
GROUPS: Final = ("traefik.io", "route.openshift.io", "projectcontour.io", "networking.istio.io")
_SECONDS: Final = 60
_READ: Final = ("list", "watch")
_BACKENDS: Final = [{"name": "web", "port": 80}]
_ADMITTED: Final = {"type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@dataclass(frozen=True)
class Source:
    """A component, what it lets dnsproxy read, and an object of it that has NAME."""

    name: str
    resources: Sequence[str]
    """As parse_call reads them; in every namespace."""
    version: str
    plural: str
    body: Mapping[str, Any]
    shown: str
    """The kind in the log, where the right is missing."""
    ready: bool = True
    """Whether dnsproxy is ready without the right: where one program may have the kind and another may not."""
    flags: Sequence[str] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def calls(self) -> list[str]:
        return [f"{verb} {resource}" for verb in _READ for resource in self.resources]


_SERVICE: Final = {"spec": {"ports": [{"port": 22}], "type": "LoadBalancer"}}
SOURCES: Final = (
    Source(
        "traefik",
        (
            *("ingressroutes", "ingressroutetcps"),
            *("ingressroutes.traefik.containo.us", "ingressroutetcps.traefik.containo.us"),
        ),
        "traefik.io/v1alpha1",
        "ingressroutes",
        {"spec": {"routes": [{"kind": "Rule", "match": f"Host(`{NAME}`)", "services": _BACKENDS}]}},
        shown="IngressRoute",
    ),
    Source(
        "openshift",
        ("routes",),
        "route.openshift.io/v1",
        "routes",
        {
            "spec": {"host": NAME, "to": {"kind": "Service", "name": "web"}},
            "status": {"ingress": [{"host": NAME, "routerName": "default", "conditions": [_ADMITTED]}]},
        },
        shown="Route",
    ),
    Source(
        "contour",
        ("httpproxies",),
        "projectcontour.io/v1",
        "httpproxies",
        {
            "spec": {"virtualhost": {"fqdn": NAME}, "routes": [{"services": _BACKENDS}]},
            "status": {"currentStatus": "valid"},
        },
        shown="HTTPProxy",
    ),
    Source(
        "istio",
        ("gateways.networking.istio.io", "virtualservices"),
        "networking.istio.io/v1",
        "gateways",
        {
            "spec": {
                "selector": {"istio": "ingressgateway"},
                "servers": [{"hosts": [NAME], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}],
            }
        },
        shown="IstioGateway",
    ),
    Source(
        "dnsendpoint",
        ("dnsendpoints",),
        "externaldns.k8s.io/v1alpha1",
        "dnsendpoints",
        {"spec": {"endpoints": [{"dnsName": NAME, "recordType": "A", "targets": [RELAY]}]}},
        shown="DNSEndpoint",
        flags=("--annotations=all", "--target-network=192.0.2.0/24"),
    ),
    Source(
        "external-dns",
        ("services", "ingresses", "gateways", "endpointslices"),
        "v1",
        "services",
        _SERVICE,
        shown="external-dns Service",
        flags=("--annotations=all",),
        annotations={"external-dns.alpha.kubernetes.io/hostname": NAME},
    ),
    Source(
        "service",
        ("services",),
        "v1",
        "services",
        _SERVICE,
        shown="Service",
        ready=False,
        flags=("--annotations=all",),
        annotations={"switchback.dev/hostname": NAME},
    ),
)
OWN_KINDS: Final = [one for source in SOURCES for one in source.calls]


@dataclass(frozen=True)
class Granted:
    """The base and one component on an API server."""

    server: ApiServer
    source: Source
    folder: Path
    manifests: Sequence[Manifest]

    @property
    def role(self) -> Manifest:
        return find(self.manifests, "ClusterRole", f"switchback-dnsproxy-source-{self.source.name}")

    def put(self) -> None:
        kubectl(self.server, "apply", "-k", str(self.folder))
        dnsproxy = ("dnsproxy", "switchback")
        wait_until_allowed(self.server.request, dnsproxy, self.role["rules"], namespace="")

    def take_away(self) -> None:
        name = self.role["metadata"]["name"]
        kubectl(self.server, "delete", f"clusterrole/{name}", f"clusterrolebinding/{name}")
        caller, call = account(self.server, "switchback", "dnsproxy"), f"list {self.source.resources[0]}"
        poll_until(lambda: not caller.allowed([call]), f"refused: {call}", seconds=_SECONDS)

    def variables(self) -> dict[str, str]:
        """The sources in the environment of the pod."""
        template = find(self.manifests, "Deployment", "dnsproxy")["spec"]["template"]
        found = settings_of(self.manifests, template)
        return {key: value for key, value in found.items() if key.startswith("DNSPROXY_SOURCE")}


@pytest.fixture(scope="module")
def with_kinds(bare: ApiServer) -> Iterator[ApiServer]:
    """An API server that knows the kinds of all sources, and one Ingress that is always answered."""
    found = [one for group in GROUPS for one in api.definitions(group)]
    api.install(bare, found)
    bare.create_ingress("neighbour", [NEIGHBOUR])
    yield bare
    api.remove(bare, found)


@pytest.fixture(params=SOURCES, ids=lambda one: one.name, scope="module")
def granted(
    request: pytest.FixtureRequest, with_kinds: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Granted]:
    folder = tmp_path_factory.mktemp("composed")
    compose(folder, with_components=[DEPLOY / "components" / f"source-{request.param.name}"], base=BASE)
    one = Granted(with_kinds, request.param, folder, render(folder))
    one.put()
    yield one
    one.take_away()


@pytest.fixture
def withdrawn(granted: Granted) -> Iterator[Granted]:
    """The same without the component's rights."""
    granted.take_away()
    yield granted
    granted.put()


@pytest.fixture
def route(granted: Granted) -> Iterator[None]:
    """The object that has NAME."""
    source = granted.source
    kind = find_kind(granted.server, source)
    path = api.create(
        granted.server, source.version, source.plural, "r", dict(source.body), kind=kind, annotations=source.annotations
    )
    yield
    granted.server.request("DELETE", path)


def find_kind(server: ApiServer, source: Source) -> str:
    resources = server.request("GET", api.version_path(source.version))["resources"]
    return str(next(one["kind"] for one in resources if one["name"] == source.plural))


def test_every_source_has_a_component_and_a_row_here() -> None:
    components = {one.name for one in (DEPLOY / "components").glob("source-*")}
    assert components == {f"source-{name}" for name in (*OTHERS, SERVICE)}
    assert {f"source-{one.name}" for one in SOURCES} == components


@pytest.mark.parametrize("name", OTHERS)
def test_a_component_lets_its_source_read_the_kinds_that_it_follows_and_no_others(name: str, tmp_path: Path) -> None:
    component = DEPLOY / "components" / f"source-{name}"
    manifests = render(compose(tmp_path, with_components=[component], base=BASE))
    rules = find(manifests, "ClusterRole", f"switchback-dnsproxy-source-{name}")["rules"]
    assert [rule for rule in rules if set(rule) != {"apiGroups", "resources", "verbs"}] == []
    assert {tuple(rule["verbs"]) for rule in rules} == {_READ}
    allowed = {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
    followed = plan_other(None, SourceOptions(name), most=None).kinds  # type: ignore[arg-type]  # it stores nothing
    assert allowed == {(kind.group, kind.resource) for kind in followed}


def test_with_the_component_dnsproxy_reads_its_kinds_and_nothing_else(granted: Granted) -> None:
    caller, own = account(granted.server, "switchback", "dnsproxy"), [*rows(DNSPROXY), *granted.source.calls]
    resources = {parse_call(one).resource for one in granted.source.calls}
    refused = [
        one
        for one in dict.fromkeys((*rows(NEVER_ALLOWED), *OWN_KINDS))
        if one not in own and not (one.startswith(_READ) and parse_call(one).resource in resources)
    ]
    refused += [
        f"{verb} {one} any in default" for verb in ("get", "patch", "delete") for one in granted.source.resources
    ]
    assert caller.allowed([*own, *refused]) == own


def test_without_the_component_its_kinds_are_refused(withdrawn: Granted) -> None:
    caller = account(withdrawn.server, "switchback", "dnsproxy")
    beyond = [one for one in withdrawn.source.calls if one not in rows(DNSPROXY)]
    assert caller.allowed(beyond) == []


def test_an_administrator_may_do_all_of_it(with_kinds: ApiServer) -> None:
    """Otherwise a call would be refused for another reason than its rights."""
    caller = Caller(with_kinds, with_kinds.token)
    assert caller.allowed(OWN_KINDS) == OWN_KINDS


@contextmanager
def served(granted: Granted, folder: Path) -> Iterator[Serving]:
    """`dnsproxy serve` with the account's own token, and the variables of the pod for its sources."""
    config = account(granted.server, "switchback", "dnsproxy").write_kubeconfig(folder / "kubeconfig")
    flags = ("--upstream=127.0.0.1:9", f"--target={RELAY}", "--ownership=off", f"--kubeconfig={config}")
    with serving(folder, *flags, *granted.source.flags, environment=granted.variables()) as one:
        yield one


def addresses(server: Serving, name: str) -> list[str]:
    query = dns.message.make_query(name, "A")
    answer = dns.query.udp(query, server.endpoint.host, port=server.endpoint.port, timeout=10)
    return [str(one) for rrset in answer.answer for one in rrset]


def until_answered(server: Serving, name: str) -> None:
    poll_until(lambda: addresses(server, name) == [RELAY], f"{name} is answered", seconds=_SECONDS)


def logged(server: Serving) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(server.log)]


@pytest.mark.usefixtures("route")
def test_with_the_component_a_name_of_its_kind_is_answered(granted: Granted, tmp_path: Path) -> None:
    with served(granted, tmp_path) as server:
        poll_until(partial(is_ready, server.admin_endpoint.port), "ready", seconds=_SECONDS)
        for name in (NAME, NEIGHBOUR):
            until_answered(server, name)
        assert [line for line in logged(server) if "forbidden" in str(line)] == []


@pytest.mark.usefixtures("route")
def test_without_the_component_its_kinds_alone_are_off(withdrawn: Granted, tmp_path: Path) -> None:
    with served(withdrawn, tmp_path) as server:
        until_answered(server, NEIGHBOUR)
        if withdrawn.source.ready:
            poll_until(partial(is_ready, server.admin_endpoint.port), "ready", seconds=_SECONDS)
        poll_until(lambda: why_off(server, withdrawn.source), "a log line says why", seconds=_SECONDS)
        assert is_ready(server.admin_endpoint.port) is withdrawn.source.ready
        assert addresses(server, NAME) == []


def why_off(server: Serving, source: Source) -> list[str]:
    """The lines of the log about the kind."""
    lines = (line for line in logged(server) if line.get("kind") == source.shown)
    return [line["error"] for line in lines if "is forbidden" in line.get("error", "")]
