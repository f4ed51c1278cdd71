"""Arguments: which files a container's CoreDNS reads, according to its command line.

The law: Kubernetes replaces `$(VARIABLES)` first; then flags are parsed as Go's package flag parses them (one dash or
two, `=` or the next word, the last value counts, the first word that is not a flag ends them). An unknown value raises
a ValueError that says why; nothing is guessed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Final

from sidecar.kubernetes.structs.workload import Container

DEFAULT_COREFILE: Final = "Corefile"
"""In the working directory (caddy.DefaultConfigFile in coremain/run.go)."""
DEFAULT_TEMPLATE: Final = "/etc/coredns/Corefile.base"
"""Of node-cache, under `-basecorefile` (kubernetes/dns, cmd/node-cache/main.go)."""
DEFAULT_STUB_DOMAINS: Final = "/etc/kube-dns"
"""The folder in which node-cache looks for stubDomains, under `-kubednscm`."""

# Boolean flags of coredns and node-cache, which take no value from the next word.
_SWITCHES: Final = frozenset(
    ["quiet", "version", "plugins", "setupinterface", "setupiptables", "setupebtables", "skipteardown", "h", "help"]
)
_SHELLS: Final = frozenset(["sh", "bash", "ash", "dash", "busybox", "env"])
# https://github.com/kubernetes/kubernetes third_party/forked/golang/expansion/expand.go
_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


def flags_of(container: Container) -> Mapping[str, str]:
    """The flags of its program, without dashes. Raises ValueError if a shell starts the program."""
    if container.program in _SHELLS:
        raise ValueError(f"container {container.name} starts a shell ({container.program}), and the shell the program")
    command = tuple(container.command or ())
    words = (command[1:] if command else ()) + tuple(container.args or ())
    known = {variable.name: variable.value for variable in container.env or () if variable.value is not None}
    return _cut(_expand(word, known) for word in words)


def corefile_path(container: Container) -> str:
    """The absolute path of the Corefile that CoreDNS reads. Raises ValueError if it cannot be known."""
    flags = flags_of(container)
    path = flags.get("conf") or DEFAULT_COREFILE
    if path == "stdin":
        raise ValueError(f"container {container.name} reads its Corefile from stdin")
    return _absolute(path, container)


def template_path(container: Container) -> str:
    """The absolute path of the template of node-cache's Corefile. Raises ValueError."""
    return _absolute(flags_of(container).get("basecorefile") or DEFAULT_TEMPLATE, container)


def stub_domains_path(container: Container) -> str:
    """The folder with the stubDomains of node-cache or kube-dns. Raises ValueError."""
    flags = flags_of(container)
    return _absolute(flags.get("kubednscm") or flags.get("config-dir") or DEFAULT_STUB_DOMAINS, container)


def local_addresses(container: Container) -> tuple[str, ...]:
    """The addresses on which node-cache listens, `-localip`. Raises ValueError."""
    return tuple(filter(None, flags_of(container).get("localip", "").split(",")))


def upstream_service(container: Container) -> str:
    """The name of the Service to which node-cache forwards, `-upstreamsvc`. Raises ValueError."""
    return flags_of(container).get("upstreamsvc") or "kube-dns"


def _absolute(path: str, container: Container) -> str:
    if "$(" in path:
        raise ValueError(f"container {container.name} has the path {path!a}, whose variable is not set in its manifest")
    # Without a workingDir the image decides; CoreDNS's own image has `/`.
    return posixpath.normpath(posixpath.join("/", container.working_dir or "", path))


def _expand(word: str, known: Mapping[str, str]) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return known.get(match[1], match[0])

    return _REFERENCE.sub(replace, word)


def _cut(words: Iterable[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word in ("-", "--"):
            break
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        if not equals:
            value = "true" if name in _SWITCHES else next(rest, "")
        flags[name] = value
    return flags
