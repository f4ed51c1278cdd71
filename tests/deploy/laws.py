"""The rules that hold for every manifest of ours, whatever an overlay changes.

The law: a rule is a function from manifests to sentences, one for each fault; no sentence means that the rule is kept.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tests.deploy.manifests import Manifest, containers, name_of, pod_templates

IMAGE: Final = "localhost/switchback"
OF_NODES: Final = frozenset({"node-hosts"})
"""They write a file of the node, as its owner, and have their own namespaces. All other rules hold for them too."""
FILE_OF_NODES: Final = {"path": "/etc/hosts", "type": "File"}
OF_NETWORKS: Final = frozenset({"wholeip", "wholeip-uninstall"})
"""They write rules of the node's network and need one capability, which only root gets. All other rules hold."""
IN_THE_PATH: Final = (("dnsproxy", "serve"), ("proxy",))
"""The programs that other programs wait for."""
LONGEST_NAME: Final = 63
"""The limit for a label's value: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"""
_HOOKS: Final = ("helm.sh/hook", "argocd.argoproj.io/hook")
_REMOVING: Final = frozenset({"uninstall", "delete"})
_WILD: Final = "*"

_OUT_OF_MESH: Final = {"sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none"}
_UNMESHED: Final = {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"}
"""Labels, and annotations, with which Istio and Linkerd leave a pod alone."""

Law = Callable[[Sequence[Manifest]], Iterator[str]]


def pods_are_restricted(manifests: Sequence[Manifest]) -> Iterator[str]:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/ plus a read-only root."""
    for workload, template in pod_templates(manifests):
        name, spec = name_of(workload), template["spec"]
        of_pod = spec.get("securityContext") or {}
        is_of_network = workload["metadata"]["name"] in OF_NETWORKS
        is_of_node = workload["metadata"]["name"] in OF_NODES
        is_root = is_of_node or is_of_network
        if of_pod.get("runAsNonRoot") is not True and not is_root:
            yield f"{name} may run as root"
        if not is_root and (not isinstance(of_pod.get("runAsUser"), int) or of_pod["runAsUser"] <= 0):
            yield f"{name} has no user of its own"
        if (of_pod.get("seccompProfile") or {}).get("type") != "RuntimeDefault":
            yield f"{name} has no seccomp profile"
        for one in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.get(one) and not (is_of_network and one == "hostNetwork"):
                yield f"{name} has {one}"
        for volume in spec.get("volumes", ()):
            if volume.get("hostPath", FILE_OF_NODES) != FILE_OF_NODES or ("hostPath" in volume and not is_of_node):
                yield f"{name} mounts another part of the node"
        for container in containers(template):
            own = container.get("securityContext") or {}
            if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
                yield f"{name}, {container['name']} may gain privileges"
            if own.get("readOnlyRootFilesystem") is not True:
                yield f"{name}, {container['name']} may write to its root"
            added = ["NET_ADMIN"] if is_of_network else []
            capabilities = own.get("capabilities") or {}
            if capabilities.get("drop") != ["ALL"] or capabilities.get("add", []) != added:
                yield f"{name}, {container['name']} keeps capabilities"


def pods_stay_outside_of_a_mesh(manifests: Sequence[Manifest]) -> Iterator[str]:
    """A sidecar would hide the client's address from the relay, and a Job with one never ends."""
    for workload, template in pod_templates(manifests):
        if template["spec"].get("hostNetwork"):
            # No mesh injects a sidecar there.
            continue
        labels, annotations = (template["metadata"].get(part) or {} for part in ("labels", "annotations"))
        if not _OUT_OF_MESH.items() <= labels.items() or not _UNMESHED.items() <= annotations.items():
            yield f"{name_of(workload)} may get a sidecar"


def images_are_one(manifests: Sequence[Manifest]) -> Iterator[str]:
    """One line of an overlay can change or pin every image."""
    for workload, template in pod_templates(manifests):
        for container in containers(template):
            image = container["image"]
            if not image.startswith((f"{IMAGE}:", f"{IMAGE}@sha256:")):
                yield f"{name_of(workload)}, {container['name']} has the image {image}"


def nothing_is_a_hook(manifests: Sequence[Manifest]) -> Iterator[str]:
    """`kubectl apply` has no hooks: an action meant to run before a deletion would run at once.

    A suspended CronJob is a template for Jobs that a person creates.
    """
    for one in manifests:
        for annotation in one["metadata"].get("annotations") or {}:
            if annotation in _HOOKS:
                yield f"{name_of(one)} is a hook"
    for workload, template in pod_templates(manifests):
        for container in containers(template):
            words = {str(word) for word in [*container.get("command", ()), *container.get("args", ())]}
            waits = workload["kind"] == "CronJob" and workload["spec"].get("suspend") is True
            if words & _REMOVING and not waits:
                yield f"{name_of(workload)} removes objects as soon as it is applied"


def names_fit(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Derived names must fit too: a Job's pods have its name as a label."""
    for one in manifests:
        if len(one["metadata"]["name"]) > LONGEST_NAME and one["kind"] != "CustomResourceDefinition":
            yield f"{name_of(one)} has a name that is too long"


def tokens_match_rights(manifests: Sequence[Manifest]) -> Iterator[str]:
    """A pod has a token if and only if its account has rights, and each account belongs to these manifests."""
    accounts = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in manifests if _is_account(one)}
    entitled = {(one["namespace"], one["name"]) for binding in manifests for one in binding.get("subjects") or ()}
    for one in manifests:
        if _is_account(one) and one.get("automountServiceAccountToken") is not False:
            yield f"{name_of(one)} gives its token to every pod"
    for workload, template in pod_templates(manifests):
        spec = template["spec"]
        account = (workload["metadata"].get("namespace"), spec.get("serviceAccountName"))
        if account not in accounts:
            yield f"{name_of(workload)} uses the account of other manifests: {account[1]}"
        if bool(spec.get("automountServiceAccountToken", True)) != (account in entitled):
            yield f"{name_of(workload)}: its token and its rights do not match"


def rights_are_narrow(manifests: Sequence[Manifest]) -> Iterator[str]:
    """No wildcard, no Secret; a write right is restricted to names, or at least to a namespace."""
    for role in manifests:
        if role["kind"] not in {"Role", "ClusterRole"}:
            continue
        for rule in role.get("rules") or ():
            verbs = set(rule["verbs"])
            if _WILD in {*verbs, *rule.get("resources", ()), *rule.get("apiGroups", ())}:
                yield f"{name_of(role)} has a wildcard"
            if "secrets" in rule.get("resources", ()):
                yield f"{name_of(role)} reads Secrets"
            if {"escalate", "bind", "impersonate"} & verbs:
                yield f"{name_of(role)} could grant itself more rights"
            if (
                {"update", "patch", "delete"} & verbs
                and not rule.get("resourceNames")
                and role["kind"] == "ClusterRole"
            ):
                yield f"{name_of(role)} changes objects with any name"


def probes_have_time(manifests: Sequence[Manifest]) -> Iterator[str]:
    """The programs answer a probe within five seconds, with a reason; the kubelet's default is one second."""
    for workload, template in pod_templates(manifests):
        for container in containers(template):
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if probe not in container and workload["kind"] not in {"Job", "CronJob"}:
                    yield f"{name_of(workload)} has no {probe}"
                elif container.get(probe, {}).get("timeoutSeconds", 5) < 5:
                    yield f"{name_of(workload)}: its {probe} gives up before the program"
            if container.get("readinessProbe", {}).get("timeoutSeconds", 6) <= 5:
                yield f"{name_of(workload)}: its readinessProbe gives up before the program gives a reason"


def resources_are_set(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Requests for all resources, limits for memory and disk, no limit for the CPU."""
    for workload, template in pod_templates(manifests):
        for container in containers(template):
            resources = container.get("resources") or {}
            if set(resources.get("requests") or ()) != {"cpu", "memory", "ephemeral-storage"}:
                yield f"{name_of(workload)}, {container['name']} lacks requests"
            if set(resources.get("limits") or ()) != {"memory", "ephemeral-storage"}:
                yield f"{name_of(workload)}, {container['name']} has the wrong limits"


def spreads_count(manifests: Sequence[Manifest]) -> Iterator[str]:
    """One soft spread at most: on nodes without the label of one, such as a zone, the scheduler ignores all of them."""
    for workload, template in pod_templates(manifests):
        soft = [
            one["topologyKey"]
            for one in template["spec"].get("topologySpreadConstraints") or ()
            if one.get("whenUnsatisfiable") == "ScheduleAnyway"
        ]
        if len(set(soft)) > 1:
            yield f"{name_of(workload)}: without the labels {', '.join(soft)} on its nodes it is not spread at all"


def selectors_find_pods(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Each Service, budget and policy of ours selects pods of ours."""
    labels = [template["metadata"].get("labels", {}) for _, template in pod_templates(manifests)]
    for one in manifests:
        spec = one.get("spec") or {}
        selector = {
            "Service": lambda spec=spec: spec.get("selector"),
            "PodDisruptionBudget": lambda spec=spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec=spec: spec["podSelector"].get("matchLabels"),
        }.get(one["kind"], lambda: None)()
        if selector and not any(selector.items() <= of_pod.items() for of_pod in labels):
            yield f"{name_of(one)} selects no pod"


def settings_outlast_the_api_server(manifests: Sequence[Manifest]) -> Iterator[str]:
    """What is in the path of names and connections restarts without the API server, so its settings are mounted too.

    A kubelet forgets a ConfigMap that was used for variables alone: pkg/kubelet/util/manager/watch_based_manager.go
    """
    for workload, template in pod_templates(manifests):
        mapped = {
            one["name"]: one["configMap"]["name"] for one in template["spec"].get("volumes", ()) if "configMap" in one
        }
        for container in containers(template):
            if (*container.get("command", ()), *container.get("args", ()))[:2] not in IN_THE_PATH:
                continue
            mounted = {mapped.get(one["name"]) for one in container.get("volumeMounts", ())}
            for source in container.get("envFrom", ()):
                if source["configMapRef"]["name"] not in mounted:
                    yield f"{name_of(workload)} could not restart without the API server: its settings are not mounted"


def _is_account(manifest: Manifest) -> bool:
    return bool(manifest["kind"] == "ServiceAccount")


LAWS: Final[tuple[Law, ...]] = (
    pods_are_restricted,
    pods_stay_outside_of_a_mesh,
    images_are_one,
    nothing_is_a_hook,
    names_fit,
    tokens_match_rights,
    rights_are_narrow,
    probes_have_time,
    resources_are_set,
    spreads_count,
    selectors_find_pods,
    settings_outlast_the_api_server,
)
