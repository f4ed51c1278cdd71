"""Object sets: some objects of one API, with everything that they refer to, in a zone and namespaces of their own.

The law: a set depends only on its seed, so that a failure can be played again; sets share nothing but the cluster's
classes, so that hundreds of them fit into one API server.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")
Manifest = dict[str, Any]

USUAL_SEED: Final = "27"
"""The same sets in every run, unless the variable asks for others."""
SEED: Final = os.environ.get("DIFFERENTIAL_SEED", USUAL_SEED)
TEAMS: Final = ("red", "blue")
"""Each set has a namespace for each, with the label `team`."""
FOREIGN: Final = "foreign"
"""An IngressClass and a GatewayClass of another controller."""
ABSENT: Final = "absent"
"""A class, a Service or a Secret that does not exist."""
WEB: Final = "web"
"""The Service of every namespace, with port 80."""
CERTIFICATE: Final = "certificate"
"""A Secret of every namespace."""


@dataclass(frozen=True)
class Terms:
    """What the sets must know of the controller that they are made for."""

    ingress_class: str = "public"
    ingress_controller: str = "example.org/controller"
    gateway_class: str = "public"
    gateway_controller: str = "example.org/controller"
    http: int = 80
    https: int = 443
    """The ports that the controller listens on, for the listeners of Gateways."""
    secret: Mapping[str, str] | None = None
    """`tls.crt` and `tls.key` in Base64, for the Secrets."""


@dataclass(frozen=True)
class ObjectSet:
    """The objects in the order in which they can be created."""

    number: int
    zone: str
    namespaces: tuple[str, ...]
    objects: tuple[Manifest, ...]

    @property
    def subjects(self) -> list[Manifest]:
        """The objects without those that every set has."""
        return [one for one in self.objects if one["kind"] not in ("Namespace", "Service", "Secret")]


@dataclass(frozen=True)
class Draw:
    """Random choices for one set; most options have weights, because rare faults must not hide the common cases."""

    random: random.Random
    terms: Terms
    number: int
    zone: str
    namespaces: tuple[str, ...]

    def one_of(self, options: Mapping[T, int]) -> T:
        """One of the options, by weight."""
        return self.random.choices(list(options), list(options.values()))[0]

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def some(self, options: Sequence[T], *, most: int, least: int = 0) -> list[T]:
        """Different options, in random order."""
        return self.random.sample(options, self.random.randint(least, min(most, len(options))))

    def namespace(self) -> str:
        return self.random.choice(self.namespaces)


def draw_sets(
    kind: str, count: int, *, seed: str, terms: Terms, make: Callable[[Draw], Iterable[Manifest]]
) -> list[ObjectSet]:
    """As many sets, in zones such as `ingress-17.example.org`. `make` draws the subjects of one."""
    return [_draw_set(kind, number, seed=seed, terms=terms, make=make) for number in range(count)]


def _draw_set(
    kind: str, number: int, *, seed: str, terms: Terms, make: Callable[[Draw], Iterable[Manifest]]
) -> ObjectSet:
    name = f"{kind}-{number}"
    namespaces = tuple(f"{name}-{team}" for team in TEAMS)
    source = random.Random(f"{seed} {name}")  # noqa: S311  # not a secret
    zone = f"{name}.example.org"
    subjects = make(Draw(source, terms, number, zone, namespaces))
    return ObjectSet(number, zone, namespaces, (*_surroundings(namespaces, terms), *subjects))


def _surroundings(namespaces: Iterable[str], terms: Terms) -> Iterable[Manifest]:
    """The namespaces, each with a Service and a Secret."""
    for namespace, team in zip(namespaces, TEAMS, strict=True):
        yield manifest("v1", "Namespace", namespace, labels={"team": team})
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        yield manifest("v1", "Service", WEB, namespace, spec={"ports": ports, "selector": {"app": WEB}})
        if terms.secret is not None:
            data = dict(terms.secret)
            yield {**manifest("v1", "Secret", CERTIFICATE, namespace), "type": "kubernetes.io/tls", "data": data}


def cluster_objects(terms: Terms) -> list[Manifest]:
    """The classes, which all sets share: the controller's own and those of another one."""
    return [
        *(
            manifest("networking.k8s.io/v1", "IngressClass", name, spec={"controller": controller})
            for name, controller in (
                (terms.ingress_class, terms.ingress_controller),
                (FOREIGN, "example.org/another-controller"),
            )
        ),
        *(
            manifest("gateway.networking.k8s.io/v1", "GatewayClass", name, spec={"controllerName": controller})
            for name, controller in (
                (terms.gateway_class, terms.gateway_controller),
                (FOREIGN, "example.org/another-controller"),
            )
        ),
    ]


def manifest(
    version: str,
    kind: str,
    name: str,
    namespace: str = "",
    *,
    spec: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """An object; an empty namespace for one of the cluster."""
    metadata: Manifest = {"name": name}
    for key, value in (("namespace", namespace), ("labels", labels), ("annotations", annotations)):
        if value:
            metadata[key] = value if isinstance(value, str) else dict(value)
    about = {"apiVersion": version, "kind": kind, "metadata": metadata}
    return about if spec is None else {**about, "spec": dict(spec)}
