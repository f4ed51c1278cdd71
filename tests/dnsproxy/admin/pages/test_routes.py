"""The pages of a DNS server over a real admin port."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dnsproxy.sources.static_names import parse_host_flag
from tests.kit.serve_inside import get, serving, settings

PAGES = ("/", "/names", "/left-out", "/in-doubt", "/skipped", "/why", "/why?name=app.example.org")


async def test_every_page_is_whole_and_knows_where_it_is() -> None:
    async with serving(settings()) as bound:
        for path in PAGES:
            status, page = await get(bound.admin, path)
            assert status == 200
            assert "</html>" in page
            assert page.count('aria-current="page"') == 1
            assert page.count("<h1>") == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/names?q=" + "a" * 256, 400),
        ("/why?name=" + "a" * 1001, 400),
        ("/names?after=" + "a" * 1001, 400),
        ("/names?q=%00%ff%3Cscript%3E", 200),
        ("/why?name=%E2%80%AE%3Cscript%3E", 200),
        ("/names/", 404),
        ("/live?since=%00", 200),
        ("/style.css?q=1", 200),
    ],
)
async def test_whatever_is_asked_is_answered_within_bounds(path: str, status: int) -> None:
    async with serving(settings()) as bound:
        answer = await get(bound.admin, path)
    assert answer[0] == status
    assert "<script>" not in answer[1]


async def test_what_came_from_outside_is_found_as_text(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 x.localhost\n192.0.2.1 <script>\n")
    async with serving(settings(hosts_file=hosts)) as bound:
        assert "x.localhost" in (await get(bound.admin, "/left-out?q=localhost"))[1]
        skipped = (await get(bound.admin, "/skipped"))[1]
    assert "&lt;script&gt;" in skipped
    assert "<script>" not in skipped


async def test_a_large_table_is_searched() -> None:
    hosts = tuple(parse_host_flag(f"h{number}.example.org=192.0.2.1") for number in range(3_000))
    async with serving(settings(hosts=hosts)) as bound:
        assert "1 to 1 of 1" in (await get(bound.admin, "/names?q=h2999."))[1]
        told = json.loads((await get(bound.admin, "/live"))[1])
    assert told["facts"]["names"] == ["3,000", ""]
