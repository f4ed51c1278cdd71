"""A cluster out of manifests: what its API server would answer to discovery's requests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from dnsproxy.cluster_dns.cluster_service import CLUSTER_DNS
from dnsproxy.cluster_dns.find import find
from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.requests import Answer, Request, Unreadable

FOLDER = Path(__file__).parent / "clusters"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))

Manifest = dict[str, Any]
Denies = Callable[[Request], Answer]


def manifests(name: str) -> list[Manifest]:
    """The objects of a cluster of the corpus, each a copy of one's own."""
    return copy.deepcopy(_load(name))


def pick(objects: Iterable[Manifest], kind: str, name: str) -> Manifest:
    """The one object of that kind and name, to be changed."""
    (found,) = [one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def answer(request: Request, objects: Iterable[Manifest]) -> Answer:
    """What an API server with these objects answers."""
    matching = [one for one in objects if _matches(request, one)]
    try:
        found = tuple(msgspec.convert(one, request.kind.type) for one in matching)
    except msgspec.ValidationError as error:
        return Unreadable(str(error))
    if request.name is None:
        return found
    return found[0] if found else None


def discover(objects: Iterable[Manifest], where: ServiceRef | None = None, *, denies: Denies | None = None) -> Found:
    """What discovery finds; `denies` may give another answer to a request, or None to leave it."""
    return find(read(objects, where, denies=denies), where)


def read(
    objects: Iterable[Manifest], where: ServiceRef | None = None, *, denies: Denies | None = None
) -> dict[Request, Answer]:
    """All that discovery wants to know, round by round."""
    objects = list(objects)
    answers: dict[Request, Answer] = {}
    while wanted := find(answers, where).wanted:
        for request in wanted:
            denied = denies(request) if denies else None
            answers[request] = answer(request, objects) if denied is None else denied
    return answers


def faults_of(found: Found) -> list[str]:
    """What is wrong, as people read it."""
    return [str(fault) for fault in found.faults]


@lru_cache
def _load(name: str) -> list[Manifest]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))


def _matches(request: Request, one: Manifest) -> bool:
    metadata: Mapping[str, Any] = one["metadata"]
    if one["kind"] != request.kind.name or metadata.get("namespace") != request.namespace:
        return False
    if request.label_selector:
        assert request.label_selector == CLUSTER_DNS
        labels = metadata.get("labels")
        return isinstance(labels, dict) and labels.get("k8s-app") in ("kube-dns", "coredns")
    return request.name is None or metadata["name"] == request.name
