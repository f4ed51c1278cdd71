"""Which Service answers for a class or a Gateway, whatever the order of the Services."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.steering import SteeringService, find_steering, steering_collection
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.protocol import Decoder

OLD, NEW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
NGINX = "ingressclass/nginx"


def service(subjects: object = None, *, created: str = OLD, annotations: object = ...) -> SteeringService | Unreadable:
    """As it comes out of a list."""
    told = ({} if subjects is None else {"switchback.dev/for": subjects}) if annotations is ... else annotations
    item = {"metadata": {"name": "relay", "namespace": "own", "creationTimestamp": created, "annotations": told}}
    body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": [item]}).encode()
    decoder = Decoder(SteeringService)
    found = decoder.decode_items(decoder.split_page(body).items)[0].value
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("services", "chosen", "faults"),
    [
        pytest.param({"own/a": service(NGINX)}, {NGINX: "own/a"}, {}, id="one"),
        pytest.param(
            {"own/a": service(f"{NGINX}, gateway/web/public")},
            {NGINX: "own/a", "gateway/web/public": "own/a"},
            {},
            id="one for two",
        ),
        pytest.param(
            {"own/a": service(NGINX, created=NEW), "own/b": service(NGINX)},
            {NGINX: "own/b"},
            {"own/a": "switchback.dev/for: ingressclass/nginx has own/b already"},
            id="the older",
        ),
        pytest.param(
            {"own/b": service(NGINX), "own/a": service(NGINX)},
            {NGINX: "own/a"},
            {"own/b": "switchback.dev/for: ingressclass/nginx has own/a already"},
            id="of one age, the first by name",
        ),
        pytest.param(
            {"own/a": service("nginx", created=OLD), "own/b": service(NGINX, created=NEW)},
            {NGINX: "own/b"},
            {"own/a": "switchback.dev/for: 'nginx' is not ingressclass/NAME or gateway/NAMESPACE/NAME"},
            id="one that cannot be read takes nothing",
        ),
        pytest.param({"own/a": service()}, {}, {}, id="without the annotation"),
        pytest.param({"own/a": service(annotations=None)}, {}, {}, id="annotations null"),
        pytest.param({"own/a": service(7)}, {}, {}, id="unreadable"),
        pytest.param({}, {}, {}, id="none"),
    ],
)
def test_the_oldest_service_for_a_subject_counts(
    services: dict[str, Any], chosen: dict[str, str], faults: dict[str, str]
) -> None:
    found = find_steering(services)
    assert (found.services, found.faults) == (chosen, faults)


SERVICES = st.dictionaries(
    st.sampled_from(["own/a", "own/b", "own/c"]),
    st.builds(
        lambda subjects, created: service(subjects, created=created),
        st.sampled_from([None, NGINX, f"{NGINX},gateway/a/b", "gateway/a/b", "nonsense"]),
        st.sampled_from([OLD, NEW]),
    ),
)


@given(SERVICES)
def test_the_order_does_not_matter_and_a_fault_takes_nothing_from_others(services: dict[str, Any]) -> None:
    found = find_steering(services)
    assert found == find_steering(dict(reversed(services.items())))
    for key in found.faults:
        rest = {name: one for name, one in services.items() if name != key}
        left = find_steering(rest).services
        assert {subject: one for subject, one in found.services.items() if one != key} == {
            subject: one for subject, one in left.items() if found.services[subject] != key
        }


def test_only_the_services_of_one_namespace_are_asked_for() -> None:
    assert steering_collection("own").path == "/api/v1/namespaces/own/services"


def test_of_many_subjects_that_are_taken_a_few_are_named() -> None:
    many = ",".join(f"gateway/web/g{number}" for number in range(5_000))
    found = find_steering({"own/a": service(many), "own/b": service(many, created=NEW)})
    assert "gateway/web/g0 has own/a" in found.faults["own/b"]
    assert len(found.faults["own/b"]) < 500
