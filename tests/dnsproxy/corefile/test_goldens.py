"""What is installed into each distribution's Corefile, kept whole so that a change of it is seen and read.

`UPDATE_GOLDENS=1 make test ARGS=tests/dnsproxy/install` writes them anew; tests/peers has the real CoreDNS load them.
"""

from __future__ import annotations

import pytest

from dnsproxy.corefile.plan import plan_uninstall
from tests.dnsproxy.corefile.shapes import FOLDER, NEWEST, SHAPES, golden_path, installed, is_updating, read, stock


@pytest.mark.parametrize("shape", SHAPES)
def test_a_distribution_gets_the_golden_stanza(shape: str) -> None:
    new = installed(stock(shape), version=NEWEST).new
    if is_updating():
        golden_path(shape).write_bytes(new.encode())
    assert new == read(golden_path(shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_golden_uninstalls_to_the_stock_corefile(shape: str) -> None:
    assert plan_uninstall(read(golden_path(shape))).new == stock(shape)


def test_every_golden_has_its_stock_corefile() -> None:
    assert sorted(path.stem for path in (FOLDER / "installed").iterdir()) == SHAPES
