"""Reading settings: from the object that a controller reads, each once; what could not be read is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dnsproxy.doctor.facts.model import Service
from tests.dnsproxy.doctor.collect.cluster_api import (
    CLASSES,
    DAEMON_SETS,
    INGRESS,
    INGRESSES,
    MAPS,
    Api,
    service,
    workload,
)

DEPLOYMENTS = "/apis/apps/v1/namespaces/web/deployments"
CONFIG_MAP = "/api/v1/namespaces/web/configmaps/c"
NGINX = "registry.k8s.io/ingress-nginx/controller:v1.13.0"
TRAEFIK = "traefik:v3.7"
ADDRESS = "--entrypoints.web.address=:80"
FILE = "entryPoints: {web: {proxyProtocol: {trustedIPs: [10.0.0.0/8]}}}"


def data(**values: str) -> Any:
    return {"metadata": {"name": "c"}, "data": {key.replace("_", "-"): value for key, value in values.items()}}


def controller(*args: str, image: str = NGINX, volumes: Any = None, **fields: Any) -> Any:
    found = workload("ingress", namespace="web", image=image, args=args, **fields)
    found["spec"]["template"]["spec"]["volumes"] = volumes or []
    return found


def with_class(name: str) -> Any:
    return INGRESS | {"spec": INGRESS["spec"] | {"ingressClassName": name}}


async def read(objects: Mapping[str, Any]) -> tuple[Service, Api]:
    api = Api({INGRESSES: [INGRESS], "/api/v1/services": [service("ingress")]} | dict(objects))
    seen = await api.read()
    return next(one for one in seen.services if one.key == "web/ingress"), api


async def test_skippers_flags_are_at_its_own_workload() -> None:
    flags = ("-enable-proxy-protocol", "-proxy-allow-cidrs=198.51.100.0/24")
    one, _ = await read({DEPLOYMENTS: [controller(*flags, image="teapot/skipper:v0.27.41")]})
    expected = {"enable-proxy-protocol": "true", "proxy-allow-cidrs": "198.51.100.0/24"}
    assert (one.program, one.settings, one.settings_from) == ("skipper", expected, "workload web/ingress")


@pytest.mark.parametrize(
    ("found", "expected", "origin"),
    [
        (data(use_proxy_protocol="true", x="y"), {"use-proxy-protocol": "true"}, "ConfigMap web/c"),
        (data(x="y"), {}, "ConfigMap web/c"),
        ({"metadata": {"name": "c"}, "data": None}, {}, "ConfigMap web/c"),
        (None, {}, ""),
        ({"metadata": {"name": "c"}, "data": {"a": 1}}, {}, ""),
    ],
    ids=["with the key", "without the key", "empty", "absent", "unreadable"],
)
async def test_a_config_map_that_was_read_is_told_from_one_that_was_not(
    found: Any, expected: dict[str, str], origin: str
) -> None:
    objects = {DEPLOYMENTS: [controller("--configmap=web/c")]} | ({CONFIG_MAP: found} if found else {})
    one, _ = await read(objects)
    assert (one.program, one.settings, one.settings_from) == ("ingress-nginx", expected, origin)


async def test_settings_that_may_not_be_read_are_unknown_and_named() -> None:
    api = Api(
        {
            INGRESSES: [INGRESS],
            "/api/v1/services": [service("ingress")],
            DEPLOYMENTS: [controller("--configmap=web/c")],
        },
        status={CONFIG_MAP: 403},
    )
    seen = await api.read()
    assert [failure.what for failure in seen.refusals] == ["get configmaps c in namespace web"]
    assert seen.services[0].settings_from == ""


async def test_services_of_one_controller_cost_each_object_once() -> None:
    services = [service(name, selector={"app": "ingress"}) for name in ("ingress", "internal")]
    services[1]["status"]["loadBalancer"]["ingress"] = [{"ip": "203.0.113.11"}]
    points = [{"ip": "203.0.113.10"}, {"ip": "203.0.113.11"}]
    both = INGRESS | {"status": {"loadBalancer": {"ingress": points}}}
    objects = {INGRESSES: [both], "/api/v1/services": services, CONFIG_MAP: data(use_proxy_protocol="true")}
    api = Api(objects | {DEPLOYMENTS: [controller("--configmap=web/c")]})
    seen = await api.read()
    assert [one.settings for one in seen.services] == [{"use-proxy-protocol": "true"}] * 2
    asked = [path for _, path in api.asked]
    assert (asked.count(DEPLOYMENTS), asked.count(CONFIG_MAP), asked.count(DAEMON_SETS)) == (1, 1, 1)


async def test_a_controller_may_be_a_daemon_set() -> None:
    one, api = await read({DAEMON_SETS: [controller("--configmap=web/c")], CONFIG_MAP: data(use_proxy_protocol="true")})
    assert one.settings == {"use-proxy-protocol": "true"}
    assert "/apis/apps/v1/namespaces/web/daemonsets" not in {path for _, path in api.asked}


def mounted(kind: Any, path: str = "/etc/traefik") -> dict[str, Any]:
    return {"volumes": [{"name": "v"} | kind], "volumeMounts": [{"name": "v", "mountPath": path}]}


IN_MAP = {"configMap": {"name": "c"}}


@pytest.mark.parametrize(
    ("args", "fields", "objects", "expected", "origin"),
    [
        ([ADDRESS], {}, {}, {"entrypoints": "web"}, "workload web/ingress"),
        ([ADDRESS], mounted(IN_MAP), {CONFIG_MAP: {"metadata": {"name": "c"}, "data": {"traefik.yaml": FILE}}},
         {"entrypoints": "web", "entrypoints-with-proxy-protocol": "web", "trusted-ips": "10.0.0.0/8"},
         "ConfigMap web/c"),
        (["--configfile=/config/a.yml"], mounted(IN_MAP, "/config"),
         {CONFIG_MAP: {"metadata": {"name": "c"}, "data": {"a.yml": FILE}}},
         {"entrypoints": "web", "entrypoints-with-proxy-protocol": "web", "trusted-ips": "10.0.0.0/8"},
         "ConfigMap web/c"),
        ([ADDRESS], mounted(IN_MAP), {CONFIG_MAP: {"metadata": {"name": "c"}, "data": {"dynamic.yaml": FILE}}},
         {"entrypoints": "web"}, "workload web/ingress"),
        ([ADDRESS], mounted(IN_MAP), {}, {}, ""),
        ([ADDRESS], mounted({"secret": {}}), {}, {}, ""),
        ([ADDRESS, "--configfile=/config/a.yml"], {}, {}, {}, ""),
        ([ADDRESS], mounted({"emptyDir": {}}, "/data"), {}, {"entrypoints": "web"}, "workload web/ingress"),
    ],
    ids=["arguments", "file in etc", "named file", "another file", "absent map", "secret", "file in the image",
         "other volume"],
)  # fmt: skip
async def test_traefik_reads_its_file_before_its_arguments(
    args: list[str], fields: Mapping[str, Any], objects: Mapping[str, Any], expected: dict[str, str], origin: str
) -> None:
    one, _ = await read({DEPLOYMENTS: [controller(*args, image=TRAEFIK, **fields)]} | dict(objects))
    assert (one.program, one.settings, one.settings_from) == ("traefik", expected, origin)


async def test_settings_of_cilium_are_those_of_its_data_plane() -> None:
    keys = {"enable-ingress-proxy-protocol": "true", "enable-gateway-api-proxy-protocol": "false", "ipam": "kubernetes"}
    one, api = await read(
        {
            CLASSES: [{"metadata": {"name": "cilium"}, "spec": {"controller": "cilium.io/ingress-controller"}}],
            INGRESSES: [with_class("cilium")],
            "/api/v1/services": [service("ingress", selector=None)],
            DAEMON_SETS: [workload("cilium", image="quay.io/cilium/cilium:v1.18.0")],
            f"{MAPS}/cilium-config": {"metadata": {"name": "cilium-config"}, "data": keys},
        }
    )
    assert one.program == "cilium"
    assert one.settings == {key: value for key, value in keys.items() if key != "ipam"}
    assert one.settings_from == "ConfigMap kube-system/cilium-config"
    assert DEPLOYMENTS not in {path for _, path in api.asked}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["serve", "--use-proxy-protocol"], {"use-proxy-protocol": "true"}),
        (["serve", "--use-proxy-protocol=false"], {"use-proxy-protocol": "false"}),
        (["serve"], {}),
    ],
)
async def test_contours_flag_is_at_the_deployment_beside_envoy(words: list[str], expected: dict[str, str]) -> None:
    one, _ = await read(
        {
            CLASSES: [{"metadata": {"name": "c"}, "spec": {"controller": "projectcontour.io/ingress-controller"}}],
            INGRESSES: [with_class("c")],
            DEPLOYMENTS: [workload("contour", namespace="web", args=words)],
            DAEMON_SETS: [workload("ingress", namespace="web", image="envoyproxy/envoy:v1.34")],
        }
    )
    assert (one.program, one.settings) == ("contour", expected)
