"""What a container's command line starts of ours, and whether that writes into the cluster's DNS. Pure.

The law: shells, wrappers and variables are read as far as the pod's spec tells; a line that starts one of our programs
in a way that this cannot read starts nothing here.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.kubernetes.structs.workload import Container

OPERATE: Final = "operate"
INSTALL: Final = "install"
METHOD: Final = "DNSPROXY_METHOD"
"""The variable of `--method`."""
_PROGRAMS: Final = frozenset(["dnsproxy", "kubectl-switchback", "switchback.pyz"])
_OF_KUBECTL: Final = "switchback"
_VARIABLE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_BETWEEN: Final = frozenset(";&|()<>\n")
"""What separates the commands of a shell, and what stands around their files."""


@dataclass(frozen=True, slots=True)
class Started:
    """A command of ours that a container starts."""

    command: str
    """OPERATE or INSTALL."""
    writes: bool
    """False if it prints, or works on a file."""


def started_by(container: Container, variables: Mapping[str, str] | None = None) -> Iterator[Started]:
    """The commands that would write a stanza, or print one; `variables`: those that come from ConfigMaps."""
    own = {one.name: one.value or "" for one in container.env or ()}
    known = {**(variables or {}), **own}
    for line in _commands(_expanded(container, known)):
        if line and (command := next((word for word in line if not word.startswith("-")), "")) in (OPERATE, INSTALL):
            yield Started(command, not _leaves_the_dns_alone(line, known.get(METHOD, "")))


def config_maps_of(container: Container) -> tuple[str, ...]:
    """The names of the ConfigMaps that become variables of the container."""
    refs = [one.get("configMapRef") for one in container.env_from or ()]
    return tuple(str(ref["name"]) for ref in refs if isinstance(ref, dict) and ref.get("name"))


def _expanded(container: Container, variables: Mapping[str, str]) -> list[str]:
    """Kubernetes replaces $(NAME) by the variable, if there is one."""
    words = (*(container.command or ()), *(container.args or ()))
    return [_VARIABLE.sub(lambda found: variables.get(found[1], found[0]), word) for word in words]


def _commands(words: Sequence[str]) -> Iterator[list[str]]:
    """What follows the name of one of our programs, for each simple command: of the container, or of its shell."""
    yield _after_program(words)
    for word in words:
        if not word.isspace() and len(word.split()) > 1:
            for command in _split(word):
                yield from _commands(command)


def _split(script: str) -> Iterator[list[str]]:
    """The simple commands of a shell's script."""
    lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    try:
        for token in lexer:
            if _BETWEEN.issuperset(token):
                yield command
                command = []
            else:
                command.append(token)
    except ValueError:  # a quotation without its end
        command += script.split()
    yield command


def _after_program(words: Iterable[str]) -> list[str]:
    """The words after the name of one of our programs; none if there is no such name."""
    rest = list(words)
    while rest:
        name = posixpath.basename(rest.pop(0))
        if name in _PROGRAMS:
            return rest
        if name == "kubectl" and rest[:1] == [_OF_KUBECTL]:
            return rest[1:]
    return []


def _leaves_the_dns_alone(line: Sequence[str], method: str) -> bool:
    """Whether it prints, or works on a file. A flag is stronger than its variable, and the last one counts."""
    for number, word in enumerate(line):
        name, equals, value = word.partition("=")
        if name == "--method":
            method = value if equals else next(iter(line[number + 1 :]), "")
        elif name in ("--file", "--dry-run"):
            return True
    return method == "print"
