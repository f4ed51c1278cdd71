"""`wholeip uninstall --every-node`: the agents end, then each node has a Job; node_jobs.py is tested here too."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.kubernetes.objects import ObjectMeta
from sidecar.values.errors import StartError
from tests.kit.object_api import ObjectApi, client_of
from wholeip.every_node_command import remove_from_nodes
from wholeip.node_jobs import JobStatus, NodeJob, make_jobs, unfinished

NAMESPACE = "switchback-wholeip"
AGENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/wholeip"
CRON_JOB = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/wholeip-uninstall"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
LABELS = {"app.kubernetes.io/name": "wholeip-uninstall"}
POD = {"nodeName": "each.node", "hostNetwork": True, "containers": [{"name": "uninstall", "args": ["uninstall"]}]}
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": LABELS},
    "spec": {"backoffLimit": 2, "template": {"metadata": {"labels": LABELS}, "spec": POD}},
}


class Nodes(ObjectApi):
    """Nodes whose Jobs end as `ends` says by node: Complete by default, never with None."""

    def __init__(self, *names: str, ends: dict[str, str | None] | None = None) -> None:
        super().__init__()
        for name in names:
            self.put(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
        self.put("/api/v1/nodes/windows", {"metadata": {"labels": {"kubernetes.io/os": "windows"}}})
        self.put(AGENTS, {"metadata": {"uid": "agents"}})
        self.put(CRON_JOB, {"spec": {"jobTemplate": TEMPLATE}})
        self.ends = ends or {}
        self.ran: list[str] = []
        self.before = self._run_jobs

    def _run_jobs(self, method: str, path: str) -> None:
        if (method, path) != ("GET", JOBS):
            return
        assert AGENTS not in self.objects, "an agent would put the rules back"
        for key, job in self.objects.items():
            node = job["spec"]["template"]["spec"]["nodeName"] if key.startswith(JOBS) else None
            outcome = self.ends.get(node, "Complete") if node else None
            if node and outcome and "status" not in job:
                self.ran.append(node)
                job["status"] = {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}
                job["status"]["conditions"] += [{"type": outcome, "status": "True"}]


async def remove(api: ObjectApi, **options: Any) -> int:
    async with client_of(api) as client:
        return await remove_from_nodes(
            client, NAMESPACE, **{"dry_run": False, "jobs_seconds": 20, "end_seconds": 20, **options}
        )


async def test_the_rules_of_every_linux_node_go_and_no_job_is_left(
    capsys: pytest.CaptureFixture[str],
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = Nodes("b", "a", "c")
    api.outlives[AGENTS] = 3
    assert await remove(api) == 0
    assert sorted(api.ran) == ["a", "b", "c"]
    assert [key for key in api.objects if key.startswith(JOBS)] == []
    assert capsys.readouterr().out == "Removed the rules of 3 nodes.\n"
    assert await remove(api) == 0


async def test_a_dry_run_names_the_nodes_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    api = Nodes("b", "a")
    assert await remove(api, dry_run=True) == 0
    assert api.writes() == []
    assert capsys.readouterr().out.endswith("remove the rules on: a b\n")


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"b": "Failed"}, "b: Failed\n"),
        ({"b": None}, "b: its Job has not ended\n"),
        ({"a": "Failed", "b": None}, "a: "),
    ],
    ids=["failed", "a lost node", "both"],
)
async def test_a_node_that_keeps_its_rules_is_named(
    ends: dict[str, str | None],
    said: str,
    capsys: pytest.CaptureFixture[str],
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = Nodes("a", "b", ends=ends)
    with pytest.raises(StartError, match=rf"^{len(ends)} of 2 nodes still have rules.*kubectl delete node") as caught:
        await remove(api)
    assert caught.value.status == 1
    assert said in capsys.readouterr().err


async def test_jobs_of_an_earlier_removal_go_first(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = Nodes("a", ends={"a": "Failed"})
    with pytest.raises(StartError):
        await remove(api)
    api.ends = {}
    api.outlives[f"{JOBS}/wholeip-uninstall-1"] = 2
    assert await remove(api) == 0
    assert api.ran == ["a", "a"]


async def test_agents_that_come_back_while_the_jobs_run_are_a_no(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = Nodes("a", "b")

    def restore(method: str, path: str) -> None:
        api._run_jobs(method, path)
        if len(api.ran) == 2:
            api.put(AGENTS, {"metadata": {"uid": "again"}})

    api.before = restore
    with pytest.raises(StartError, match=r"has created switchback-wholeip/wholeip again: suspend it") as caught:
        await remove(api)
    assert caught.value.status == 1


async def test_agents_that_do_not_end_keep_every_rule(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = Nodes("a")
    api.outlives[AGENTS] = 10_000
    with pytest.raises(StartError, match="does not end, and would keep the rules"):
        await remove(api)
    assert api.ran == []


async def test_agents_that_are_created_again_keep_every_rule() -> None:
    api = Nodes("a")

    api.recreate(AGENTS)
    with pytest.raises(StartError, match="Argo CD"):
        await remove(api)
    assert api.ran == []


async def test_without_the_cron_job_nothing_is_ended() -> None:
    api = Nodes("a")
    del api.objects[CRON_JOB]
    with pytest.raises(StartError, match=r"no CronJob switchback-wholeip/wholeip-uninstall.*on each node"):
        await remove(api)
    assert AGENTS in api.objects


def test_a_job_is_the_cron_jobs_on_its_node() -> None:
    jobs = make_jobs({"spec": {"jobTemplate": TEMPLATE}}, ["b", "a"])
    assert [(node, job["metadata"]["name"]) for node, job in jobs.items()] == [
        ("a", "wholeip-uninstall-1"),
        ("b", "wholeip-uninstall-2"),
    ]
    assert [job["spec"]["template"]["spec"]["nodeName"] for job in jobs.values()] == ["a", "b"]
    assert jobs["a"]["metadata"]["labels"] == LABELS
    assert POD["nodeName"] == "each.node"


@pytest.mark.parametrize("status", [None, JobStatus(), JobStatus(conditions=[])])
def test_a_job_without_a_condition_has_not_ended(status: JobStatus | None) -> None:
    seen = [NodeJob(ObjectMeta(name="wholeip-uninstall-1"), status)]
    assert unfinished({"a": "wholeip-uninstall-1", "b": "wholeip-uninstall-2"}, seen) == {"a": "", "b": ""}
