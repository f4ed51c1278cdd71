"""The fenced blocks of a page."""

from __future__ import annotations

import pytest

from docs.fences import Fence, Mode, find_fences, without_modes

PAGE = "text\n```sh run\necho 1\n```\n\n```text seen\n1\n```\nmore `x`\n```yaml\na: 1\n```\n"


def test_blocks_come_in_order_with_their_modes() -> None:
    assert list(find_fences(PAGE)) == [
        Fence("sh", Mode.RUN, "echo 1\n"),
        Fence("text", Mode.SEEN, "1\n"),
        Fence("yaml", Mode.NONE, "a: 1\n"),
    ]


def test_readers_see_no_modes() -> None:
    page = without_modes(PAGE)
    assert [fence.mode for fence in find_fences(page)] == [Mode.NONE] * 3
    assert page == PAGE.replace(" run", "").replace(" seen", "")


@pytest.mark.parametrize("info", ["sh later", "sh run run", "text  "], ids=["unknown", "two", "blanks"])
def test_a_mode_that_is_none_is_told(info: str) -> None:
    page = f"```{info}\nx\n```\n"
    if info.strip() == "text":
        assert [fence.mode for fence in find_fences(page)] == [Mode.NONE]
    else:
        with pytest.raises(ValueError, match="is not a valid Mode"):
            list(find_fences(page))
