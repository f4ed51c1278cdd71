"""Steps from the version before this one to this one and back, by kubectl and by Helm, under load.

The law: as in steps.py. During each change pods look up 100,000 names and fetch pages without a pause or a retry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.cluster.acting import forget_release, labelled, under_loads
from tests.cluster.plan import BRIDGE
from tests.cluster.previous import FIRST, IMAGE, copy_previous, previous_version
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.life import IN_FLIGHT, KEPT_FLOWS, LOOKUPS, ready_pods
from tests.cluster.steps.whole_ip import SPACE, has_rules, rules
from tests.deploy.helm import CHART, run_helm
from tests.deploy.kubectl import LABEL
from tests.deploy.manifests import compose, render

PREVIOUS: Final = f"""
images:
  - name: localhost/switchback
    newTag: {IMAGE.rpartition(":")[2]}
"""
OLD_IMAGE: Final = {"image": {"tag": IMAGE.rpartition(":")[2]}}
WORKLOADS: Final = ("deployment/dnsproxy", "deployment/relay", "deployment/operate")
KINDS: Final = (
    "deployments,daemonsets,services,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,"
    "networkpolicies,resourcequotas,poddisruptionbudgets,cronjobs,jobs"
)


def previous_version_is_there(stage: Stage) -> None:
    """The version before this one, by `kubectl apply -k` of its own manifests: the pod reaches the host."""
    stage.before["previous"] = copy_previous(stage.folder / "of-previous")
    stage.ingress("apps", "*.apps.example.org")
    stage.kubectl("apply", "-k", str(kustomization(stage, "old")))
    stage.rolled_out("deployment/dnsproxy", "deployment/relay")
    stage.eventually("an operate that is ready", lambda: ready_pods(stage, "operate"), seconds=420)
    stage.before["installed"] = stage.corefile()
    stage.everywhere("app.example.org", stage.relay_address())
    page(stage)


def upgrade_by_kubectl_costs_nothing(stage: Stage) -> None:
    """The new version is applied over it, and the old one again: no lookup and no request is lost, the stanza stays."""
    for name in ("new", "old"):
        act = partial(stage.kubectl, "apply", "-k", str(kustomization(stage, name)))
        changed(stage, f"to {name}", act, leaving=name == "new")
        left = {one for one in objects(stage) if not one.startswith("configmap/")} - rendered_names(stage, name)
        routes = {one for one in left if one.startswith("service/relay-")}
        stage.expect("objects that neither the manifests have nor operate makes", saw=left - routes, wanted=set())


def chart_takes_over(stage: Stage) -> None:
    """Helm takes over what kubectl applied of the old version: the same, and no ConfigMap of kubectl's stays."""
    changed(stage, "to the chart", lambda: helm(stage, "upgrade", *TAKING_OVER, values={}), leaving=True)
    selector = f"{LABEL},app.kubernetes.io/managed-by!=Helm"
    stage.kubectl("delete", "configmap", "-n", "switchback", "--selector", selector)
    maps = {one for one in objects(stage) if one.startswith("configmap/")}
    wanted = {f"configmap/{one}-settings" for one in ("dnsproxy", "relay", "operate")}
    stage.expect("the ConfigMaps", saw=maps, wanted=wanted)
    page(stage)


def chart_goes_back_and_forth(stage: Stage) -> None:
    """`helm upgrade` to the old version's chart and image, and `helm rollback`: the same."""
    before = objects(stage)
    old = stage.before["previous"] / "deploy" / "chart"
    changed(stage, "to the old chart", lambda: helm(stage, "upgrade", values=OLD_IMAGE, chart=old))
    changed(stage, "back by a rollback", lambda: helm(stage, "rollback", "1"), leaving=True)
    stage.expect("the objects", saw=objects(stage), wanted=before)


def kustomization_takes_over(stage: Stage) -> None:
    """From the chart to `kubectl apply -k`, as the guide says: the same, and Helm forgets the release."""
    changed(stage, "to the kustomization", partial(stage.kubectl, "apply", "-k", str(kustomization(stage, "new"))))
    forget_release(stage)
    stage.expect("the releases", saw=helm(stage, "list", release="").strip().splitlines()[1:], wanted=[])
    page(stage)


