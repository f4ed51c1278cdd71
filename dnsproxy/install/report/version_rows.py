"""The versions in the status: those of the running programs, beside that of this command, as rows and as JSON.

The law: both show the same. A version that was not read is `?`, and never taken for the same or another one. A
difference is no fault: programs and command of two versions work together, so the verdict does not depend on it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dnsproxy.cluster_dns.requests import Fault
from dnsproxy.install.report.comparison import Row
from sidecar.values.build import UNKNOWN, Build

_DIFFERS = "not that of this command"


@dataclass(frozen=True, slots=True)
class ProgramBuilds:
    """The builds that the pods of one program run."""

    program: str
    """The command: `dnsproxy serve`, `dnsproxy operate` or `proxy`."""
    pods: int
    """How many are ready; not all are asked."""
    builds: Mapping[str, Build] = field(default_factory=dict)
    """By pod."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Why a pod that was asked states no build."""


@dataclass(frozen=True, slots=True)
class Versions:
    """What runs in the cluster, and what asks."""

    command: Build
    programs: Sequence[ProgramBuilds] = ()
    unknown: str = ""
    """Why the pods are not known; empty if they are."""
    faults: Sequence[Fault] = ()
    """What was not read because a right is missing."""


def rows_of_versions(versions: Versions | None) -> Iterator[Row]:
    """No row if the pods were not asked."""
    if versions is None:
        return
    yield Row("version", "", f"this command: {versions.command}")
    if versions.unknown:
        yield Row("version", "?", f"of the running programs: {versions.unknown}")
    for one in versions.programs:
        for build, pods in _by_build(one.builds).items():
            differs = _differs(build, versions.command)
            text = f"{one.program}: {build}, {pods} of {one.pods} pods{f'; {_DIFFERS}' if differs else ''}"
            yield Row("version", {True: "part", False: "ok", None: "?"}[differs], text)
        for pod, reason in one.unread.items():
            yield Row("version", "?", f"{one.program}: pod {pod}: {reason}")


def format_versions(versions: Versions | None) -> dict[str, Any] | None:
    """The versions as JSON values; `differs` is null for a pod whose version is not known."""
    if versions is None:
        return None
    return {
        "command": versions.command.labels(),
        "programs": [
            {"program": one.program, "ready": one.pods, "pods": list(_format_pods(one, versions.command))}
            for one in versions.programs
        ],
        "unknown": versions.unknown,
    }


def _format_pods(one: ProgramBuilds, command: Build) -> Iterator[dict[str, Any]]:
    for pod, build in one.builds.items():
        yield {"pod": pod, **build.labels(), "differs": _differs(build, command), "unknown": ""}
    for pod, reason in one.unread.items():
        nothing = dict.fromkeys((*command.labels(), "differs"))
        yield {"pod": pod, **nothing, "unknown": reason}


def _differs(build: Build, command: Build) -> bool | None:
    """None if the build, or that of the command, states no version."""
    return None if UNKNOWN in (build.version, command.version) else build.differs(command)


def _by_build(builds: Mapping[str, Build]) -> Mapping[Build, int]:
    """How many pods run each; another Python alone makes no row."""
    counts: dict[Build, int] = {}
    for build in builds.values():
        same = next((one for one in counts if str(one) == str(build)), build)
        counts[same] = counts.get(same, 0) + 1
    return counts
