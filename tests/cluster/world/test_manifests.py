"""The controllers' manifests: what is changed in them, and that every image they ask for is built."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.cluster.addresses import IPV4
from tests.cluster.plan import CONTROLLERS, METALLB, Plan
from tests.cluster.world import contour, skipper, traefik
from tests.cluster.world.controller import MANIFESTS
from tests.cluster.world.images import CONTROLLERS as IMAGES
from tests.cluster.world.images import WorldImage, images_of, programs_of
from tests.kit.programs import program

TRUSTED = IPV4.of("traefik")


def render(folder: Path) -> list[dict[str, Any]]:
    """The objects of a kustomization."""
    done = subprocess.run([program("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def images_in(objects: Iterable[dict[str, Any]]) -> set[str]:
    """Of all containers of their pods."""
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] in {"Deployment", "DaemonSet", "Job"}]
    return {one["image"] for pod in pods for one in (*pod["containers"], *pod.get("initContainers", ()))}


def deployment_of(objects: Iterable[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = (one for one in objects if one["kind"] == "Deployment" and one["metadata"]["name"] == name)
    return dict(found["spec"])


def stage(folder: Path) -> Any:
    return SimpleNamespace(folder=folder, at=IPV4, cluster=SimpleNamespace(at=(IPV4,)))


def names(images: Iterable[WorldImage]) -> set[str]:
    return {one.name for one in images}


@pytest.mark.peer("kubectl", "contour-crds", "skipper-manifests", "traefik-crds")
def test_every_image_that_the_manifests_ask_for_is_built(tmp_path: Path) -> None:
    folders = (
        contour.kustomization(stage(tmp_path)),
        skipper.kustomization(stage(tmp_path), allowed=TRUSTED),
        traefik.kustomization(stage(tmp_path), trusted=TRUSTED),
    )
    own = yaml.safe_load_all((MANIFESTS / "envoy-gateway.yaml").read_text(encoding="utf-8"))
    asked = set().union(*(images_in(render(one)) for one in folders), images_in(own))
    assert asked <= names(IMAGES)


@pytest.mark.parametrize("trusted", ["", TRUSTED], ids=["refused", "taken"])
@pytest.mark.peer("kubectl", "traefik-crds")
def test_traefik_takes_the_header_of_a_trusted_address_alone(trusted: str, tmp_path: Path) -> None:
    objects = render(traefik.kustomization(stage(tmp_path), trusted=trusted))
    (container,) = deployment_of(objects, "traefik")["template"]["spec"]["containers"]
    header = [one for one in container["args"] if "proxyprotocol" in one]
    wanted = [f"--entrypoints.{name}.proxyprotocol.trustedips={trusted}" for name in ("web", "websecure")]
    assert header == (wanted if trusted else [])
    (binding,) = (one for one in objects if one["kind"] == "ClusterRoleBinding")
    assert binding["subjects"][0]["namespace"] == "traefik"


@pytest.mark.parametrize("allowed", ["", TRUSTED], ids=["refused", "taken"])
@pytest.mark.peer("kubectl", "skipper-manifests")
def test_skipper_reads_the_header_on_its_port_with_tls(allowed: str, tmp_path: Path) -> None:
    objects = render(skipper.kustomization(stage(tmp_path), allowed=allowed))
    pod = deployment_of(objects, "skipper-ingress")["template"]["spec"]
    (container,) = pod["containers"]
    assert {"-address=:9443", "-insecure-address=:9999"} <= set(container["args"])
    assert ("-enable-proxy-protocol" in container["args"]) == bool(allowed)
    assert not pod.keys() & {"hostNetwork", "nodeSelector"}


@pytest.mark.peer("kubectl", "skipper-manifests")
def test_skippers_service_is_a_load_balancers_and_no_former_kind_is_left(tmp_path: Path) -> None:
    objects = render(skipper.kustomization(stage(tmp_path), allowed=""))
    (service,) = (one for one in objects if one["kind"] == "Service")
    assert service["spec"]["type"] == "LoadBalancer"
    assert {one["port"]: one["targetPort"] for one in service["spec"]["ports"]} == {80: 9999, 443: 9443}
    assert {one["kind"] for one in objects} == {
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment", "Service"),
    }


def test_each_scene_has_its_images() -> None:
    assert {one.peer for one in images_of(Plan())} == {"contour", "envoy", "cert-manager", "speaker"}
    assert images_of(Plan(scene=CONTROLLERS, world=False)) == IMAGES
    assert images_of(Plan(scene=METALLB, world=False)) == ()
    assert images_of(Plan(world=False)) == ()


def test_a_scene_needs_the_programs_in_its_images_and_folders() -> None:
    needed = programs_of(Plan(scene=CONTROLLERS, world=False))
    assert {"traefik", "skipper", "envoy-gateway", "envoy", "skipper-manifests"} <= set(needed)
    assert len(set(needed)) == len(needed)
    assert programs_of(Plan(world=False)) == ()
