"""What a pod's status says of its pull."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.cluster.steps.registry import Pull, outcome

REFUSED = {"reason": "ErrImagePull", "message": 'failed to do request: Head "https://registry.example.org/": EOF'}


def pod(state: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"status": {"containerStatuses": [{"name": "pulled", "state": state}]}}


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        pytest.param({}, None, id="a pod that the kubelet has not seen"),
        pytest.param({"status": {"phase": "Pending"}}, None, id="no container yet"),
        pytest.param(pod({"waiting": {"reason": "ContainerCreating"}}), None, id="under way"),
        pytest.param(pod({"running": {"startedAt": "2026-01-01T00:00:00Z"}}), Pull(runs=True), id="running"),
        pytest.param(
            pod({"waiting": REFUSED}),
            Pull(runs=False, told=f"ErrImagePull: {REFUSED['message']}"),
            id="failed",
        ),
        pytest.param(
            pod({"waiting": {"reason": "ImagePullBackOff"}}), Pull(runs=False, told="ImagePullBackOff: "), id="again"
        ),
    ],
)
def test_the_outcome_of_a_pull_is_in_the_status(seen: Mapping[str, Any], wanted: Pull | None) -> None:
    assert outcome(seen) == wanted
