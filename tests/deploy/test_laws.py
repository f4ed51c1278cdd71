"""Each law can fail: for each one there is a manifest that breaks it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.deploy import laws

GOOD: list[dict[str, Any]] = [
    {
        "kind": "ServiceAccount",
        "metadata": {"name": "reader", "namespace": "switchback"},
        "automountServiceAccountToken": False,
    },
    {
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": "switchback"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get", "patch"]}],
    },
    {
        "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": "switchback"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "switchback"}],
    },
    {
        "kind": "Service",
        "metadata": {"name": "reader", "namespace": "switchback"},
        "spec": {"selector": {"app": "reader"}},
    },
    {
        "kind": "Deployment",
        "metadata": {"name": "reader", "namespace": "switchback"},
        "spec": {
            "template": {
                "metadata": {
                    "labels": {"app": "reader", "sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none"},
                    "annotations": {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"},
                },
                "spec": {
                    "serviceAccountName": "reader",
                    "automountServiceAccountToken": True,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [
                        {
                            "name": "main",
                            "image": "localhost/switchback:0.1.0",
                            "args": ["serve"],
                            "startupProbe": {"timeoutSeconds": 5},
                            "livenessProbe": {"timeoutSeconds": 5},
                            "readinessProbe": {"timeoutSeconds": 6},
                            "resources": {
                                "requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
                                "limits": {"memory": "1Gi", "ephemeral-storage": "1Gi"},
                            },
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                            },
                        }
                    ],
                },
            }
        },
    },
]

Change = Callable[[list[dict[str, Any]]], None]


def pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = manifests[4]["spec"]["template"]["spec"]
    return spec


def of_pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    metadata: dict[str, Any] = manifests[4]["spec"]["template"]["metadata"]
    return metadata


def main(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    container: dict[str, Any] = pod(manifests)["containers"][0]
    return container


def put(where: Callable[[list[dict[str, Any]]], dict[str, Any]], **values: object) -> Change:
    """Change the values of one part; None removes the value."""

    def change(manifests: list[dict[str, Any]]) -> None:
        part = where(manifests)
        for key, value in values.items():
            part.pop(key, None)
            if value is not None:
                part[key] = value

    return change


def rule(**values: object) -> Change:
    return put(lambda manifests: manifests[1]["rules"][0], **values)


def cluster_wide(**values: object) -> Change:
    def change(manifests: list[dict[str, Any]]) -> None:
        manifests[1]["kind"] = "ClusterRole"
        rule(**values)(manifests)

    return change


BROKEN: dict[str, tuple[laws.Law, Change]] = {
    "settings-unmounted": (
        laws.settings_outlast_the_api_server,
        put(main, command=["proxy"], args=None, envFrom=[{"configMapRef": {"name": "x"}}]),
    ),
    "root": (laws.pods_are_restricted, put(pod, securityContext={"runAsUser": 65532})),
    "user-zero": (laws.pods_are_restricted, put(lambda all_: pod(all_)["securityContext"], runAsUser=0)),
    "no-user": (laws.pods_are_restricted, put(lambda all_: pod(all_)["securityContext"], runAsUser=None)),
    "no-seccomp": (laws.pods_are_restricted, put(lambda all_: pod(all_)["securityContext"], seccompProfile=None)),
    "host-network": (laws.pods_are_restricted, put(pod, hostNetwork=True)),
    "host-path": (laws.pods_are_restricted, put(pod, volumes=[{"name": "x", "hostPath": {"path": "/etc"}}])),
    "writable": (
        laws.pods_are_restricted,
        put(lambda all_: main(all_)["securityContext"], readOnlyRootFilesystem=None),
    ),
    "escalation": (
        laws.pods_are_restricted,
        put(lambda all_: main(all_)["securityContext"], allowPrivilegeEscalation=None),
    ),
    "capability": (
        laws.pods_are_restricted,
        put(lambda all_: main(all_)["securityContext"], capabilities={"drop": ["ALL"], "add": ["NET_ADMIN"]}),
    ),
    "first-container": (laws.pods_are_restricted, put(pod, initContainers=[{"name": "first", "image": "x"}])),
    "meshed-label": (laws.pods_stay_outside_of_a_mesh, put(of_pod, labels={"app": "reader"})),
    "meshed-annotation": (laws.pods_stay_outside_of_a_mesh, put(of_pod, annotations=None)),
    "other-image": (laws.images_are_one, put(main, image="busybox:1")),
    "longer-name": (laws.images_are_one, put(main, image="localhost/switchback-tools:1")),
    "no-tag": (laws.images_are_one, put(main, image="localhost/switchback")),
    "helm-hook": (
        laws.nothing_is_a_hook,
        put(lambda all_: all_[4]["metadata"], annotations={"helm.sh/hook": "pre-delete"}),
    ),
    "removal": (laws.nothing_is_a_hook, put(main, args=["uninstall"])),
    "long-name": (laws.names_fit, put(lambda all_: all_[3]["metadata"], name="x" * 64)),
    "token-for-all": (
        laws.tokens_match_rights,
        put(lambda all_: all_[0], automountServiceAccountToken=None),
    ),
    "needless-token": (laws.tokens_match_rights, put(lambda all_: all_[2], subjects=[])),
    "no-token": (laws.tokens_match_rights, put(pod, automountServiceAccountToken=False)),
    "default-account": (laws.tokens_match_rights, put(pod, serviceAccountName="default")),
    "wild-verb": (laws.rights_are_narrow, rule(verbs=["*"])),
    "wild-resource": (laws.rights_are_narrow, rule(resources=["*"])),
    "secrets": (laws.rights_are_narrow, rule(resources=["secrets"], verbs=["get"])),
    "escalate": (laws.rights_are_narrow, rule(verbs=["bind"])),
    "any-name": (laws.rights_are_narrow, cluster_wide(resourceNames=None, verbs=["patch"])),
    "no-probe": (laws.probes_have_time, put(main, livenessProbe=None)),
    "hasty-probe": (laws.probes_have_time, put(main, livenessProbe={"timeoutSeconds": 1})),
    "hasty-readiness": (laws.probes_have_time, put(main, readinessProbe={"timeoutSeconds": 5})),
    "no-resources": (laws.resources_are_set, put(main, resources=None)),
    "processor-limit": (
        laws.resources_are_set,
        put(lambda all_: main(all_)["resources"], limits={"memory": "1Gi", "ephemeral-storage": "1Gi", "cpu": "1"}),
    ),
    "two-spreads": (
        laws.spreads_count,
        put(
            pod,
            topologySpreadConstraints=[
                {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
                for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
            ],
        ),
    ),
    "lost-service": (laws.selectors_find_pods, put(lambda all_: all_[3]["spec"], selector={"app": "other"})),
}


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
def test_a_good_manifest_keeps_every_law(law: laws.Law) -> None:
    assert list(law(GOOD)) == []


@pytest.mark.parametrize(("law", "change"), BROKEN.values(), ids=BROKEN)
def test_a_broken_law_is_reported(law: laws.Law, change: Change) -> None:
    manifests = copy.deepcopy(GOOD)
    change(manifests)
    assert len(list(law(manifests))) >= 1


@pytest.mark.parametrize(("suspended", "faults"), [(True, 0), (False, 1)])
def test_a_removal_may_lie_in_wait_but_not_run(suspended: bool, faults: int) -> None:
    manifests = copy.deepcopy(GOOD)
    main(manifests)["args"] = ["uninstall"]
    manifests[4] |= {"kind": "CronJob", "spec": {"suspend": suspended, "jobTemplate": {"spec": manifests[4]["spec"]}}}
    assert len(list(laws.nothing_is_a_hook(manifests))) == faults


def test_a_program_that_writes_a_nodes_file_keeps_all_other_laws() -> None:
    manifests = copy.deepcopy(GOOD)
    pod(manifests)["securityContext"] |= {"runAsUser": 0, "runAsNonRoot": False}
    pod(manifests)["volumes"] = [{"name": "hosts", "hostPath": {"path": "/etc/hosts", "type": "File"}}]
    manifests[4]["metadata"]["name"] = "node-hosts"
    assert list(laws.pods_are_restricted(manifests)) == []
    for host_path in (
        {"path": "/etc", "type": "Directory"},
        {"path": "/etc/shadow", "type": "File"},
        {"path": "/etc/hosts"},
    ):
        pod(manifests)["volumes"] = [{"name": "etc", "hostPath": host_path}]
        assert len(list(laws.pods_are_restricted(manifests))) == 1
    pod(manifests)["hostNetwork"] = True
    assert len(list(laws.pods_are_restricted(manifests))) == 2


def test_a_program_that_writes_rules_of_a_nodes_network_keeps_all_other_laws() -> None:
    manifests = copy.deepcopy(GOOD)
    pod(manifests)["securityContext"] |= {"runAsUser": 0, "runAsNonRoot": False}
    pod(manifests)["hostNetwork"] = True
    main(manifests)["securityContext"]["capabilities"]["add"] = ["NET_ADMIN"]
    manifests[4]["metadata"]["name"] = "wholeip"
    assert list(laws.pods_are_restricted(manifests)) == []
    for change in (
        put(pod, hostPID=True),
        put(pod, volumes=[{"name": "etc", "hostPath": {"path": "/etc"}}]),
        put(lambda all_: main(all_)["securityContext"]["capabilities"], add=["NET_ADMIN", "NET_RAW"]),
        put(lambda all_: main(all_)["securityContext"], readOnlyRootFilesystem=None),
    ):
        broken = copy.deepcopy(manifests)
        change(broken)
        assert len(list(laws.pods_are_restricted(broken))) == 1


def test_every_law_is_broken_by_something() -> None:
    assert {law for law, _ in BROKEN.values()} == set(laws.LAWS)
