from __future__ import annotations

import pytest

from tests.bench.sync.contents import INGRESSES, MIXED, Contents
from tests.bench.sync.measuring import MEASUREMENTS
from tests.bench.sync.run import plan

BY_NAME = {one.name: one for one in MEASUREMENTS}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param([], [(INGRESSES, [])], id="nothing measured: Ingresses are made"),
        pytest.param(["start"], [(INGRESSES, ["start"])], id="Ingresses"),
        pytest.param(["mixed"], [(MIXED, ["mixed"])], id="only mixed kinds: no Ingresses are made"),
        pytest.param(
            ["start", "mixed", "changes"],
            [(INGRESSES, ["start", "changes"]), (MIXED, ["mixed"])],
            id="one API server for all measurements of the same objects",
        ),
    ],
)
def test_measurements_of_the_same_objects_share_an_api_server(
    names: list[str], expected: list[tuple[Contents, list[str]]]
) -> None:
    found = plan([BY_NAME[name] for name in names])
    assert [(contents, [one.name for one in measurements]) for contents, measurements in found.items()] == expected
