"""CheckedType: the parser's message reaches the user, escaped. The tests of commands have the other flags."""

from __future__ import annotations

import click
import pytest

from sidecar.cli.options import CheckedType


def parse_even(text: str) -> int:
    if not text.isdigit() or int(text) % 2:
        raise ValueError(f"{text} is\nno even number")
    return int(text)


def test_a_good_text_becomes_the_value() -> None:
    assert CheckedType("even", parse_even).convert("4", None, None) == 4


def test_a_value_that_is_one_already_stays() -> None:
    assert CheckedType("even", parse_even).convert(6, None, None) == 6


@pytest.mark.parametrize("text", ["", "3", "two", "4\n"], ids=repr)
def test_a_bad_text_is_a_bad_parameter_on_one_line(text: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        CheckedType("even", parse_even).convert(text, None, None)
    assert "no even number" in caught.value.message
    assert "\n" not in caught.value.message
