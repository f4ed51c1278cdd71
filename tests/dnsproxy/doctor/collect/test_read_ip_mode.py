"""Reading our admission policy."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import IpModePolicy
from dnsproxy.ip_mode.policy import make_policy
from dnsproxy.ip_mode.selection import Selection
from tests.dnsproxy.doctor.collect.cluster_api import Api

GROUP = "/apis/admissionregistration.k8s.io"
RESOURCES = {"resources": [{"name": "validatingwebhookconfigurations"}, {"name": "mutatingadmissionpolicies"}]}
WITHOUT = {"resources": [{"name": "validatingwebhookconfigurations"}]}
V1 = f"{GROUP}/v1/mutatingadmissionpolicies/switchback-ip-mode"
BETA = f"{GROUP}/v1beta1/mutatingadmissionpolicies/switchback-ip-mode"
POLICY = make_policy("v1", Selection(("example.org/lb", "internal-vip")))[0]
FOUND = IpModePolicy("v1", found=True, classes=("example.org/lb", "internal-vip"), bound=False)
BINDING = f"{GROUP}/v1/mutatingadmissionpolicybindings/switchback-ip-mode"


def with_classes(expression: Any) -> dict[str, Any]:
    return {"spec": {"variables": [{"name": "loadBalancerClasses", "expression": expression}]}}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ({}, IpModePolicy(found=False)),
        ({f"{GROUP}/v1": WITHOUT}, IpModePolicy(found=False)),
        ({f"{GROUP}/v1": RESOURCES}, IpModePolicy("v1", found=False)),
        ({f"{GROUP}/v1": RESOURCES, V1: POLICY}, FOUND),
        ({f"{GROUP}/v1": WITHOUT, f"{GROUP}/v1beta1": RESOURCES, BETA: POLICY},
         IpModePolicy("v1beta1", found=True, classes=FOUND.classes, bound=False)),
        ({f"{GROUP}/v1": RESOURCES, V1: with_classes("[]")}, IpModePolicy("v1", found=True, bound=False)),
        ({f"{GROUP}/v1": RESOURCES, V1: with_classes("object.spec")}, IpModePolicy("v1", found=True, bound=False)),
        ({f"{GROUP}/v1": RESOURCES, V1: with_classes("[1]")}, IpModePolicy("v1", found=True, bound=False)),
        ({f"{GROUP}/v1": RESOURCES, V1: {"spec": {}}}, IpModePolicy("v1", found=True, bound=False)),
        ({f"{GROUP}/v1": RESOURCES, V1: {}}, IpModePolicy("v1", found=True, bound=False)),
        ({f"{GROUP}/v1": RESOURCES, V1: "garbage"}, IpModePolicy("v1")),
        ({f"{GROUP}/v1": RESOURCES, V1: with_classes(3)}, IpModePolicy("v1")),
        ({f"{GROUP}/v1": "garbage"}, None),
        ({f"{GROUP}/v1": {"resources": 3}}, None),
    ],
    ids=["none is served", "v1 without it", "no policy", "v1", "v1beta1", "no classes", "classes in CEL",
         "classes that are numbers", "no variables", "no spec", "an unreadable policy", "a number for an expression",
         "an unreadable list", "a list that is a number"],
)  # fmt: skip
async def test_what_is_served_and_what_is_there(objects: dict[str, Any], expected: IpModePolicy | None) -> None:
    facts = await Api(objects).read()
    assert facts.ip_mode_policy == expected
    assert facts.refusals == ()


@pytest.mark.parametrize("code", [403, 500])
async def test_what_may_not_be_read_is_unknown_and_no_failure(code: int) -> None:
    facts = await Api({f"{GROUP}/v1": RESOURCES, V1: POLICY}, status={V1: code}).read()
    assert facts.ip_mode_policy == IpModePolicy("v1")
    facts = await Api({}, status={f"{GROUP}/v1": code}).read()
    assert facts.ip_mode_policy is None
    assert not any("admission" in one.what for one in facts.refusals)


@pytest.mark.parametrize(
    ("objects", "status", "bound"),
    [
        pytest.param({BINDING: {}}, {}, True, id="there"),
        pytest.param({}, {}, False, id="gone"),
        pytest.param({BINDING: {}}, {BINDING: 403}, None, id="forbidden"),
        pytest.param({BINDING: {}}, {BINDING: 500}, None, id="a fault"),
    ],
)
async def test_a_policy_is_read_with_its_binding(
    objects: dict[str, Any],
    status: dict[str, int],
    bound: bool | None,
) -> None:
    facts = await Api({f"{GROUP}/v1": RESOURCES, V1: POLICY, **objects}, status=status).read()
    assert facts.ip_mode_policy == replace(FOUND, bound=bound)
    assert facts.refusals == ()
