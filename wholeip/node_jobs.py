"""The Jobs that remove the rules, one on each node: their manifests, and what their states mean.

The law: pure. A node without a Job that is complete counts as a node with rules.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from sidecar.kubernetes.objects import ObjectMeta

NAME: Final = "wholeip-uninstall"
"""The CronJob that holds the Job, and the label app.kubernetes.io/name of all Jobs."""


class Condition(msgspec.Struct, frozen=True):
    """Of a Job."""

    type: str = ""
    status: str = ""


class JobStatus(msgspec.Struct, frozen=True):
    """Of a Job; null before the controller has seen it."""

    conditions: list[Condition] | None = None


class NodeJob(msgspec.Struct, frozen=True):
    """A Job, as far as its end goes."""

    metadata: ObjectMeta
    status: JobStatus | None = None

    @property
    def outcome(self) -> str:
        """`Complete`, `Failed`, or nothing yet."""
        conditions = (self.status and self.status.conditions) or []
        met = {one.type for one in conditions if one.status == "True"}
        return next((one for one in ("Complete", "Failed") if one in met), "")


def make_jobs(cron_job: Mapping[str, Any], nodes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A Job for each node, by the node's name. Raises KeyError or TypeError for an object that is no CronJob."""
    template = cron_job["spec"]["jobTemplate"]
    return {node: _make_job(template, node, number) for number, node in enumerate(sorted(nodes), 1)}


def _make_job(template: Mapping[str, Any], node: str, number: int) -> dict[str, Any]:
    spec = copy.deepcopy(template["spec"])
    spec["template"]["spec"]["nodeName"] = node
    # A number, because the name of a node may be too long for that of a Job.
    metadata = {"name": f"{NAME}-{number}", "labels": template["metadata"]["labels"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def unfinished(made: Mapping[str, str], seen: Iterable[NodeJob]) -> dict[str, str]:
    """The nodes whose Job is not complete, with `Failed` or nothing. `made`: the names of the Jobs by node."""
    outcomes = {one.metadata.name: one.outcome for one in seen}
    states = {node: outcomes.get(job, "") for node, job in made.items()}
    return {node: state for node, state in states.items() if state != "Complete"}
