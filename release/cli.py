"""`python -m release`: from flags to the files of a release; `make release` calls it.

The law: every flag is checked here; nothing is built before the repository is judged, and nothing is ever pushed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click

from release.artefacts import ALL_KINDS, Kind
from release.build import Building, build
from release.buildah import Buildah
from release.image_name import ImageName, parse_image_name
from release.images import BASE_FLAG, BASE_HELP, BadBase, parse_base
from release.judge import refusals
from release.plan import Plan, format_plan, make_plan, plan_document
from release.repository import read_repository
from sidecar.cli.options import BadUsage, CheckedType, Command, StartError
from sidecar.values.exit_status import ExitStatus

Parsed = TypeVar("Parsed")

EPILOG = """\b
Examples:
  make release IMAGE=registry.example.org/switchback
  make release ARGS=--dry-run
  make release ARGS='--snapshot --only wheel,zipapp'
"""


def parse_kinds(text: str) -> frozenset[Kind]:
    """Kinds separated by commas. Raises ValueError."""
    words = [word.strip() for word in text.split(",")]
    unknown = [word for word in words if word not in set(Kind)]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(Kind)}")
    return frozenset(Kind(word) for word in words)


def parse_downloads(text: str) -> str:
    """An address of web pages, without a final slash. Raises ValueError."""
    if not re.fullmatch(r"https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~-]+)*/?", text):
        raise ValueError(f"{text!a} is not an address such as https://example.org/switchback/releases/download")
    return text.rstrip("/")


@click.command(cls=Command, epilog=EPILOG, context_settings={"auto_envvar_prefix": "RELEASE"})
@click.option(
    "--image",
    type=CheckedType("NAME", parse_image_name),
    help="REGISTRY/NAME of the image, without tag; charts go beside it. Default: [tool.switchback] of pyproject.toml.",
)
@click.option(
    "--downloads",
    type=CheckedType("URL", parse_downloads),
    help="Where the forge has the files of its releases, below which they are v0.1.0/FILE, for kubectl's plugin. "
    "Default: [tool.switchback] of pyproject.toml.",
)
@click.option("--dist", type=click.Path(path_type=Path, file_okay=False), default="dist", help="The folder to fill.")
@click.option(
    "--only",
    "kinds",
    multiple=True,
    type=CheckedType("KINDS", parse_kinds),
    help=f"Build these alone, separated by commas: {', '.join(Kind)}. Files of earlier runs stay.",
)
@click.option("--snapshot", is_flag=True, help="Build a commit without a tag; the notes say that it is no release.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the files of a release, and the commands that push them; write nothing.",
)
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", help="The form of the result on stdout."
)
@click.option(BASE_FLAG, "base", multiple=True, metavar="PLATFORM=NAME", help=BASE_HELP)
@click.option("--buildah", default="buildah", metavar="WORDS", help="The command of buildah, with options of its own.")
@click.option(
    "--buildah-option",
    multiple=True,
    metavar="OPTION",
    help="A further option of each build, such as --isolation=chroot.",
)
@click.option(
    "--source", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="The repository."
)
def main(
    *,
    image: ImageName | None,
    downloads: str | None,
    dist: Path,
    kinds: Sequence[frozenset[Kind]],
    snapshot: bool,
    dry_run: bool,
    output: str,
    base: Sequence[str],
    buildah: str,
    buildah_option: Sequence[str],
    source: Path,
) -> None:
    """Build a release of Switchback from a clean tag, and print the commands that publish it.

    Exit status: 0 built, 1 refused (the reasons are on stderr), 2 bad usage, 3 a file could not be built.
    """
    bases = _bases(base)
    repository = read_repository(source)
    name = image or _of_project(repository.default_image, "image", parse_image_name)
    address = downloads or _of_project(repository.default_downloads, "downloads", parse_downloads)
    reasons = refusals(
        repository,
        snapshot=snapshot,
        image=name,
        image_given=image is not None,
        in_dist=_listing(dist),
        downloads=address,
        downloads_given=downloads is not None,
    )
    if reasons:
        for reason in reasons:
            click.echo(f"Refused: {reason}", err=True)
        raise SystemExit(ExitStatus.NO)
    wanted = frozenset().union(*kinds) if kinds else ALL_KINDS
    plan = make_plan(repository, snapshot=snapshot, image=name, downloads=address, dist=str(dist), kinds=wanted)
    checksums: Mapping[str, str] = {}
    if not dry_run:
        builder = Buildah(command=shlex.split(buildah), options=buildah_option)
        run = Building(plan, source, dist, repository.changelog, bases, builder, _show_progress)
        checksums = build(run)
    click.echo(_result(plan, checksums, output), nl=False)


def _result(plan: Plan, checksums: Mapping[str, str], output: str) -> str:
    if output == "json":
        return json.dumps(plan_document(plan, checksums), indent=2) + "\n"
    return format_plan(plan, built=bool(checksums))


def _bases(words: Sequence[str]) -> dict[str, str] | None:
    try:
        return parse_base(words)
    except BadBase as error:
        raise BadUsage([str(error)]) from error


def _of_project(text: str | None, name: str, parse: Callable[[str], Parsed]) -> Parsed:
    """What [tool.switchback] in pyproject.toml has in place of the flag of that name."""
    if text is None:
        raise BadUsage([f"--{name}: is required, as pyproject.toml has no {name} in [tool.switchback]"])
    try:
        return parse(text)
    except ValueError as error:
        raise StartError(f"pyproject.toml: [tool.switchback] {name}: {error}") from error


def _listing(dist: Path) -> list[str]:
    try:
        return sorted(one.name for one in dist.iterdir())
    except FileNotFoundError:
        return []


def _show_progress(step: str) -> None:
    click.echo(f"release: {step}", err=True)
