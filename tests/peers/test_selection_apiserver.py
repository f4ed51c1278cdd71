"""--namespace, --label-selector and --annotation-filter with a real kube-apiserver, and tokens with Roles alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.rights import Annotations, Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.service import Bound
from dnsproxy.sources.annotations import HOSTNAME
from dnsproxy.sources.selection import Selection
from dnsproxy.sources.settings import ClusterSettings, IngressOptions
from sidecar.kubernetes.selector import parse_annotation_selector, parse_selector
from sidecar.values.endpoints import Endpoint
from tests.kit.accounts import create_account, role, write_kubeconfig
from tests.kit.apiserver import ApiServer, in_thread, ingress, send
from tests.kit.polling import pause
from tests.kit.serve_inside import addresses_in, ask, get, serving, settings

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

RELAY: Final = "10.96.7.7"
READ: Final = (
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["services"], "verbs": ["list", "watch"]},
)
_numbers = itertools.count()


@dataclass
class Tenants:
    """Namespaces of one test on the shared API server, each with an Ingress and a Service."""

    api: ApiServer
    folder: Path
    mark: str = field(default_factory=lambda: f"sel{next(_numbers)}")

    def name(self, tenant: str) -> str:
        return f"{self.mark}-{tenant}"

    def host(self, kind: str, tenant: str) -> str:
        return f"{kind}.{self.name(tenant)}.example.org"

    def create(self, *tenants: str) -> None:
        for tenant in tenants:
            namespace = self.name(tenant)
            self.api.create_namespace(namespace)
            self.put_ingress("app", tenant)
            metadata = {"name": "git", "annotations": {HOSTNAME: self.host("git", tenant)}}
            path = f"/api/v1/namespaces/{namespace}/services"
            self.api.request("POST", path, {"metadata": metadata, "spec": {"ports": [{"port": 22}]}})

    def put_ingress(self, kind: str, tenant: str, **metadata: Any) -> None:
        item = ingress(kind, [self.host(kind, tenant)], namespace=self.name(tenant))
        item["metadata"] |= metadata
        with self.api.connection() as connection:
            path = f"/apis/networking.k8s.io/v1/namespaces/{self.name(tenant)}/ingresses"
            send(connection, "POST", path, item)

    def patch(self, kind: str, tenant: str, **metadata: Any) -> None:
        self.api.patch_ingress(kind, {"metadata": metadata}, namespace=self.name(tenant))

    def token(self, *allowed: str) -> str:
        """Of an account that may list and watch Ingresses and Services in these namespaces, and nothing else."""
        roles = [role(self.name(tenant), READ) for tenant in allowed]
        return create_account(self.api, "default", f"{self.mark}-reader", roles)

    def served(
        self,
        token: str,
        *,
        tenants: Sequence[str] = (),
        services: bool = False,
        rights: Rights = Rights(Annotations.ALL),  # noqa: B008  # a frozen value
        **selectors: Any,
    ) -> AbstractAsyncContextManager[Bound]:
        config = write_kubeconfig(self.api, token, self.folder / f"{self.mark}.kubeconfig")
        cluster = ClusterSettings(
            ingress=IngressOptions(),
            services=services,
            selection=Selection(tuple(map(self.name, tenants)), **selectors),
            kubeconfig=str(config),
        )
        return serving(
            settings(
                targets=Targets((RELAY,)),
                cluster=cluster,
                ownership=OwnershipSettings(mode=Mode.OFF),
                rights=rights,
                hosts=(),
            )
        )


@pytest.fixture
def tenants(apiserver: ApiServer, tmp_path: Path) -> Iterator[Tenants]:
    one = Tenants(apiserver, tmp_path)
    yield one
    for tenant in ("shop", "blog", "wiki"):
        apiserver.delete_all_ingresses(namespace=one.name(tenant))


async def is_answered(dns: Endpoint, name: str) -> bool:
    return addresses_in(await ask(dns, name)) == [RELAY]


async def until_answered(dns: Endpoint, name: str, *, answered: bool = True) -> None:
    while await is_answered(dns, name) is not answered:  # noqa: ASYNC110  # a server, which gives no signal
        await trio.sleep(0.02)


async def until_readiness(server: Bound, status: int, *parts: str) -> None:
    """Until /readyz has this status, and a reason with all these parts."""
    while True:
        found, reason = await get(server.admin, "/readyz")
        if found == status and all(part in reason for part in parts):
            return
        await trio.sleep(0.02)


async def test_roles_are_enough_for_the_namespaces_that_are_named(tenants: Tenants) -> None:
    """Neither IngressClasses nor Namespaces can be read; other namespaces are never asked for."""
    await in_thread(tenants.create, "shop", "blog", "wiki")
    token = await in_thread(tenants.token, "shop", "blog")
    async with tenants.served(token, tenants=("shop", "blog"), services=True) as server:
        await until_readiness(server, 200, "ready, 4 names")
        (dns,) = server.dns
        for tenant in ("shop", "blog"):
            assert await is_answered(dns, tenants.host("app", tenant))
            assert await is_answered(dns, tenants.host("git", tenant))
        await in_thread(tenants.put_ingress, "late", "blog")
        await until_answered(dns, tenants.host("late", "blog"))
        await in_thread(tenants.api.delete_ingress, "late", namespace=tenants.name("blog"))
        await until_answered(dns, tenants.host("late", "blog"), answered=False)
        assert not await is_answered(dns, tenants.host("app", "wiki"))


async def test_a_namespace_without_a_role_is_named_and_the_others_are_answered(tenants: Tenants) -> None:
    await in_thread(tenants.create, "shop", "blog")
    token = await in_thread(tenants.token, "shop")
    async with tenants.served(token, tenants=("shop", "blog")) as server:
        (dns,) = server.dns
        await until_answered(dns, tenants.host("app", "shop"))
        missing = f"Ingress: namespace {tenants.name('blog')}: 403: ingresses.networking.k8s.io is forbidden"
        await until_readiness(server, 503, "waiting for the first sync of: Ingress", missing)
        await in_thread(tenants.put_ingress, "late", "shop")
        await until_answered(dns, tenants.host("late", "shop"))
        assert not await is_answered(dns, tenants.host("app", "blog"))


async def test_roles_are_not_enough_without_the_flag(tenants: Tenants) -> None:
    """The contrary: otherwise the tokens above would prove nothing."""
    await in_thread(tenants.create, "shop")
    token = await in_thread(tenants.token, "shop")
    async with tenants.served(token) as server:
        await until_readiness(server, 503, "waiting for the first sync of: Ingress")
        while "at the cluster scope" not in (await get(server.admin, "/"))[1]:
            await pause()
        assert not await is_answered(server.dns[0], tenants.host("app", "shop"))


async def test_a_namespace_that_comes_later_is_answered_then(tenants: Tenants) -> None:
    await in_thread(tenants.create, "shop")
    async with tenants.served(tenants.api.token, tenants=("shop", "blog")) as server:
        await until_readiness(server, 200, "ready, 1 names")
        await in_thread(tenants.create, "blog")
        await until_answered(server.dns[0], tenants.host("app", "blog"))


async def test_hidden_namespaces_have_no_annotations_that_count(tenants: Tenants) -> None:
    """Though the namespace has the label: a Role cannot allow reading it."""
    await in_thread(tenants.create, "shop")
    await in_thread(tenants.api.allow_annotations, tenants.name("shop"))
    token = await in_thread(tenants.token, "shop")
    async with tenants.served(token, tenants=("shop",), services=True, rights=Rights()) as server:
        await until_readiness(server, 200)
        assert await is_answered(server.dns[0], tenants.host("app", "shop"))
        assert not await is_answered(server.dns[0], tenants.host("git", "shop"))
        _, why = await get(server.admin, f"/explain?name={tenants.host('git', 'shop')}")
        assert "--annotations all" in why


async def test_objects_come_and_go_with_labels_and_annotations(tenants: Tenants) -> None:
    await in_thread(tenants.create, "shop")
    public = parse_annotation_selector("example.org/public in (yes/no, yes)")
    labels = parse_selector("team in (web,api),!internal")
    token = tenants.api.token
    async with tenants.served(token, tenants=("shop",), labels=labels, annotations=public) as server:
        await until_readiness(server, 200, "ready, 0 names")
        (dns,), host = server.dns, tenants.host("app", "shop")
        await in_thread(tenants.patch, "app", "shop", labels={"team": "web"})
        await in_thread(tenants.put_ingress, "other", "shop", labels={"team": "api"}, annotations={})
        await in_thread(tenants.patch, "app", "shop", annotations={"example.org/public": "yes/no"})
        await until_answered(dns, host)
        assert not await is_answered(dns, tenants.host("other", "shop"))
        await in_thread(tenants.patch, "app", "shop", labels={"internal": ""})
        await until_answered(dns, host, answered=False)
        await in_thread(tenants.patch, "app", "shop", labels={"internal": None})
        await until_answered(dns, host)
        await in_thread(tenants.patch, "app", "shop", annotations={"example.org/public": "no"})
        await until_answered(dns, host, answered=False)
