"""An installed Switchback as objects of a state: the Services of dnsproxy and the relay, and the stanza.

The law: what is written in the cluster and what runs are two things, and a state sets both: `corefile_object` is the
ConfigMap, `loaded_corefile` the configuration of the DNS that answers; State.dnsproxy runs the real dnsproxy, and a
server at RELAY stands for the relay.
"""

from __future__ import annotations

from typing import Any, Final

from dnsproxy.corefile.plan import plan_install
from sidecar.values.endpoints import Endpoint
from tests.kit.doctor_stage.objects import (
    BASE,
    DNS_ADDRESS,
    DNSPROXY,
    KEY,
    PUBLIC_DNS,
    Object,
    endpoint_slice,
    service,
    workload,
)

RELAY: Final = "10.96.0.90"
"""The ClusterIP of the relay."""
TO_RELAY: Final = "service:switchback/relay"
_OWN: Final = [Endpoint(DNSPROXY, 53)]
_STOCK: Final = f".:53 {{\n    bind {DNS_ADDRESS}\n    forward . {PUBLIC_DNS}\n}}\n"


def switchback(backend: str = KEY, *, target: str = TO_RELAY, target_for: str = "") -> tuple[Object, ...]:
    """Dnsproxy and the relay, whose backend is a Service; `target` and `target_for` are dnsproxy's settings."""
    namespace, _, name = backend.partition("/")
    routes = " ".join(f"{own}={name}.{namespace}.svc:{port}" for own, port in ((8080, 80), (8443, 443)))
    settings = {"DNSPROXY_TARGET": target} | ({"DNSPROXY_TARGET_FOR": target_for} if target_for else {})
    own, relay = {"app": "dnsproxy"}, {"app": "relay"}
    dns: dict[str, Any] = {"kind": "ClusterIP", "ports": {"dns": 53}, "protocol": "UDP"}
    return (
        service("switchback/dnsproxy", DNSPROXY, labels=own, selector=own, **dns),
        endpoint_slice("switchback/dnsproxy", "10.244.0.5"),
        workload("switchback/dnsproxy", "dnsproxy", "serve", "--upstream", PUBLIC_DNS, labels=own, variables=settings),
        service("switchback/relay", RELAY, kind="ClusterIP", labels=relay, selector=relay),
        endpoint_slice("switchback/relay", "10.244.0.6"),
        workload("switchback/relay", "proxy", labels=relay, variables={"PROXY_ROUTE": routes}),
    )


def steering(backend: str = KEY, *, subject: str = "ingressclass/nginx") -> tuple[Object, ...]:
    """Dnsproxy and a relay that follows route Services, with the one of a class."""
    (relay,) = (one for one in switchback(backend) if one["metadata"]["name"] == "relay" and one["kind"] == "Service")
    annotations = {"switchback.dev/relay-to": backend, "switchback.dev/for": subject}
    metadata = {**relay["metadata"], "name": "relay-nginx", "annotations": annotations}
    others = [one for one in switchback(backend, target="auto") if one["metadata"]["name"] != "relay"]
    pods = {"app": "relay"}
    return (
        *others,
        {**relay, "metadata": metadata},
        endpoint_slice("switchback/relay-nginx", "10.244.0.6"),
        workload("switchback/relay", "proxy", labels=pods, variables={"PROXY_ROUTES_FROM": "services"}),
    )


def corefile_object(*, written: bool = True, line: str = "") -> Object:
    """The ConfigMap of the cluster's DNS, with or without the stanza; `line`: of others, in the block of `.`."""
    (stock,) = (one for one in BASE if one["kind"] == "ConfigMap")
    # The upstreams of the running dnsproxy, which the doctor compares.
    text = stock["data"]["Corefile"].replace("/etc/resolv.conf", PUBLIC_DNS)
    text = text.replace("    ready\n", f"    ready\n{line}", 1)
    installed = plan_install(text, addresses=_OWN).new if written else text
    return {**stock, "data": {**stock["data"], "Corefile": installed}}


def loaded_corefile(line: str = "", *, written: bool = True) -> str:
    """The configuration of a cluster's DNS that asks dnsproxy, unless not `written`; `line` as in corefile_object."""
    text = _STOCK.replace("    forward", f"{line}    forward", 1)
    return plan_install(text, addresses=_OWN).new if written else text
