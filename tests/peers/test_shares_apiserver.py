"""A tenant that claims all names it can, with a real kube-apiserver: what others keep, and what comes back."""

from __future__ import annotations

from typing import Final

import pytest
import trio
from _pytest.tmpdir import TempPathFactory

from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.settings import ClusterSettings, IngressOptions
from sidecar.values.endpoints import Endpoint
from tests.kit.apiserver import in_thread, running_apiserver
from tests.kit.serve_inside import addresses_in, ask, get, serving, settings

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

RELAY: Final = "10.96.7.7"
SMALL: Final = NameLimits(per_object=2_000, per_namespace=4_000, total=20_000)


def hosts(tenant: str, count: int) -> list[str]:
    return [f"a{number}.{tenant}.example.org" for number in range(count)]


async def is_answered(dns: Endpoint, name: str) -> bool:
    """Over a name of the table; all others are forwarded, to nobody."""
    return addresses_in(await ask(dns, name)) == [RELAY]


async def until_answered(dns: Endpoint, name: str) -> None:
    while not await is_answered(dns, name):  # noqa: ASYNC110  # the state of a server, which gives no signal
        await trio.sleep(0.02)


async def test_a_greedy_tenant_loses_its_own_names_alone_and_gets_them_back(tmp_path_factory: TempPathFactory) -> None:
    """The object that is admitted again is read from the API server with no other right than `list`."""
    with running_apiserver(tmp_path_factory.mktemp("shares")) as api:
        for name in ("evil", "shop"):
            api.create_namespace(name)
        for number in range(4):
            many = hosts(f"e{number}", 5_000)
            await in_thread(api.create_ingress, f"e{number}", many, namespace="evil", ingress_class="nginx")
        api.create_ingress("web", ["shop.example.org"], namespace="shop", ingress_class="nginx")
        ingress = IngressOptions(classes=frozenset({"nginx"}))
        wanted = settings(
            targets=Targets((RELAY,)),
            cluster=ClusterSettings(ingress=ingress, kubeconfig=str(api.kubeconfig)),
            ownership=OwnershipSettings(mode=Mode.OFF),
            limits=SMALL,
        )
        async with serving(wanted) as server:
            (dns,) = server.dns
            await until_answered(dns, "shop.example.org")
            await until_answered(dns, "a1999.e1.example.org")
            assert not await is_answered(dns, "a2000.e0.example.org")
            assert not await is_answered(dns, "a0.e2.example.org")
            _, page = await get(server.admin, "/skipped")
            assert "2 of 4 objects are left out, the youngest, from Ingress evil/e2 on" in page
            await in_thread(api.delete_ingress, "e0", namespace="evil")
            await until_answered(dns, "a1999.e2.example.org")
            assert not await is_answered(dns, "a0.e3.example.org")
