"""The choice of zones: what is written, what stays, and what is too much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.install.change import zone_choice
from dnsproxy.install.change.zone_choice import ChosenZones, choose_zones


@pytest.mark.parametrize(
    ("wanted", "standing", "complete", "chosen"),
    [
        pytest.param([], [], True, ChosenZones(()), id="nothing"),
        pytest.param(["example.org"], [], True, ChosenZones(("example.org",)), id="the first"),
        pytest.param(["example.org"], ["example.net."], True, ChosenZones(("example.org",)), id="one that vanished"),
        pytest.param(
            ["example.org"],
            ["example.net."],
            False,
            ChosenZones(("example.net", "example.org"), kept=("example.net",)),
            id="one that may have vanished",
        ),
        pytest.param([], ["example.org."], False, ChosenZones(("example.org",), kept=("example.org",)), id="silence"),
        pytest.param(["example.org"], ["example.org."], False, ChosenZones(("example.org",)), id="the same"),
        pytest.param(
            ["example.org"], ["app.example.org."], False, ChosenZones(("example.org",)), id="a narrower one stands"
        ),
        pytest.param(["example.org"], ["."], False, ChosenZones(("example.org",)), id="every name stands"),
        pytest.param(["cluster.local", "localhost", ""], [], True, ChosenZones(()), id="what is never taken"),
    ],
)
def test_a_zone_leaves_only_on_the_word_of_a_complete_source(
    wanted: list[str], standing: list[str], complete: bool, chosen: ChosenZones
) -> None:
    assert choose_zones(wanted, standing, complete=complete) == chosen


def test_zones_of_the_stanza_keep_their_place_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_choice, "MOST_ZONES", 2)
    chosen = choose_zones(["a.org", "b.org", "z.org"], ["z.org."], complete=True)
    assert (chosen.zones, chosen.left_out) == (("a.org", "z.org"), ("b.org",))


ZONES = st.lists(st.sampled_from(["example.org", "example.net", "shop.example.co.uk", "example.com"]))


@given(ZONES, ZONES, st.booleans())
def test_the_choice_after_the_write_changes_nothing(wanted: list[str], standing: list[str], complete: bool) -> None:
    first = choose_zones(wanted, [f"{zone}." for zone in standing], complete=complete).zones
    assert choose_zones(wanted, [f"{zone}." for zone in first], complete=complete).zones == first
