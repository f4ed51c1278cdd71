from __future__ import annotations

import pytest

from tests.bench.sync.filling import NAMESPACES, hostname_of, manifest_of, split_work


@pytest.mark.parametrize("count", [0, 1, 249, 250, 251, 1000])
def test_work_is_split_and_none_of_it_is_lost(count: int) -> None:
    parts = split_work(range(count))
    assert [number for part in parts for number in part] == list(range(count))
    assert all(0 < len(part) <= 250 for part in parts)


def test_every_object_has_a_name_and_a_host_of_its_own() -> None:
    manifests = [manifest_of(number) for number in range(3 * NAMESPACES)]
    assert len({one["metadata"]["name"] for one in manifests}) == len(manifests)
    assert len({one["metadata"]["namespace"] for one in manifests}) == NAMESPACES
    assert [one["spec"]["rules"][0]["host"] for one in manifests] == [hostname_of(n) for n in range(len(manifests))]
