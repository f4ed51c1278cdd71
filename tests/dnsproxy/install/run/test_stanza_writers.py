"""The programs that would restore a stanza: which pods, Deployments and Leases are such, and how they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from dnsproxy.cluster_dns.operate_objects import LEASE
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.install.run.stanza_writers import (
    Writer,
    check_none,
    check_scalable,
    find_writers,
    stop_writers,
)
from sidecar.values.errors import StartError
from tests.dnsproxy.install.run.test_applying import Meddling, client_of
from tests.kit.manifest_api import FakeApi
from tests.kit.manifest_cluster import Manifest, pick

OPERATE = ("dnsproxy", "operate", "--admin", "[::]:8085")
WATCH = ("dnsproxy", "install", "--watch")


def deployment(
    *words: str, name: str = "operate", replicas: int | None = 1, kind: str = "Deployment", **container: Any
) -> Manifest:
    spec = {"containers": [{"name": "main", "command": list(words[:1]), "args": list(words[1:]), **container}]}
    metadata = {"name": name, "namespace": "switchback"}
    scale = {} if replicas is None else {"replicas": replicas}
    return {"kind": kind, "metadata": metadata, "spec": {**scale, "template": {"spec": spec}}}


def cron_job(*words: str, suspend: bool = False) -> Manifest:
    spec = {"template": {"spec": {"containers": [{"name": "main", "command": list(words)}]}}}
    metadata = {"name": "again", "namespace": "switchback"}
    return {"kind": "CronJob", "metadata": metadata, "spec": {"suspend": suspend, "jobTemplate": {"spec": spec}}}


def settings(**data: str) -> Manifest:
    return {"kind": "ConfigMap", "metadata": {"name": "operate-settings", "namespace": "switchback"}, "data": data}


SETTINGS = [{"configMapRef": {"name": "operate-settings", "optional": True}}]


def pod(*words: str, name: str = "operate-5f6c-x", owner: tuple[str, str] | None = None, **more: Any) -> Manifest:
    owners = [{"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1]}] if owner else []
    labels = {"pod-template-hash": "5f6c"} if owner and owner[0] == "ReplicaSet" else {}
    metadata = {"name": name, "namespace": "switchback", "labels": labels, "ownerReferences": owners}
    spec = {"containers": [{"name": "main", "command": list(words)}]}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}, **more}


def lease(holder: str, version: str = "1") -> Manifest:
    metadata = {"name": LEASE, "namespace": "switchback", "resourceVersion": version}
    return {"kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": holder}}


async def writers(*objects: Manifest, forbidden: Sequence[str] = ()) -> list[str]:
    async with client_of(Meddling(FakeApi(objects, forbidden=forbidden))) as client:
        return list(map(str, await find_writers(client, "switchback")))


DEPLOYED = "dnsproxy operate in Deployment switchback/operate"
WRITERS = [
    pytest.param(deployment(*OPERATE), DEPLOYED, id="Deployment"),
    pytest.param(deployment(*OPERATE, replicas=None), DEPLOYED, id="Deployment of one by default"),
    pytest.param(pod(*OPERATE, owner=("ReplicaSet", "operate-5f6c")), DEPLOYED, id="pod of a Deployment"),
    pytest.param(
        pod(*OPERATE, owner=("ReplicaSet", "mine")), "dnsproxy operate in ReplicaSet switchback/mine", id="ReplicaSet"
    ),
    pytest.param(pod(*WATCH, name="by-hand"), "dnsproxy install in Pod switchback/by-hand", id="pod alone"),
    pytest.param(pod(*WATCH, owner=("Job", "w")), "dnsproxy install in Job switchback/w", id="Job"),
    pytest.param(
        deployment("/bin/sh", "-c", "exec /usr/bin/dnsproxy install --watch", name="w"),
        "dnsproxy install in Deployment switchback/w",
        id="shell",
    ),
    pytest.param(pod("python", "-m", *WATCH, name="p"), "dnsproxy install in Pod switchback/p", id="python -m"),
    pytest.param(pod("kubectl-switchback", "operate", name="p"), "dnsproxy operate in Pod switchback/p", id="plugin"),
    pytest.param(
        deployment(*WATCH, name="w", kind="StatefulSet", replicas=None),
        "dnsproxy install in StatefulSet switchback/w",
        id="StatefulSet without a pod",
    ),
    pytest.param(
        deployment(*WATCH, name="w", kind="DaemonSet", replicas=None),
        "dnsproxy install in DaemonSet switchback/w",
        id="DaemonSet without a pod",
    ),
    pytest.param(
        cron_job("dnsproxy", "install"), "dnsproxy install in CronJob switchback/again", id="CronJob between two runs"
    ),
    pytest.param(
        pod(
            "serve",
            name="p",
            spec={"initContainers": [{"name": "w", "command": list(WATCH), "restartPolicy": "Always"}]},
        ),
        "dnsproxy install in Pod switchback/p",
        id="sidecar",
    ),
    pytest.param(
        deployment(*OPERATE, envFrom=SETTINGS),
        "dnsproxy operate in Deployment switchback/operate",
        id="settings that are not there",
    ),
    pytest.param(
        pod(*WATCH, name="p", metadata={"name": "p", "namespace": "switchback", "deletionTimestamp": "now"}),
        "dnsproxy install in Pod switchback/p",
        id="pod that is ending",
    ),
]


@pytest.mark.parametrize(("found", "name"), WRITERS)
async def test_a_program_that_restores_the_stanza_is_found_by_its_command_line(found: Manifest, name: str) -> None:
    assert await writers(found) == [name]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(deployment(*OPERATE, replicas=0), id="scaled to 0"),
        pytest.param(deployment(*OPERATE, "--method", "print"), id="operate that prints"),
        pytest.param(deployment(*OPERATE, "--method=print"), id="in one word"),
        pytest.param(deployment(*OPERATE, env=[{"name": "DNSPROXY_METHOD", "value": "print"}]), id="by a variable"),
        pytest.param(pod("dnsproxy", "install", "--dry-run"), id="dry run"),
        pytest.param(pod("dnsproxy", "install", "--file=Corefile"), id="file"),
        pytest.param(pod("dnsproxy", "uninstall"), id="uninstall"),
        pytest.param(cron_job("dnsproxy", "install", suspend=True), id="suspended CronJob"),
        pytest.param(cron_job("dnsproxy", "uninstall"), id="CronJob of another command"),
        pytest.param(cron_job("dnsproxy", "install") | {"spec": {"jobTemplate": None}}, id="CronJob without a Job"),
        pytest.param(
            pod("serve", spec={"initContainers": [{"name": "w", "command": list(WATCH)}]}),
            id="container that has ended",
        ),
        pytest.param(deployment("dnsproxy", "serve", name="operate"), id="serve under its name"),
        pytest.param(deployment("other", "operate"), id="another program"),
        pytest.param(pod("dnsproxy"), id="no command"),
        pytest.param(pod(*OPERATE, status={"phase": "Succeeded"}), id="ended"),
        pytest.param(pod(*OPERATE, spec=None), id="no spec"),
        pytest.param(deployment(*OPERATE) | {"spec": None}, id="Deployment without spec"),
        pytest.param(pod(*OPERATE) | {"metadata": {"name": "x", "namespace": "other"}}, id="another namespace"),
        pytest.param(lease(""), id="Lease that was given back"),
        pytest.param(lease("laptop_1"), id="Lease of a holder that died"),
    ],
)
async def test_any_other_program_is_none(
    other: Manifest,
    autojump_clock: object,  # noqa: ARG001
) -> None:
    assert await writers(other) == []


async def test_a_method_that_a_config_map_says_counts_unless_the_program_says_another() -> None:
    prints = settings(DNSPROXY_METHOD="print")
    assert await writers(prints, deployment(*OPERATE, envFrom=SETTINGS)) == []
    assert await writers(prints, deployment(*OPERATE, "--method=corefile", envFrom=SETTINGS)) == [DEPLOYED]
    assert await writers(settings(DNSPROXY_METHOD="corefile"), deployment(*OPERATE, envFrom=SETTINGS)) == [DEPLOYED]
    # What may not be read says nothing.
    objects = (prints, deployment(*OPERATE, envFrom=SETTINGS))
    assert await writers(*objects, forbidden=["/configmaps/operate-settings"]) == [DEPLOYED]


async def test_a_job_of_a_cron_job_is_that_cron_job() -> None:
    job = pod(*WATCH, owner=("Job", "again-29012345"))
    assert await writers(cron_job("dnsproxy", "install"), job) == ["dnsproxy install in CronJob switchback/again"]
    assert await writers(job) == ["dnsproxy install in Job switchback/again-29012345"]


@pytest.mark.parametrize("path", ["/pods", "/deployments", "/statefulsets", "/daemonsets", "/cronjobs"])
async def test_a_list_that_is_not_served_is_unknown_and_never_empty(path: str) -> None:
    class Without(FakeApi):
        def decide(self, path_asked: str, selector: str = "") -> tuple[int, Any]:
            return (404, {}) if path_asked.endswith(path) else super().decide(path_asked, selector)

    async with client_of(Meddling(Without([]))) as client:
        with pytest.raises(StartError, match=r"nothing was removed: .* is not served") as caught:
            await find_writers(client, "switchback")
    assert caught.value.status == 3


async def test_a_deployment_and_its_pods_are_one_writer() -> None:
    replica = ("ReplicaSet", "operate-5f6c")
    pods = [pod(*OPERATE, name=f"operate-5f6c-{one}", owner=replica) for one in "ab"]
    assert await writers(deployment(*OPERATE), *pods, lease("operate-5f6c-a_1")) == [DEPLOYED]


async def test_the_holder_of_a_lease_that_it_renews_is_one_unless_a_pod_explains_it(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    def renew(api: FakeApi, request: httpx2.Request) -> None:
        if request.url.path.endswith(LEASE):
            one = pick(api.objects, "Lease", LEASE)["metadata"]
            one["resourceVersion"] = str(int(one["resourceVersion"]) + 1)

    async def found(*objects: Manifest) -> list[str]:
        async with client_of(Meddling(FakeApi(objects), after=renew)) as client:
            return list(map(str, await find_writers(client, "switchback")))

    name = f"dnsproxy operate on laptop, which holds the Lease switchback/{LEASE}"
    assert await found(lease("laptop_1")) == [name]
    (long,) = await found(lease("a" * 200_000 + "_1"))
    assert len(long) < 400
    # Started in a way that cannot be read.
    unread = pod("start", owner=("ReplicaSet", "operate-5f6c"))
    assert await found(lease("operate-5f6c-x_1"), unread) == [DEPLOYED]
    assert await found(lease("operate-0_1"), deployment(*OPERATE, "--method=print")) == []


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/deployments", "list deployments.apps in namespace switchback"),
        ("/pods", "list pods in namespace switchback"),
        (f"/leases/{LEASE}", f"get leases.coordination.k8s.io {LEASE} in namespace switchback"),
    ],
)
async def test_what_must_not_be_read_is_unknown_and_never_nothing(path: str, right: str) -> None:
    text = f"in switchback would restore the stanza is unknown, and nothing was removed: not allowed to {right}"
    with pytest.raises(StartError, match=text) as caught:
        await writers(forbidden=[path])
    assert caught.value.status == 3


def test_a_refusal_names_the_writers_and_the_command_that_ends_them() -> None:
    check_none([])
    check_scalable([Writer("Deployment", "switchback", "operate", "dnsproxy operate")])
    with pytest.raises(ChangeRefused, match=r"operate in Deployment switchback/operate restores.*--stop-writers`"):
        check_none([Writer("Deployment", "switchback", "operate", "dnsproxy operate")])
    for check in (check_none, check_scalable):
        with pytest.raises(ChangeRefused, match="`kubectl -n switchback delete job w`; then run this again"):
            check([Writer("Job", "switchback", "w", "dnsproxy install")])
        with pytest.raises(ChangeRefused, match="end it on laptop"):
            check([Writer("Lease", "switchback", "laptop", "dnsproxy operate")])
        with pytest.raises(ChangeRefused, match=r"suspend it with `kubectl -n switchback patch cronjob again -p '\{"):
            check([Writer("CronJob", "switchback", "again", "dnsproxy install")])
    several = [Writer("Deployment", "switchback", name, "dnsproxy operate") for name in ("a", "b")]
    with pytest.raises(ChangeRefused, match="scales them to 0, waits until their pods have ended"):
        check_none(several)
    with pytest.raises(ChangeRefused, match="then run this again with --stop-writers"):
        check_none([*several, Writer("Job", "switchback", "w", "dnsproxy install")])


async def test_deployments_are_scaled_to_0_and_their_last_pods_awaited(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = FakeApi([deployment(*OPERATE), pod(*OPERATE, name="late", owner=("ReplicaSet", "operate-5f6c"))])
    waits: list[float] = []

    def end(passed: float) -> None:
        waits.append(passed)
        if len(waits) == 3:
            api.objects = [one for one in api.objects if one["kind"] != "Pod"]

    async with client_of(Meddling(api)) as client:
        found = await find_writers(client, "switchback")
        await stop_writers(client, "switchback", found, on_wait=end)
        assert await find_writers(client, "switchback") == ()
    assert (pick(api.objects, "Deployment", "operate")["spec"]["replicas"], len(waits)) == (0, 3)


async def test_pods_that_do_not_end_are_an_error_that_says_what_to_do(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = FakeApi([deployment(*OPERATE), pod(*OPERATE, name="stuck", owner=("ReplicaSet", "operate-5f6c"))])
    async with client_of(Meddling(api)) as client:
        with pytest.raises(StartError, match=r"did not end within 20 s.*kubectl delete node.*not removed") as caught:
            await stop_writers(client, "switchback", await find_writers(client, "switchback"), seconds=20)
    assert caught.value.status == 1


async def test_without_the_right_to_scale_the_right_is_named() -> None:
    api = FakeApi([deployment(*OPERATE)], forbidden_writes=["/scale"])
    right = "not allowed to patch deployments/scale.apps operate in namespace switchback"
    async with client_of(Meddling(api)) as client:
        with pytest.raises(StartError, match=right) as caught:
            await stop_writers(client, "switchback", await find_writers(client, "switchback"))
    assert caught.value.status == 3
    assert pick(api.objects, "Deployment", "operate")["spec"]["replicas"] == 1
