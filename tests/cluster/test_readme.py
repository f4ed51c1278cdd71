"""README's Install block: which of its lines the scene plays, the form of the others, and the shell of the lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.fences import find_fences
from tests.cluster.nodes.node import NodeFailed
from tests.cluster.readme import BLOCK, BUILD, ELSEWHERE, IMPORT, INSTALL, TEST, install_block, play
from tests.deploy.image import PROJECT

ARCHIVE = "build/switchback.tar"
"""What scripts/image.sh writes; tests/release/test_make_image.py."""


def test_every_line_is_played_or_for_another_cluster() -> None:
    assert BUILD == "make image"
    assert f"ctr -n k8s.io images import {ARCHIVE}" == IMPORT
    assert [line.split()[0] for line in INSTALL] == ["helm", "kubectl"]
    assert TEST == "helm test switchback --timeout 10m"
    assert len(BLOCK) == len([BUILD, IMPORT, *INSTALL, TEST]) + len(ELSEWHERE)


def test_the_lines_for_other_clusters_have_the_form_of_their_programs() -> None:
    """Their usage: `kind load image-archive FILE`, `k3d image import FILE`, `minikube image load FILE`."""
    assert sorted(ELSEWHERE) == [
        f"k3d image import {ARCHIVE}",
        f"k3s ctr images import {ARCHIVE}",
        f"kind load image-archive {ARCHIVE}",
        f"minikube image load {ARCHIVE}",
    ]


def test_the_quick_start_has_the_same_lines() -> None:
    page = (PROJECT / "docs" / "pages" / "quick-start.md").read_text(encoding="utf-8")
    lines = [re.sub(r"\s+# .*$", "", line) for fence in find_fences(page) for line in fence.body.splitlines()]
    assert {BUILD, IMPORT, *ELSEWHERE, INSTALL[0]} <= set(lines)


def test_the_first_block_of_the_section_counts() -> None:
    page = "# A\n\n```sh\nno\n```\n\n## Install\n\n```text\nno\n```\n\n```sh\na\n# b\n```\n\n```sh\nno\n```\n\n## B\n"
    assert install_block(page) == ["a", "# b"]


@pytest.mark.parametrize("page", ["", "## Install\n", "\n## Install\n\n## B\n\n```sh\na\n```\n"])
def test_a_page_without_the_block_is_an_error(page: str) -> None:
    with pytest.raises(StopIteration):
        install_block(page)


def test_a_line_is_run_in_the_checkout_with_the_given_programs(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    script = 'test -e here && echo "$GIVEN $*" >&2\n'
    assert play("helm  'a b' c # d", tmp_path, {"helm": script}, more={"GIVEN": "env"}) == "env a b c\n"


@pytest.mark.parametrize("line", ["helm test", "nothing-of-this-name", "'"])
def test_a_line_that_fails_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(NodeFailed, match=rf"README: `{line}` ended with status"):
        play(line, tmp_path, {"helm": "echo refused\nexit 1\n"}, more={})
