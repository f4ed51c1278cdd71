"""The files that a run builds, and the commands that push them afterwards; as text and as JSON.

The law: a plan is complete before anything is built, so `--dry-run` prints the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from release.artefacts import CHECKSUMS, Artefact, Kind, artefacts
from release.image_name import ImageName
from release.judge import Repository
from release.pushes import Push, pushes


@dataclass(frozen=True)
class Plan:
    """One run."""

    version: str
    commit: str
    time: int
    snapshot: bool
    image: ImageName
    downloads: str
    """Where the forge has the files of all releases, without a final slash."""
    dist: str
    kinds: frozenset[Kind]
    files: Sequence[Artefact]
    push: Sequence[Push]

    @property
    def homepage(self) -> str:
        """The forge's page of the project."""
        return self.downloads.partition("/releases/")[0]


def make_plan(
    repository: Repository, *, snapshot: bool, image: ImageName, downloads: str, dist: str, kinds: Iterable[Kind]
) -> Plan:
    """The plan for these kinds."""
    wanted = frozenset(kinds)
    return Plan(
        version=repository.version,
        commit=repository.commit,
        time=repository.time,
        snapshot=snapshot,
        image=image,
        downloads=downloads,
        dist=dist,
        kinds=wanted,
        files=artefacts(repository.version, wanted),
        push=pushes(repository.version, dist=dist, image=image, kinds=wanted),
    )


def plan_document(plan: Plan, checksums: Mapping[str, str]) -> dict[str, Any]:
    """The plan for `--output json`; `checksums` by file name are those of a run, and empty before it."""
    files = [
        {"name": one.name, "kind": str(one.kind), "about": one.about, "sha256": checksums.get(one.name)}
        for one in plan.files
    ]
    return {
        "version": plan.version,
        "commit": plan.commit,
        "snapshot": plan.snapshot,
        "image": str(plan.image),
        "dist": plan.dist,
        "built": bool(checksums),
        "files": files,
        "push": [{"what": one.what, "where": one.where, "command": list(one.command)} for one in plan.push],
    }


def format_plan(plan: Plan, *, built: bool) -> str:
    """The plan for a reader."""
    lines = [f"switchback {plan.version} of commit {plan.commit}, image {plan.image}"]
    if plan.snapshot:
        lines.append("SNAPSHOT: not a release. Push it to a registry for tests alone.")
    width = max(len(name) for name in (CHECKSUMS, *(one.name for one in plan.files)))
    lines += ["", f"Built in {plan.dist}:" if built else f"Would be built in {plan.dist}:"]
    lines += [f"  {one.name:{width}}  {one.about}" for one in plan.files]
    lines += [f"  {CHECKSUMS:{width}}  for sha256sum -c"]
    if plan.push:
        lines += ["", "To push, in this order:"]
        for one in plan.push:
            lines += [f"  # {one.what}: to {one.where}", f"  {one.line}"]
    return "\n".join(lines) + "\n"
