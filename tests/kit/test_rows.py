from __future__ import annotations

from tests.kit.rows import failing


def test_every_row_that_fails_is_listed_with_the_first_line_of_its_error() -> None:
    def check(one: int, other: str) -> None:
        if other == "b":
            raise ValueError(f"{one} is bad\nand more")
        assert one < 2, "too large"

    found = failing(check, [1, 2], "ab")
    assert found[0] == "1, 'b': ValueError: 1 is bad"
    assert found[1].startswith("2, 'a': AssertionError: too large")
    assert found[2] == "2, 'b': ValueError: 2 is bad"
    assert len(found) == 3


def test_a_check_that_holds_for_every_row_has_no_failures() -> None:
    assert failing(lambda _: None, range(3)) == []


def test_a_table_without_rows_checks_nothing_and_fails() -> None:
    assert failing(lambda _: None, []) == ["there is no row"]
    assert failing(lambda _, __: None, [1], []) == ["there is no row"]
