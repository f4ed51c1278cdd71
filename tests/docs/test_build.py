"""The guide as a site."""

from __future__ import annotations

import html
import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pytest

from docs.build import build, main, stage
from docs.generated import PROGRAMS, fill_in
from tests.docs.test_generated import commands
from tests.kit.programs import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    stage(folder)
    assert build(folder) == 0, "see what it printed: a link leads nowhere, or a page is missing"
    return folder / "site"


@pytest.fixture(scope="module")
def index(site: Path) -> list[dict[str, Any]]:
    """What the search knows: sections, flags and metrics."""
    text = (site / "search.json").read_text()
    assert (site / "search.js").read_text() == f"var __index = {text}", "as a file and served it knows the same"
    items: list[dict[str, Any]] = json.loads(text)["items"]
    return items


@pytest.mark.parametrize("arguments", [[], ["docs"], ["docs/pages"], ["."], ["README.md"], ["a", "b"]])
def test_what_is_no_folder_of_its_own_is_refused(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", ["docs.build", *arguments])
    monkeypatch.setattr("shutil.rmtree", pytest.fail)
    assert main() == 2


def test_every_page_is_once_in_one_of_five_groups(site: Path) -> None:
    groups = tomllib.loads((site.parent / "zensical.toml").read_text())["project"]["nav"]
    menu = [file for group in groups for pages in group.values() for page in pages for file in page.values()]
    assert len(groups) == 5
    assert sorted(menu) == sorted(page.name for page in (site.parent / "pages").rglob("*.md"))
    # A page is a file: a link to a folder would show its listing where no server chooses index.html.
    assert {f"{Path(name).stem}.html" for name in menu} | {"bench.html"} == {page.name for page in site.rglob("*.html")}


def test_the_search_knows_every_flag_of_every_command(index: list[dict[str, Any]]) -> None:
    known = {(item["path"][-1], word) for item in index for word in re.split("[ ,/]+", item["title"])}
    flags = [
        (path, flag)
        for program, whole in PROGRAMS.items()
        for path, command in commands(program, whole)
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
        for flag in (*option.opts, *option.secondary_opts)
    ]
    assert len(flags) > 250
    assert [flag for flag in flags if flag not in known] == []


def test_the_search_knows_every_metric(index: list[dict[str, Any]]) -> None:
    metrics = re.findall(r"^\| `(\w+)", fill_in("*(make docs writes here: metrics)*"), re.MULTILINE)
    assert len(metrics) > 30
    assert set(metrics) <= {item["title"].partition("{")[0] for item in index}


def test_each_thing_that_the_search_knows_is_one_place_of_a_page(site: Path, index: list[dict[str, Any]]) -> None:
    anchors = {page.name: Counter(re.findall(r' id="([^"]+)"', page.read_text())) for page in site.glob("*.html")}
    for item in index:
        page, _, anchor = item["location"].partition("#")
        assert anchors[page][html.unescape(anchor)] == 1 or not anchor, item["location"]


def test_a_flag_is_found_with_its_variable_its_default_and_its_meaning(index: list[dict[str, Any]]) -> None:
    (found,) = (item for item in index if item["location"] == "serve.html#dnsproxy-serve--ttl")
    assert found["title"] == "--ttl SECONDS"
    assert found["text"].startswith("<p>DNSPROXY_TTL 5 Seconds an answer may be kept.")
    assert html.escape("<=", quote=False) in found["text"]


def test_names_in_a_line_wrap_between_words_and_blocks_stay_as_they_are(site: Path) -> None:
    page = (site / "serve.html").read_text()
    assert "<code>DNSPROXY_<wbr>HOSTS_<wbr>FILE</code>" in page
    assert "ADDR:<wbr>PORT|<wbr>systemd</code>" in page, "a bar in code is no cell's end, and has no backslash"
    blocks = re.findall(r"<pre>.*?</pre>", page, re.DOTALL)
    assert blocks
    assert not [block for block in blocks if "<wbr>" in block]


def test_a_picture_is_there_for_each_scheme(site: Path) -> None:
    assert re.findall(r'<img[^>]+src="([^"]+)"', (site / "index.html").read_text()) == [
        "pictures/hairpin.svg#only-light",
        "pictures/hairpin.svg#only-dark",
    ]


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text)
        assert not re.search(r'<link[^>]+rel="(?:stylesheet|preconnect|icon)"[^>]+href="(?:https?:)?//', text)


@pytest.mark.parametrize("link", ["[x](nowhere.md)", "[x](index.md#nowhere)"], ids=["page", "heading"])
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, link: str) -> None:
    stage(tmp_path)
    page = tmp_path / "pages" / "doctor.md"
    page.write_text(f"{page.read_text()}\n{link}\n")
    assert build(tmp_path) != 0
