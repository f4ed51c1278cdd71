from __future__ import annotations

from tests.kit.grid import format_grid


def test_columns_are_as_wide_as_their_widest_cell_and_figures_stand_right() -> None:
    assert format_grid(("server", "q/s"), [("ours", "9"), ("a longer one", "1,000")]) == (
        "server          q/s\n"
        "------------  -----\n"
        "ours              9\n"
        "a longer one  1,000\n"
    )  # fmt: skip


def test_words_can_stand_left_in_any_column_and_no_line_ends_in_blanks() -> None:
    assert format_grid(("a", "goal"), [("1", "yes"), ("22", "")], left=(1,)) == " a  goal\n--  ----\n 1  yes\n22\n"


def test_a_table_without_rows_is_its_head() -> None:
    assert format_grid(("a", "b"), []) == "a  b\n-  -\n"
