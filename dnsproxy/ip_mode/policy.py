"""The admission policy that sets `ipMode: Proxy` while the provider writes the status, and its binding.

The law: it matches UPDATE of services/status alone; an entry without an address, and one that is Proxy already, get
no operation; an error of the policy never blocks the write. failurePolicy does not cover a patch whose result is no
Service (the API server then answers 500): an operation sets one string of an entry that exists. The operations are a
JSON Patch, because an apply configuration cannot change an atomic list. KEP-3962; KEP-1860. Pure.
"""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from dnsproxy.doctor.judge import ip_mode_policy
from dnsproxy.doctor.judge.mutating_admission import GROUP
from dnsproxy.ip_mode.selection import ANNOTATION, PROXY, Selection

NAME: Final = ip_mode_policy.NAME
"""Of the policy and of its binding."""
_LABELS: Final = {"app.kubernetes.io/name": "ip-mode", "app.kubernetes.io/part-of": "switchback"}
_WANTED: Final = (
    f"object.metadata.?annotations[?'{ANNOTATION}'].orValue("
    f"object.spec.?loadBalancerClass.orValue('') in variables.loadBalancerClasses ? '{PROXY}' : '')"
)
_OPERATIONS: Final = (
    f"variables.wanted != '{PROXY}' ? [] : "
    "object.status.?loadBalancer.?ingress.orValue([]).transformList(i, point, "
    f"point.?ip.orValue('') != '' && point.?ipMode.orValue('') != '{PROXY}', "
    'JSONPatch{op: "add", path: "/status/loadBalancer/ingress/" + string(i) + "/ipMode", '
    f'value: "{PROXY}"' + "})"
)


def make_policy(version: str, selection: Selection) -> list[dict[str, Any]]:
    """The policy and its binding, of a version of their API: `v1` or `v1beta1`."""
    api = {"apiVersion": f"{GROUP}/{version}"}
    return [
        {**api, "kind": "MutatingAdmissionPolicy", "metadata": _metadata(), "spec": _spec(selection)},
        {**api, "kind": "MutatingAdmissionPolicyBinding", "metadata": _metadata(), "spec": {"policyName": NAME}},
    ]


def format_policy(version: str, selection: Selection) -> str:
    """The same as YAML documents."""
    return yaml.safe_dump_all(make_policy(version, selection), explicit_start=True, sort_keys=False, width=1000)


def _metadata() -> dict[str, Any]:
    """Of either object, and shared by none: a caller may change one of them."""
    return {"name": NAME, "labels": dict(_LABELS)}


def _spec(selection: Selection) -> dict[str, Any]:
    matched = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["services/status"],
        # The default. This list is replaced as a whole: without it, each `kubectl apply` would find a difference.
        "scope": "*",
    }
    return {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {"resourceRules": [matched]},
        "variables": [
            # A list of JSON strings is a list of CEL strings.
            {
                "name": ip_mode_policy.CLASSES_VARIABLE,
                "expression": json.dumps([name for name in selection.classes if name]),
            },
            {"name": "wanted", "expression": _WANTED},
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _OPERATIONS}}],
    }
