"""The matrix of combinations."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.cluster.matrix import load_matrix
from tests.cluster.plan import CILIUM_ALONE, CONTROLLERS, METALLB, UPGRADES, WHOLE, Plan
from tests.cluster.scenes import steps_of

MATRIX = load_matrix()
SHOWN = {
    WHOLE: ("fault_is_there", "readme_installs", "cure_works"),
    METALLB: ("fault_is_there", "apply_installs", "cure_works"),
    CONTROLLERS: ("contour_is_there", "apply_installs", "contour_is_cured"),
    UPGRADES: ("fault_is_there", "previous_version_is_there", "upgrade_by_kubectl_costs_nothing"),
}


def test_ci_plays_the_default_stage_and_one_more() -> None:
    played = [one.plan for one in MATRIX.combination if one.where == "ci"]
    assert played == [Plan(), Plan(scene=METALLB, world=False)]


def test_each_combination_has_a_name_and_a_stage_of_its_own() -> None:
    assert len({one.name for one in MATRIX.combination}) == len(MATRIX.combination)
    assert len({one.plan for one in MATRIX.combination}) == len(MATRIX.combination)


@pytest.mark.parametrize("one", MATRIX.combination, ids=lambda one: one.name)
def test_each_combination_shows_the_fault_and_the_cure(one: object) -> None:
    played = [step.__name__ for step in steps_of(one.plan)]  # type: ignore[attr-defined]
    # Cilium alone has steps of its own.
    scene = METALLB if one.plan.cni == CILIUM_ALONE else one.plan.scene  # type: ignore[attr-defined]
    fault, install, cure = SHOWN[scene]
    assert played.index(fault) < played.index(install) < played.index(cure)


@pytest.mark.parametrize(
    "text",
    [
        '[[combination]]\nname = "a"\nwhere = "nowhere"\n',
        '[[combination]]\nname = "a"\nwhere = "ci"\nfamilies = "ipx"\n',
        '[[combination]]\nname = "a"\nwhere = "ci"\nkubernetis = "v1.36.3"\n',
        '[[combination]]\nwhere = "ci"\n',
        '[[absent]]\nprogram = "a"\n',
    ],
    ids=["place", "family", "key", "no name", "no reason"],
)
def test_a_row_with_a_mistake_is_an_error(text: str, tmp_path: Path) -> None:
    file = tmp_path / "matrix.toml"
    file.write_text(text)
    with pytest.raises(msgspec.ValidationError):
        load_matrix(file)


def test_a_combination_without_the_world_plays_none_of_its_steps() -> None:
    played = {step.__name__ for step in steps_of(Plan(world=False))}
    assert "contour_is_there" not in played
    assert "contour_is_there" in {step.__name__ for step in steps_of(Plan())}


def test_two_families_are_looked_at_in_turn() -> None:
    of_families = {"no_family_is_served", "every_family_is_served"}
    assert of_families <= {step.__name__ for step in steps_of(Plan(families=(4, 6)))}
    assert not of_families & {step.__name__ for step in steps_of(Plan())}


def test_one_node_plays_no_step_of_two() -> None:
    of_two = {"node_dies", "drain_costs_nothing", "contour_is_upgraded"}
    assert of_two <= {step.__name__ for step in steps_of(Plan())}
    assert not of_two & {step.__name__ for step in steps_of(Plan(nodes=1))}
