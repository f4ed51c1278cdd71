"""Clusters as manifests, and discovery over them: the answers of their API server as values."""

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
    """The objects of a cluster of the corpus, copied so that a test may change them."""
    return copy.deepcopy(_load(name))


def pick(objects: Iterable[Manifest], kind: str, name: str) -> Manifest:
    """The only object of that kind and name, for a test to change."""
    (found,) = [one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def answer(request: Request, objects: Iterable[Manifest]) -> Answer:
    """The answer of an API server with these objects."""
    matching = [one for one in objects if _matches(request, one)]
    try:
        found = tuple(msgspec.convert(one, request.kind.type) for one in matching)
    except msgspec.ValidationError as error:
        return Unreadable(str(error))
    if request.name is None:
        return found
    return found[0] if found else None


def discover(objects: Iterable[Manifest], where: ServiceRef | None = None, *, denies: Denies | None = None) -> Found:
    """The result of discovery; `denies` may replace the answer to a request, or return None to keep it."""
    return find(read(objects, where, denies=denies), where)


def read(
    objects: Iterable[Manifest], where: ServiceRef | None = None, *, denies: Denies | None = None
) -> dict[Request, Answer]:
    """The answers to all requests of discovery, round by round."""
    objects = list(objects)
    answers: dict[Request, Answer] = {}
    while wanted := find(answers, where).wanted:
        for request in wanted:
            denied = denies(request) if denies else None
            answers[request] = answer(request, objects) if denied is None else denied
    return answers


def faults_of(found: Found) -> list[str]:
    """The faults as text."""
    return [str(fault) for fault in found.faults]


@lru_cache
def _load(name: str) -> list[Manifest]:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def _matches(request: Request, one: Manifest) -> bool:
    metadata: Mapping[str, Any] = one["metadata"]
    if one["kind"] != request.kind.name or metadata.get("namespace") != request.namespace:
        return False
    if request.label_selector:
        assert request.label_selector == CLUSTER_DNS
        labels = metadata.get("labels")
        return isinstance(labels, dict) and labels.get("k8s-app") in ("kube-dns", "coredns")
    return request.name is None or metadata["name"] == request.name
