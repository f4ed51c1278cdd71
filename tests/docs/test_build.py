"""The guide as a site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.build import build, stage


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    stage(folder)
    assert build(folder) == 0, "see what it printed: a link leads nowhere, or a page is missing"
    return folder / "site"


def test_every_page_of_the_menu_is_there(site: Path) -> None:
    menu = re.findall(r'= "([a-z/-]+)\.md"', (site.parent / "zensical.toml").read_text())
    staged = {str(page.relative_to(site.parent / "pages"))[:-3] for page in (site.parent / "pages").rglob("*.md")}
    assert set(menu) == staged
    for name in menu:
        assert (site / ("." if name == "index" else name) / "index.html").exists()


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
