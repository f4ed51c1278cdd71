"""The release notes, and the README of a release."""

from __future__ import annotations

import re

import pytest

from release.notes import format_notes, format_readme
from tests.release.clones import PROJECT
from tests.release.plans import plan

DIGESTS = {"switchback": f"sha256:{'a' * 64}", "switchback-nftables": f"sha256:{'b' * 64}"}
CHANGELOG = "## Unreleased\n\n- Newer {braces}.\n\n## 0.1.0 (2026-11-26)\n\n- One {more}.\n\n## 0.0.1\n\n- Old.\n"


def test_they_have_the_install_lines_the_digests_and_the_changes_of_the_version() -> None:
    notes = format_notes(plan(), changelog=CHANGELOG, digests=DIGESTS)
    for words in (
        "# Switchback 0.1.0\n\n## Install",
        "helm install switchback oci://registry.example.org/charts/switchback --version 0.1.0\n",
        "kubectl apply -f switchback-0.1.0.yaml",
        "python3 switchback.pyz doctor app.example.org",
        f"`registry.example.org/switchback:0.1.0@{DIGESTS['switchback']}`",
        f"`registry.example.org/switchback-nftables:0.1.0@{DIGESTS['switchback-nftables']}`",
        "sha256sum -c SHA256SUMS",
        "## Changes\n\n- One {more}.\n",
    ):
        assert words in notes
    for other in ("Newer", "Old", "SNAPSHOT"):
        assert other not in notes


def test_a_snapshot_begins_with_what_it_is() -> None:
    notes = format_notes(plan(snapshot=True), changelog="## Unreleased\n- Newer.\n", digests=DIGESTS)
    assert notes.split("\n")[2].startswith("> **SNAPSHOT, NOT A RELEASE.**")
    assert "c" * 40 in notes
    assert "- Newer." in notes


README = """\
# Switchback

[The guide](docs/pages/index.md), [elsewhere](https://example.org/), [below](#help).

## Install

```sh
helm install switchback deploy/chart
```

## Help

[LICENSE](LICENSE)
"""


def test_the_readme_installs_from_where_the_release_is_pushed_to() -> None:
    text = format_readme(plan(), README)
    assert "\nhelm install switchback oci://registry.example.org/charts/switchback --version 0.1.0\n" in text
    assert "\nkubectl apply -f switchback-0.1.0.yaml\n" in text
    assert "deploy/chart" not in text
    assert text.count("## Install\n") == 1
    assert text.index("## Install") < text.index("\n\n## Help\n")


def test_its_links_lead_to_the_forge_and_others_stay() -> None:
    text = format_readme(plan(), README)
    forge = "https://example.org/switchback/blob/v0.1.0"
    assert re.findall(r"\]\((.*?)\)", text) == [
        f"{forge}/docs/pages/index.md",
        "https://example.org/",
        "#help",
        f"{forge}/LICENSE",
    ]


def test_the_readme_of_a_snapshot_says_what_it_is() -> None:
    assert "**SNAPSHOT, NOT A RELEASE.**" in format_readme(plan(snapshot=True), README)
    assert "SNAPSHOT" not in format_readme(plan(), README)


@pytest.mark.parametrize(
    "text",
    ["", "# Switchback\n", README.replace("## Install", "## Installation"), README.partition("## Help")[0], README * 2],
    ids=["empty", "no section", "another name", "the last section", "two"],
)
def test_a_readme_without_one_such_section_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"README.md has [02] sections `## Install`"):
        format_readme(plan(), text)


def test_nothing_of_a_checkout_is_left_in_our_own_readme() -> None:
    text = format_readme(plan(), (PROJECT / "README.md").read_text(encoding="utf-8"))
    section = text.partition("## Install\n")[2].partition("\n## ")[0]
    assert not [word for word in ("make image", "deploy/chart", "--from .", "localhost") if word in section]


def test_a_release_never_has_unreleased_changes() -> None:
    with pytest.raises(KeyError):
        format_notes(plan(), changelog="## Unreleased\n- Newer.\n", digests=DIGESTS)
