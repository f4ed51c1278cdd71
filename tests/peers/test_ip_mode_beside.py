"""The ip-mode policy beside classes, faults and other policies, and after its removal: on real API servers.

Which writes it changes, and how, is in test_ip_mode_policy.py.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.ip_mode.policy import format_policy, make_policy
from dnsproxy.ip_mode.selection import Selection, parse_load_balancer_class
from tests.deploy.putting import path_of, put, take_away
from tests.kit.ip_mode import (
    APPLY,
    MERGE,
    SELECTED,
    Release,
    Services,
    apply_text,
    entries_of,
    release,
    server,
    services,
    status_of,
)
from tests.kit.polling import poll_until

__all__ = ["release", "server", "services"]

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl")

ADDRESS: Final = {"ip": "192.0.2.80"}
PROXY: Final = {**ADDRESS, "ipMode": "Proxy"}
VIP: Final = {**ADDRESS, "ipMode": "VIP"}


@pytest.fixture(autouse=True)
def restored(services: Services, release: Release) -> Iterator[None]:
    """Our policy selects nobody but by the annotation, before and after."""
    yield
    put(services.server, make_policy(release.api_version, Selection()))
    services.wait_for_mode(services.create(annotations=SELECTED), "Proxy")
    services.wait_for_mode(services.create(loadBalancerClass="example.org/lb"), "VIP")


HOSTILE: Final = {
    "a quotation mark": '"',
    "an apostrophe": "'",
    "a backslash": "\\",
    "an end of the list": '"] + ["example.org/other"] + ["',
    "an end of the expression": '"] || true || ["',
    "a comment": '"] //',
    "an escape": "\\u0022",
    "a line break": "a\nb",
    "a null": "\0",
    "a bell and a delete": "\a\x7f",
    "a template": "${variables.wanted}",
    "quotation marks of three": '"""',
    "an accent": "\u00e9",
    "a separator of lines": "\u2028",
    "YAML": "- {a: &b [*b]}",
}


def test_a_text_that_is_no_class_is_refused_at_the_edge_and_would_still_be_quoted(
    services: Services, release: Release
) -> None:
    for text in HOSTILE.values():
        with pytest.raises(ValueError, match="is not a loadBalancerClass"):
            parse_load_balancer_class(text)
        policy, _ = make_policy(release.api_version, Selection((text,)))
        path = f"{path_of(policy)}?dryRun=All&fieldManager=test&force=true"
        # A refusal quotes the policy's expression.
        services.server.request("PATCH", path, policy, content_type=APPLY)


def test_hostile_texts_beside_a_class_select_nothing_else(services: Services, release: Release, tmp_path: Path) -> None:
    selection = Selection((*HOSTILE.values(), "example.org/lb"))
    apply_text(services.server, format_policy(release.api_version, selection), tmp_path)
    services.wait_for_mode(services.create(loadBalancerClass="example.org/lb"), "Proxy")
    assert services.modes(services.create(loadBalancerClass="example.org/other")) == ["VIP", "VIP"]
    assert services.modes(services.create()) == ["VIP", "VIP"]
    left_out = {"switchback.dev/ip-mode": "VIP"}
    assert services.modes(services.create(annotations=left_out, loadBalancerClass="example.org/lb")) == ["VIP", "VIP"]


@pytest.mark.parametrize("text", ["\U0001f600", "\ud83d"], ids=["beyond the basic plane", "a lone surrogate"])
def test_a_text_that_no_expression_can_have_never_gets_there(services: Services, release: Release, text: str) -> None:
    with pytest.raises(ValueError, match="is not a loadBalancerClass"):
        parse_load_balancer_class(text)
    policy, _ = make_policy(release.api_version, Selection((text,)))
    with pytest.raises(AssertionError, match="422"):
        put(services.server, [policy])


FAULTS: Final[Mapping[str, Callable[[dict[str, Any]], None]]] = {
    "an index beyond the list of classes": lambda spec: spec["variables"][0].update(expression="[['a']][size('ab')]"),
    "a patch of an entry that does not exist": lambda spec: spec["mutations"][0]["jsonPatch"].update(
        expression='[JSONPatch{op: "replace", path: "/status/loadBalancer/ingress/9/ipMode", value: "Proxy"}]'
    ),
}


@pytest.mark.parametrize("break_it", FAULTS.values(), ids=FAULTS)
def test_a_fault_of_the_policy_never_blocks_a_write(
    services: Services, release: Release, break_it: Callable[[dict[str, Any]], None]
) -> None:
    name = services.create()
    policy, _ = copy.deepcopy(make_policy(release.api_version, Selection()))
    assert policy["spec"]["failurePolicy"] == "Ignore"
    break_it(policy["spec"])
    # With Fail it is seen that there is a fault: the API server says so.
    put(services.server, [{**policy, "spec": {**policy["spec"], "failurePolicy": "Fail"}}])
    poll_until(lambda: not writes(services, name), "the fault refuses a write", seconds=30)
    put(services.server, [policy])
    poll_until(lambda: writes(services, name), "the write is not blocked", seconds=30)
    services.patch_status(name, status_of([ADDRESS]))
    assert entries_of(services.get(name)) == [VIP]


