"""The style, the script and the icon of every page."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sidecar.admin.page.assets import asset_routes


def body_of(path: str) -> str:
    answer: Any = asset_routes()[path]({})
    body: bytes = answer.body
    return body.decode()


@pytest.mark.parametrize("path", sorted(asset_routes()))
def test_each_is_there_with_its_type_and_a_tag(path: str) -> None:
    answer: Any = asset_routes()[path]({})
    assert (answer.status, len(answer.body) > 100) == (200, True)
    assert answer.content_type.split(";")[0] in {"text/css", "text/javascript", "image/svg+xml"}
    assert re.fullmatch(r'"[0-9a-f]{16}"', answer.headers["ETag"])


@pytest.mark.parametrize("path", sorted(asset_routes()))
def test_none_leads_elsewhere(path: str) -> None:
    addresses = set(re.findall(r"https?://[^\"' )]+|@import|url\(", body_of(path)))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_the_script_puts_no_text_into_markup_and_runs_none() -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", body_of("/script.js")
    )
