"""The guarded domains while what tells them changes."""

from __future__ import annotations

from dnsproxy.corefile.cluster_zones import ClusterZones
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.cluster_domains import ClusterDomains
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.guarded_domains import GuardedDomains

NAMES = ("w.k8s.test", "w.b.test", "w.cluster.local", "w.flag.test")


def answered(registry: Registry) -> set[str]:
    list(registry.changes())
    return {name for name in NAMES if registry.verdict(name, Reach.NAME).winner is not None}


async def test_what_may_be_hidden_takes_no_guard_away() -> None:
    registry = Registry(
        targets=Targets(("192.0.2.1",)), guards=Guards(cluster_domains=("flag.test",), allow=("local",))
    )
    for name in NAMES:
        registry.replace("test", name, [Claim(name, Reach.NAME, Origin("Ingress", name, "shop"))])
    keeper = TableKeeper(registry, ttl=5, publish=lambda _: None, sources=[])
    guarded = GuardedDomains(keeper, search=(), domains=ClusterDomains(flags=("flag.test",)))
    assert answered(registry) == {"w.k8s.test", "w.b.test", "w.cluster.local"}
    guarded.use_corefile(ClusterZones(("k8s.test",)))
    assert answered(registry) == {"w.b.test", "w.cluster.local"}
    guarded.use_corefile(ClusterZones(("b.test",), complete=False))
    assert answered(registry) == set()
    guarded.use_search(("shop.svc.k8s.test", "svc.k8s.test", "k8s.test"))
    guarded.use_corefile(ClusterZones(("b.test",)))
    assert answered(registry) == {"w.cluster.local"}