def writes(services: Services, name: str) -> bool:
    """Whether a provider could write the status."""
    try:
        services.would_write(name, [ADDRESS])
    except AssertionError:
        return False
    return True


def neighbour(release: Release, name: str, expression: str) -> list[dict[str, Any]]:
    """Another owner's policy for the same writes, with a JSON Patch."""
    ours, binding = copy.deepcopy(make_policy(release.api_version, Selection()))
    spec = {key: ours["spec"][key] for key in ("matchConstraints", "reinvocationPolicy")}
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    spec |= {"failurePolicy": "Ignore", "mutations": [mutation]}
    policy = {**ours, "metadata": {"name": name}, "spec": spec}
    return [policy, {**binding, "metadata": {"name": name}, "spec": {"policyName": name}}]


@pytest.mark.parametrize("name", ["a-neighbour", "z-neighbour"], ids=["before ours", "after ours"])
@pytest.mark.parametrize(
    ("annotations", "expression", "entries"),
    [
        pytest.param(
            SELECTED,
            """[JSONPatch{op: "add", path: "/metadata/annotations/example.org~1seen", value: "yes"}]""",
            [PROXY],
            id="it writes an annotation",
        ),
        pytest.param(
            {"example.org/other": ""},
            """[JSONPatch{op: "add", path: "/metadata/annotations/example.org~1seen", value: "yes"},
            JSONPatch{op: "add", path: "/metadata/annotations/switchback.dev~1ip-mode", value: "Proxy"}]""",
            [PROXY],
            id="it selects the Service",
        ),
        pytest.param(
            SELECTED,
            """object.status.loadBalancer.ingress.exists(point, point.ip == '192.0.2.99') ? [] : [
            JSONPatch{op: "add", path: "/metadata/annotations/example.org~1seen", value: "yes"},
            JSONPatch{op: "add", path: "/status/loadBalancer/ingress/-",
            value: Object.status.loadBalancer.ingress{ip: "192.0.2.99"}}]""",
            [PROXY, {"ip": "192.0.2.99", "ipMode": "Proxy"}],
            id="it adds an address",
        ),
    ],
)
def test_another_policy_for_the_same_write_lives_beside_it(
    services: Services,
    release: Release,
    name: str,
    annotations: Mapping[str, str],
    expression: str,
    entries: list[Mapping[str, Any]],
) -> None:
    service = services.create(annotations=annotations)
    other = neighbour(release, name, expression)
    put(services.server, other)
    try:
        poll_until(lambda: seen(services, service), "the other policy is in effect", seconds=30)
        for _ in range(2):
            services.patch_status(service, status_of([ADDRESS]))
            assert entries_of(services.get(service)) == entries
    finally:
        take_away(services.server, other)
    poll_until(lambda: not seen(services, services.create(annotations=SELECTED)), "it is gone", seconds=30)


def seen(services: Services, name: str) -> bool:
    """Whether the other policy would change the object."""
    shown = services.patch_status(name, status_of([ADDRESS]), query="?dryRun=All")
    return "example.org/seen" in shown["metadata"]["annotations"]


@pytest.mark.parametrize("removed", [(0, 1), (1,), (0,)], ids=["both", "the binding alone", "the policy alone"])
def test_after_a_removal_the_next_write_of_the_provider_is_its_own(
    services: Services, release: Release, removed: tuple[int, ...]
) -> None:
    name = services.create(annotations=SELECTED)
    services.patch_status(name, status_of([ADDRESS]))
    before = services.get(name)
    assert entries_of(before) == [PROXY]
    objects = make_policy(release.api_version, Selection())
    take_away(services.server, [objects[number] for number in removed])
    services.wait_for_mode(services.create(annotations=SELECTED), "VIP")
    assert services.get(name) == before
    services.patch_status(name, status_of([ADDRESS]))
    assert entries_of(services.get(name)) == [VIP]


def test_after_the_edit_of_another_manager_the_same_write_is_one_change_and_then_none(services: Services) -> None:
    """The API server sees VIP before the policy, so it notes a newer time of the provider; of its entries alone."""
    name = services.create(annotations=SELECTED)
    write = f"{services.path}/{name}/status?fieldManager=provider"
    status = {"status": status_of([ADDRESS])}
    services.server.request("PATCH", write, status, content_type=MERGE)
    # Managers are sorted by time, and its unit is a second.
    second = int(time.time())
    poll_until(lambda: time.time() >= second + 1, "another second", seconds=5)
    edit = {"metadata": {"annotations": {"example.org/edited": "yes"}}}
    edited = services.server.request("PATCH", f"{services.path}/{name}?fieldManager=other", edit, content_type=MERGE)
    poll_until(lambda: time.time() >= second + 2, "another second", seconds=5)
    answers = [services.server.request("PATCH", write, status, content_type=MERGE) for _ in range(4)]
    assert len({one["metadata"]["resourceVersion"] for one in answers}) == 1
    assert [unmanaged(one) for one in answers] == [unmanaged(edited)] * 4


def unmanaged(service: Any) -> Any:
    """The Service without the versions and times of its writes."""
    kept = {key: service["metadata"][key] for key in service["metadata"].keys() - {"managedFields", "resourceVersion"}}
    return {**service, "metadata": kept}
