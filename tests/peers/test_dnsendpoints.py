"""DNSEndpoints on a real API server: the records that a real external-dns makes of them, and what we answer."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.dns.names import Reach
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.rights import Annotations, Rights, parse_network
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.service import Bound
from dnsproxy.sources.external_dns.dns_endpoint_source import DnsEndpointSource
from dnsproxy.sources.external_dns.kinds import ENDPOINTS
from dnsproxy.sources.names import DNS_ENDPOINT
from dnsproxy.sources.settings import ClusterSettings, IngressOptions, SourceOptions
from dnsproxy.sources.source_follower import SourceFollower
from sidecar.values.endpoints import Endpoint
from tests.kit import serve_inside
from tests.kit.apiserver import ApiServer, in_thread, send
from tests.kit.external_dns import published_names
from tests.kit.nsd import running_nsd
from tests.kit.polling import pause
from tests.kit.publishers import server
from tests.kit.serve_inside import get, serving, settings

__all__ = ["server"]

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "dnsendpoint", "external-dns", "nsd")

OBJECTS: Final = 200
HOSTS: Final = ("{0}.example.org", "{0}.Example.org.", "*.{0}.example.org", "{0}_u.example.org", "b.{0}.example.org")
BAD_HOSTS: Final = ("-{0}.example.org", "{0}..example.org", "a.*.{0}.example.org")
ADDRESSES: Final = {"A": ("192.0.2.1", "192.0.2.2", "10.0.0.1"), "AAAA": ("2001:db8::1", "2001:db8::2")}
OTHER_TYPES: Final = ("TXT", "NS")
RELAY: Final = "10.96.7.7"
BALANCER: Final = "lb.example.net"
ZONE: Final = """up CNAME hop
hop CNAME lb
lb A 192.0.2.50
far A 198.51.100.3
"""


def generate(number: int, chance: random.Random) -> list[dict[str, Any]]:
    """The endpoints of one object: for one name records of one or two types, now and then bad ones."""
    found = []
    for host in chance.sample(HOSTS, chance.choice([1, 1, 2])):
        name = chance.choice(BAD_HOSTS if chance.random() < 0.05 else [host]).format(f"o{number}")
        types = chance.choice([["A"], ["A", "AAAA"], ["AAAA"], ["CNAME"], [chance.choice(OTHER_TYPES)]])
        for rtype in types:
            targets = [BALANCER]
            if rtype in ADDRESSES:
                targets = chance.sample(ADDRESSES[rtype], chance.choice([1, 2]))
                if chance.random() < 0.05:
                    targets = [f"{target}." for target in targets]
            found.append({"dnsName": name, "recordType": rtype, "targets": targets, "recordTTL": 60})
    return found


def why_different(endpoints: list[dict[str, Any]]) -> str:
    """Why external-dns and we differ in an object; empty if they must not."""
    if any(re.search(r"(^|\.)-|\.\.|.\*", one["dnsName"]) for one in endpoints):
        return "external-dns sends a text that is no hostname to its provider, and we reject it"
    if any(one["recordType"] in OTHER_TYPES for one in endpoints):
        return "only A, AAAA and CNAME can be answered"
    spellings = {one["dnsName"] for one in endpoints}
    if len({name.lower().removesuffix(".") for name in spellings}) < len(spellings):
        return "external-dns takes two spellings for two names, of which its provider keeps one"
    return ""


def answering(name: str) -> Claim | None:
    """In a table with the one name to which the generated aliases lead: without its row they would claim nothing."""
    return Claim(name, Reach.NAME, Origin("flag", "--host"), Terms((RELAY,))) if name == BALANCER else None


async def claimed(server: ApiServer) -> dict[str, set[str]]:
    """Where the names point that a follower of the real API server claims."""
    store, synced = ClaimStore(), trio.Event()
    async with await load_client(kubeconfig=str(server.kubeconfig), context=None) as client:
        follower = SourceFollower(
            client,
            store,
            DnsEndpointSource(store, most=1_000, answering=answering),
            name="dnsendpoint",
            kinds=ENDPOINTS,
            on_claims=lambda _: None,
            on_synced=synced.set,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follower.run)
            with trio.fail_after(60):
                await synced.wait()
            nursery.cancel_scope.cancel()
    return {one.hostname: set(one.terms.declared or (one.terms.target or "").split(",")) for one in store.claims()}


def collection(namespace: str = "default") -> str:
    return f"/apis/externaldns.k8s.io/v1alpha1/namespaces/{namespace}/dnsendpoints"


def put(server: ApiServer, name: str, *endpoints: dict[str, Any]) -> None:
    body = {
        "apiVersion": "externaldns.k8s.io/v1alpha1",
        "kind": "DNSEndpoint",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"endpoints": list(endpoints)},
    }
    server.request(
        "PATCH",
        f"{collection()}/{name}?fieldManager=test&force=true",
        body,
        content_type="application/apply-patch+yaml",
    )


async def test_the_records_of_external_dns_are_those_that_we_claim(server: ApiServer) -> None:
    chance = random.Random(0)  # noqa: S311  # the same objects each time
    objects = {number: generate(number, chance) for number in range(OBJECTS)}
    with server.connection() as connection:
        for number, endpoints in objects.items():
            body = {"metadata": {"name": f"o{number}"}, "spec": {"endpoints": endpoints}}
            meta = {"apiVersion": "externaldns.k8s.io/v1alpha1", "kind": "DNSEndpoint"}
            send(connection, "POST", collection(), meta | body)
    types = [f"--managed-record-types={one}" for one in (*ADDRESSES, "CNAME", *OTHER_TYPES)]
    theirs = published_names(server.kubeconfig, "default", *types, sources=["crd"])
    ours = await claimed(server)
    server.request("DELETE", collection())
    theirs = {name.removesuffix("."): targets for name, targets in theirs.items()}
    names = {name for name in ours.keys() | theirs if ours.get(name) != theirs.get(name)}
    different = {int(found[1]) for name in names if (found := re.search(r"o([0-9]+)", name))}
    assert {number: objects[number] for number in different if not why_different(objects[number])} == {}
    assert len(different) > 10, "the differences are seen at all"
    assert len(ours.keys() & theirs) > 100


@pytest.fixture(scope="module")
def public_dns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running_nsd(tmp_path_factory.mktemp("public"), ZONE) as port:
        yield port


@asynccontextmanager
async def served(server: ApiServer, public_dns: int, folder: Path, **replaced: Any) -> AsyncIterator[Bound]:
    wanted = settings(
        hosts=(),
        cluster=ClusterSettings(
            IngressOptions(), others=(SourceOptions(DNS_ENDPOINT),), kubeconfig=str(server.kubeconfig)
        ),
        forwarding=ForwardSettings((Endpoint("127.0.0.1", public_dns),), detect_loops=False),
        targets=Targets((RELAY,)),
        rights=Rights(Annotations.ALL, (parse_network("192.0.2.0/24"),)),
        ownership=OwnershipSettings(Mode.VERIFY, **replaced),
        snapshot=folder / "snapshot",
    )
    async with serving(wanted) as bound:
        with trio.fail_after(60):
            while not (await get(bound.admin, "/readyz"))[1].startswith("ready"):
                await pause()
        yield bound


async def until_answered(bound: Bound, name: str, *addresses: str) -> None:
    with trio.fail_after(60):
        await serve_inside.until_answered(bound.dns[0], name, *addresses)


def alias(name: str, target: str) -> dict[str, Any]:
    return {"dnsName": name, "recordType": "CNAME", "targets": [target]}


async def test_an_alias_outside_the_table_is_replaced_where_its_record_leads_to_a_load_balancer(
    server: ApiServer, public_dns: int, tmp_path: Path
) -> None:
    """Its public record decides, and not the object."""
    await in_thread(
        put, server, "led", alias("up.example.org", "elsewhere.example.net"), alias("far.example.org", "lb.example.org")
    )
    replaced = (("192.0.2.50", (RELAY,)),)
    try:
        async with served(server, public_dns, tmp_path, replaced=replaced) as bound:
            await until_answered(bound, "up.example.org", "hop.example.org.", "lb.example.org.", RELAY)
            await until_answered(bound, "far.example.org", "198.51.100.3")
    finally:
        await in_thread(server.request, "DELETE", f"{collection()}/led")


async def test_aliases_follow_the_table_and_others_are_forwarded(
    server: ApiServer, public_dns: int, tmp_path: Path
) -> None:
    await in_thread(
        put,
        server,
        "shop",
        {"dnsName": "own.shop.example.net", "recordType": "A", "targets": ["192.0.2.9"]},
        {"dnsName": "far.shop.example.net", "recordType": "A", "targets": ["198.51.100.1"]},
        alias("own-alias.shop.example.net", "own.shop.example.net"),
        alias("up.example.org", "hop.example.org"),
        alias("app.shop.example.net", "app.example.org"),
        alias("x.shop.example.net", "y.shop.example.net"),
        alias("y.shop.example.net", "x.shop.example.net"),
    )
    await in_thread(server.create_ingress, "app", ["app.example.org"])
    async with served(server, public_dns, tmp_path) as bound:
        await until_answered(bound, "own.shop.example.net", "192.0.2.9")
        await until_answered(bound, "own-alias.shop.example.net", "192.0.2.9")
        await until_answered(bound, "up.example.org", "hop.example.org.", "lb.example.org.", "192.0.2.50")
        await until_answered(bound, "app.shop.example.net", RELAY)
        await in_thread(server.delete_ingress, "app")
        await until_answered(bound, "app.shop.example.net")
        await in_thread(server.create_ingress, "app", ["app.example.org"])
        await until_answered(bound, "app.shop.example.net", RELAY)
        page = (await get(bound.admin, "/explain?name=far.shop.example.net"))[1]
        assert "198.51.100.1 is outside of --target-network" in page
        for name, reason in (
            ("up.example.org", "up.example.org -> hop.example.org: its alias is in no row of the table"),
            ("x.shop.example.net", "leads back to x.shop.example.net"),
        ):
            assert reason in (await get(bound.admin, f"/explain?name={name}"))[1]
        await in_thread(server.request, "DELETE", f"{collection()}/shop")
        await until_answered(bound, "own.shop.example.net")
