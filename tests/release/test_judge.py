"""When a release is refused, and what the refusals say to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from release.image_name import parse_image_name
from release.judge import Repository, refusals

READY = Repository(
    version="0.1.0",
    commit="c" * 40,
    time=1_700_000_000,
    tags=("v0.1.0",),
    changed=(),
    changelog="# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- One.\n",
    default_image=None,
)
REAL = parse_image_name("registry.test/switchback")
EXAMPLE = parse_image_name("registry.example.org/switchback")


def judged(
    repository: Repository, *, snapshot: bool = False, image_given: bool = True, in_dist: Sequence[str] = ()
) -> list[str]:
    return refusals(repository, snapshot=snapshot, image=REAL, image_given=image_given, in_dist=in_dist)


def test_a_clean_tag_with_its_section_is_released() -> None:
    assert judged(READY) == []
    assert judged(replace(READY, tags=("other", "v0.1.0"))) == []
    assert judged(READY, in_dist=["SHA256SUMS", "switchback.pyz", "switchback-0.1.0.tgz"]) == []


REFUSED = [
    ("no tag", replace(READY, tags=()), ["HEAD has no tag", "git tag -a v0.1.0", "--snapshot"]),
    ("another tag", replace(READY, tags=("v0.2.0",)), ["HEAD has the tag v0.2.0", "version 0.1.0"]),
    ("a tag without v", replace(READY, tags=("0.1.0",)), ["HEAD has the tag 0.1.0"]),
    ("a changed file", replace(READY, changed=("README.md",)), ["not clean: README.md;", "commit"]),
    ("many changed files", replace(READY, changed=tuple("abcdefgh")), ["a, b, c, d, e and 3 more;"]),
    ("no section", replace(READY, changelog="## Unreleased\n- One\n"), ["no section 0.1.0", "rename `## Unreleased`"]),
    ("an empty section", replace(READY, changelog="## 0.1.0\n\n## 0.0.1\n- x\n"), ["the section 0.1.0 is empty"]),
    (
        "unreleased changes",
        replace(READY, changelog="## Unreleased\n- Two\n## 0.1.0\n- One\n"),
        ["Unreleased is not empty", "0.1.0"],
    ),
    ("two sections", replace(READY, changelog="## 0.1.0\n- a\n## 0.1.0\n- b\n"), ["CHANGELOG.md:3: a second section"]),
    ("a version of Python alone", replace(READY, version="0.1.0.dev1", tags=("v0.1.0.dev1",)), ["MAJOR.MINOR.PATCH"]),
    ("a version with v", replace(READY, version="v0.1.0", tags=("vv0.1.0",)), ["MAJOR.MINOR.PATCH"]),
    ("a leading zero", replace(READY, version="0.01.0", tags=("v0.01.0",)), ["MAJOR.MINOR.PATCH"]),
]


@pytest.mark.parametrize(("repository", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_anything_else_is_refused_with_what_to_do(repository: Repository, words: Sequence[str]) -> None:
    reasons = judged(repository)
    assert reasons
    for word in words:
        assert any(word in reason for reason in reasons), reasons


def test_all_reasons_come_together() -> None:
    assert len(judged(replace(READY, tags=(), changed=("a",), changelog=""), in_dist=["old.tgz"])) == 4


def test_files_of_another_version_are_never_mixed_in() -> None:
    (reason,) = judged(READY, in_dist=["switchback-0.0.9.tgz", "switchback-0.1.0.tgz"])
    assert "switchback-0.0.9.tgz;" in reason
    assert "switchback-0.1.0.tgz" not in reason


def test_a_snapshot_needs_no_tag_and_no_section() -> None:
    assert judged(replace(READY, tags=(), changelog="## Unreleased\n- One\n"), snapshot=True) == []


@pytest.mark.parametrize(
    ("repository", "word"),
    [(replace(READY, changed=("a",)), "not clean"), (replace(READY, changelog=""), "neither a section")],
    ids=["not clean", "no section at all"],
)
def test_a_snapshot_needs_a_commit_and_its_changes(repository: Repository, word: str) -> None:
    (reason,) = judged(replace(repository, tags=()), snapshot=True)
    assert word in reason


def test_no_plugin_is_fetched_from_an_example_by_default() -> None:
    example, real = "https://example.org/switchback/releases/download", "https://forge.test/switchback/releases"
    rows = {(example, False): 1, (example, True): 0, (real, False): 0}
    for (address, was_given), count in rows.items():
        reasons = refusals(
            READY,
            snapshot=False,
            image=REAL,
            image_given=True,
            in_dist=(),
            downloads=address,
            downloads_given=was_given,
        )
        assert ["--downloads" in one for one in reasons] == [True] * count


def test_no_release_names_an_example_by_default() -> None:
    (reason,) = refusals(READY, snapshot=False, image=EXAMPLE, image_given=False, in_dist=())
    assert "--image" in reason
    assert "IMAGE=" in reason
    assert refusals(READY, snapshot=False, image=EXAMPLE, image_given=True, in_dist=()) == []
    assert refusals(READY, snapshot=True, image=EXAMPLE, image_given=False, in_dist=()) == []
    assert refusals(READY, snapshot=False, image=REAL, image_given=False, in_dist=()) == []
