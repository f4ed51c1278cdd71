"""Waiting until the API server grants the rights that were just bound.

The law: a returned wait means that each rule is granted to the account. The API server's authorizer learns of roles and
bindings by a watch of its own: a call directly after the binding was created can still be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from tests.kit.polling import poll_until

REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SECONDS: Final = 60.0

Request = Callable[[str, str, object], Any]
"""`request(method, path, body)` as the owner of the cluster."""
Rule = Mapping[str, Any]


def wait_until_allowed(request: Request, account: tuple[str, str], rules: Iterable[Rule], *, namespace: str) -> None:
    """Wait until an account `(name, namespace)` may do what `rules` say in a namespace; "" means in all of them."""
    for asked in reviews(account, rules, namespace=namespace):
        poll_until(partial(_is_allowed, request, asked), f"granted: {asked}", seconds=SECONDS)


def reviews(account: tuple[str, str], rules: Iterable[Rule], *, namespace: str) -> Iterator[dict[str, Any]]:
    """One SubjectAccessReview's spec for each rule: its first verb of its first resource."""
    name, home = account
    subject = {
        "user": f"system:serviceaccount:{home}:{name}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{home}", "system:authenticated"],
    }
    for rule in rules:
        yield {**subject, **_attributes(rule, namespace)}


def _is_allowed(request: Request, asked: Mapping[str, Any]) -> bool:
    return bool(request("POST", REVIEWS, {"spec": asked})["status"]["allowed"])


def _attributes(rule: Rule, namespace: str) -> dict[str, Any]:
    verb = rule["verbs"][0]
    if "nonResourceURLs" in rule:
        return {"nonResourceAttributes": {"path": rule["nonResourceURLs"][0], "verb": verb}}
    resource, _, subresource = rule["resources"][0].partition("/")
    asked = {"verb": verb, "group": rule["apiGroups"][0], "resource": resource, "subresource": subresource}
    return {"resourceAttributes": {**asked, "namespace": namespace, "name": rule.get("resourceNames", [""])[0]}}
