"""The tables of the page about clients."""

from __future__ import annotations

import pytest

from docs.clients import COLUMNS
from docs.generated import ROOT, fill_in
from tests.clients.cases import CASES
from tests.clients.clients import CLIENTS

PAGE = (ROOT / "docs/pages/clients.md").read_text(encoding="utf-8")


def rows_of(part: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in fill_in(f"*(make docs writes here: {part})*").splitlines()][2:]


def test_every_client_is_a_row_with_a_version_and_every_case() -> None:
    rows = rows_of("clients")
    assert [row[0] for row in rows] == [client.name for client in CLIENTS]
    assert tuple(COLUMNS) == CASES
    assert all(len(row) == len(CASES) + 2 and all(row) for row in rows)


@pytest.mark.parametrize("part", ["clients", "clients without CoreDNS"])
def test_the_page_has_the_table(part: str) -> None:
    assert f"*(make docs writes here: {part})*" in PAGE


def test_without_coredns_only_the_client_that_the_page_names_sees_something_else() -> None:
    assert {row[0] for row in rows_of("clients without CoreDNS")} == {"musl before 1.2.4"}
    assert "No other outcome differs" in PAGE


def test_only_java_keeps_a_removed_name_as_the_page_says() -> None:
    removed = list(COLUMNS).index("removed name") + 2
    assert [row[0] for row in rows_of("clients") if row[removed] != "within the TTL"] == ["Java"]


def test_the_page_explains_the_words_of_the_table() -> None:
    words = {word for row in rows_of("clients") for cell in row[2:4] for word in cell.split(", ")}
    words = {word.rpartition(": ")[2] for word in words}
    assert all(word in PAGE for word in words), words
