"""The sysctls that a node must change to forward packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from wholeip.kernel.sysctls import FORWARDING, advise, read_sysctl


@pytest.mark.parametrize(
    ("families", "values", "advice"),
    [
        pytest.param([], {4: "0", 6: "0"}, [], id="nothing to forward"),
        pytest.param([4, 6], {4: "1", 6: "1"}, [], id="all is set"),
        pytest.param([4, 6], {4: "1", 6: "2"}, [], id="on with router advertisements"),
        pytest.param([4], {4: "1", 6: "0"}, [], id="no IPv6 to forward"),
        pytest.param([4], {4: "0"}, ["set net.ipv4.ip_forward=1 (it is 0)"], id="IPv4 is not forwarded"),
        pytest.param([6], {6: "0"}, ["set net.ipv6.conf.all.forwarding=1 (it is 0)"], id="IPv6 is not forwarded"),
        pytest.param([4, 6], {}, [], id="cannot be read"),
        pytest.param([4], {4: ""}, ["set net.ipv4.ip_forward=1"], id="empty"),
    ],
)
def test_forwarding_is_asked_for_in_the_families_that_need_it(
    families: list[int], values: dict[int, str], advice: list[str]
) -> None:
    by_name = {FORWARDING[family]: value for family, value in values.items()}
    found = list(advise(families, by_name.get))
    assert len(found) == len(advice)
    assert all(part in line for part, line in zip(advice, found, strict=True))


def test_a_setting_is_read_where_the_kernel_shows_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1\n")
    (tmp_path / "odd").write_bytes(b"\xff")
    assert read_sysctl("x", tmp_path) == "1"
    assert read_sysctl("odd", tmp_path) is None
    assert read_sysctl("none", tmp_path) is None