def chart_is_tested_and_removed(stage: Stage) -> None:
    """`helm test` finds pods that reach their host; `helm uninstall` leaves the DNS as it was, and nothing else."""
    changed(stage, "to the chart again", lambda: helm(stage, "upgrade", *TAKING_OVER, values=TEST))
    stage.eventually("an operate that is ready", lambda: ready_pods(stage, "operate"), seconds=60)
    stage.rolled_out("daemonset/wholeip", namespace=SPACE)
    tables = [node.name for node in stage.nodes if has_rules(node)]
    stage.expect("the nodes with a table of wholeip", saw=tables, wanted=[node.name for node in stage.nodes])
    said = helm(stage, "test", "--timeout=5m")
    stage.say(said)
    stage.expect("the diagnosis of the host", saw="app.example.org" in said, wanted=True)
    begun = time.monotonic()
    stage.say(helm(stage, "uninstall", "--timeout=15m"))
    stage.say(f"uninstalled after {time.monotonic() - begun:.0f} s")
    stage.expect("the Corefile", saw=stage.corefile(), wanted=stage.before["corefile"])
    stage.expect("the rules of wholeip", saw=rules(stage), wanted="")
    stage.eventually("the end of every object", lambda: not labelled(stage), seconds=120)
    stage.eventually("the public address", lambda: stage.dig("late.example.org") == [stage.at.public])


TAKING_OVER: Final = ("--install", "--take-ownership", "--force-conflicts")
TEST: Final = {
    "test": {"hosts": ["app.example.org"]},
    "components": {"wholeip": True},
}


def changed(stage: Stage, what: str, act: Callable[[], object], *, leaving: bool = False) -> None:
    """A change under load: no lookup of 100,000 and no request is lost, and the Corefile is written by nobody.

    `leaving`: the pods that end are of the version before. Those of the first one end after ten seconds, before a busy
    node has led every socket of CoreDNS away from them; each socket then asks the stanza's next upstream once.
    """
    leaving_first = leaving and previous_version() == FIRST
    version = corefile_version(stage)

    def until_all_run() -> None:
        begun = time.monotonic()
        act()
        stage.rolled_out(*WORKLOADS)
        stage.say(f"{what}: every pod is replaced after {time.monotonic() - begun:.0f} s")

    loads = [
        ("dns", stage.at.dns, "apps.example.org", stage.relay_address(), str(LOOKUPS)),
        ("http", "http://app.example.org/"),
    ]
    lookups, requests = under_loads(stage, loads, act=until_all_run)
    by_next_upstream = lookups.pop("another address", 0)
    stage.expect("results of lookups", saw=set(lookups), wanted={"ok"})
    most = IN_FLIGHT if stage.plan.cni == BRIDGE and not leaving_first else KEPT_FLOWS
    if by_next_upstream > most:
        raise StepFailed(f"{by_next_upstream} lookups were answered by the stanza's next upstream")
    stage.expect("results of requests", saw=set(requests), wanted={"ok"})
    stage.expect("the Corefile", saw=stage.corefile(), wanted=stage.before["installed"])
    stage.expect("the version of the Corefile's ConfigMap", saw=corefile_version(stage), wanted=version)


def corefile_version(stage: Stage) -> str:
    return str(stage.get("configmap", "coredns", "-n", "kube-system")["metadata"]["resourceVersion"])


def page(stage: Stage) -> None:
    status, said = stage.curl("https://app.example.org/")
    stage.expect("the page", saw=(status, said), wanted=(0, "hello from app.example.org"))


def kustomization(stage: Stage, name: str) -> Path:
    """An owner's folder: `new` is this version, `old` the one before it with its own image."""
    folder: Path = stage.folder / f"upgrade-{name}"
    folder.mkdir(exist_ok=True)
    if name == "new":
        return compose(folder, with_components=[])
    return compose(folder, with_components=[], base=stage.before["previous"] / "deploy", more=PREVIOUS)


def objects(stage: Stage) -> set[str]:
    """What is ours, in any namespace, by kind and name."""
    listed = stage.kubectl("get", KINDS, "-A", "-l", LABEL, "-o", "name").split()
    return {f"{kind.partition('.')[0]}/{name}" for kind, _, name in (one.partition("/") for one in listed)}


def rendered_names(stage: Stage, name: str) -> set[str]:
    """The same of a kustomization."""
    return {f"{one['kind'].lower()}/{one['metadata']['name']}" for one in render(kustomization(stage, name))}


def helm(
    stage: Stage,
    verb: str,
    *arguments: str,
    values: Mapping[str, Any] | None = None,
    chart: Path = CHART,
    release: str = "switchback",
) -> str:
    """Run Helm for the release; its output. Raises StepFailed."""
    words = [verb, *([release] if release else []), *arguments, f"--kubeconfig={stage.node.folder}/kubeconfig"]
    words += ["--namespace=default", *([str(chart)] if values is not None else [])]
    done = run_helm(*words, values=values, inside=stage.node.inside())
    if done.returncode:
        raise StepFailed(f"helm {verb}: {done.stdout}{done.stderr}")
    # Helm prints the logs of a hook to stderr.
    return done.stdout + done.stderr
