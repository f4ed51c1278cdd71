"""Controller settings: the program of a controller, and what its workload and files say about the PROXY protocol.

The law: pure. Only the keys that a judgement needs are kept, and a controller's default is not written in: an absent
key is absent. Traefik has three ways of configuration and uses the first that it finds: file, arguments, variables
(https://github.com/traefik/traefik cmd/traefik/traefik.go, v3.7.9, read 2026-11-22). Tested in
tests/dnsproxy/doctor/collect/test_controller_settings.py.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.paths import CONTROLLERS, NAME_LABELS
from sidecar.kubernetes.structs.workload import Container

CONFIG_MAP_KEYS: Final = ("use-proxy-protocol", "proxy-real-ip-cidr", "proxy-protocol", "use-forwarded-headers")
ENTRY_POINTS: Final = "entrypoints"
WITH_HEADER: Final = "entrypoints-with-proxy-protocol"
TRUSTED: Final = "trusted-ips"
SKIPPER: Final = "skipper"
SKIPPER_FLAGS: Final = ("enable-proxy-protocol", "proxy-allow-cidrs", "proxy-deny-cidrs", "proxy-skip-cidrs")
CONTOUR_FLAG: Final = "use-proxy-protocol"
TRAEFIK_FILES: Final = ("/etc/traefik/traefik.yaml", "/etc/traefik/traefik.yml", "/etc/traefik/traefik.toml")
_IMAGES: Final = {
    "haproxytech/kubernetes-ingress": "kubernetes-ingress",
    "jcmoraisjr/haproxy-ingress": "haproxy-ingress",
    "ingress-nginx/controller": "ingress-nginx",
    "nginx-ingress-controller": "ingress-nginx",
    "nginx/nginx-ingress": "nginx-ingress",
    "nginx-ic/nginx-plus-ingress": "nginx-ingress",
    "projectcontour/contour": "contour",
    "skipper": SKIPPER,
    "traefik": "traefik",
    "mirrored-library-traefik": "traefik",
}
"""From the end of an image's repository to the program; the names are those of judge/paths.py."""
_CILIUM_GATEWAY: Final = "io.cilium/"
"""GatewayClasses of Cilium; its IngressClass has `cilium.io/`."""
_PROGRAMS: Final = frozenset(names[0] for names in CONTROLLERS.values())
_CONFIG_MAP: Final = re.compile(r"--?(?:config-?map|nginx-configmaps)[= ](?:([^/]+)/)?(.+)")
_NAMESPACE: Final = re.compile(r"\$\((?:POD_)?NAMESPACE\)")
_DEEPEST: Final = 8
"""Dots in the name of a flag; Traefik's own have five at most."""
_EVERYONE: Final = "0.0.0.0/0,::/0"


def program_of(service: Service, controllers: Iterable[str], container: Container | None) -> str:
    """The program of a controller: by its image, the classes that it serves, or its Service's labels."""
    repository = ((container.image or "") if container else "").partition("@")[0]
    repository = re.sub(r":[^/]*$", "", repository)
    for end, program in _IMAGES.items():
        if f"/{repository}".endswith(f"/{end}"):
            return program
    for controller in controllers:
        for start, names in (*CONTROLLERS.items(), (_CILIUM_GATEWAY, ("cilium",))):
            if controller.startswith(start):
                return names[0]
    labels = (service.labels.get(label, "") for label in NAME_LABELS)
    return next((label for label in labels if label in _PROGRAMS), "")


def words_of(container: Container) -> tuple[str, ...]:
    """The command line."""
    return (*(container.command or ()), *(container.args or ()))


def config_map_of(words: Iterable[str], namespace: str) -> tuple[str, str] | None:
    """Namespace and name of the ConfigMap in `--configmap=NAMESPACE/NAME`, or `-nginx-configmaps=` of F5."""
    for word in words:
        found = _CONFIG_MAP.fullmatch(word)
        if found is not None:
            where = _NAMESPACE.sub(namespace, found[1] or namespace)
            name = _NAMESPACE.sub(namespace, found[2])
            return None if "$(" in where + name else (where, name)
    return None


def traefik_file_of(container: Container) -> tuple[str, ...]:
    """The paths at which Traefik looks for its configuration: one if it is named."""
    words = words_of(container)
    named = [value for name, value in (*_pairs(words), *_variables(container)) if name == "configfile"]
    return tuple(named[:1]) or TRAEFIK_FILES


def settings_of_traefik(container: Container, text: str | None = None) -> dict[str, str]:
    """Traefik's entry points, those that take the header, and from which networks they trust it.

    `text`: its configuration file, which overrides arguments and variables. Empty if no entry point is named.
    """
    if text is not None:
        return _summarize(_flatten(_parse_file(text)))
    pairs = tuple(_pairs(words_of(container)))
    return _summarize(pairs or tuple(_variables(container)))


def settings_of_skipper(container: Container) -> dict[str, str]:
    """The flags of skipper about the header."""
    found = dict(_pairs(words_of(container)))
    return {flag: found[flag] for flag in SKIPPER_FLAGS if flag in found}


def _pairs(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Flags as name and value: `--a.b=c`, `--a.b c` and `--a.b`."""
    name = ""
    for word in words:
        if word.startswith("-"):
            if name:
                yield name, "true"
            name, equals, value = word.lstrip("-").partition("=")
            name = name.lower()
            if equals:
                yield name, value
                name = ""
        elif name:
            yield name, word
            name = ""
    if name:
        yield name, "true"


def _variables(container: Container) -> Iterator[tuple[str, str]]:
    for variable in container.env or ():
        if variable.name.startswith("TRAEFIK_"):
            yield variable.name.removeprefix("TRAEFIK_").lower().replace("_", "."), variable.value or ""


def _flatten(found: object, above: str = "") -> tuple[tuple[str, str], ...]:
    """The entry points of a file as pairs of a flag's name and value."""
    if not isinstance(found, Mapping):
        words = found if isinstance(found, list) else [found]
        return ((above, ",".join(str(one).lower() for one in words if one is not None)),)
    if above.count(".") > _DEEPEST:
        # In YAML an object may contain itself.
        return ()
    pairs = [(above, "true")] if above else []
    for key, value in found.items():
        name = f"{above}.{key}".removeprefix(".").lower()
        if name.partition(".")[0] == ENTRY_POINTS:
            pairs += _flatten(value, name)
    return tuple(pairs)


def _parse_file(text: str) -> Any:
    """A configuration in YAML or TOML; None if it is neither."""
    import yaml  # noqa: PLC0415  # few clusters need it

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        pass
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _summarize(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The settings from pairs such as `entrypoints.web.proxyprotocol.trustedips` and a list of networks."""
    names: dict[str, bool] = {}
    trusted: dict[str, None] = {}
    for flag, value in pairs:
        parts = flag.split(".")
        if len(parts) < 2 or parts[0] != ENTRY_POINTS or not parts[1]:  # noqa: PLR2004
            continue
        names.setdefault(parts[1], False)
        setting = ".".join(parts[2:])
        if setting == "proxyprotocol.insecure" and value.lower() == "true":
            names[parts[1]], trusted[_EVERYONE] = True, None
        elif setting == "proxyprotocol.trustedips" and value:
            names[parts[1]], trusted[value] = True, None
    with_header = ",".join(sorted(name for name, on in names.items() if on))
    found = {ENTRY_POINTS: ",".join(sorted(names)), WITH_HEADER: with_header, TRUSTED: ",".join(trusted)}
    return {key: value for key, value in found.items() if value}
