"""A plan for the tests of its readers."""

from __future__ import annotations

from collections.abc import Iterable

from release.artefacts import ALL_KINDS, Kind
from release.image_name import parse_image_name
from release.judge import Repository
from release.plan import Plan, make_plan

IMAGE = parse_image_name("registry.example.org/switchback")
DOWNLOADS = "https://example.org/switchback/releases/download"
REPOSITORY = Repository("0.1.0", "c" * 40, 1_700_000_000, (), (), "", None)


def plan(*, snapshot: bool = False, kinds: Iterable[Kind] = ALL_KINDS) -> Plan:
    return make_plan(REPOSITORY, snapshot=snapshot, image=IMAGE, downloads=DOWNLOADS, dist="dist", kinds=kinds)
