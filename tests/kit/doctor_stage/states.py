"""States: a cluster as a value, and the verdict that the doctor must give on it.

The law: a state holds everything in which it differs from the base cluster; two states share nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import pytest

from tests.kit.doctor_stage.objects import KUBE_PROXY, Object
from tests.kit.doctor_stage.servers import Fate, Server

HOST: Final = "app.example.org"
"""The host that most states ask about. Every controller of the stage serves `*.example.org`."""
RELAY: Final = "kubectl apply -k deploy"
"""The beginning of the advice line that deploys the relay."""
RELAY_STEP: Final = "a relay that adds the header"
"""The text of the step with that line."""
NO_RELAY: Final = (RELAY, RELAY_STEP, "dnsproxy install")
"""No advice may hold one of these where the relay does not help."""

Records = Mapping[str, tuple[str, ...]]
"""From a hostname or a wildcard to addresses, or to the one name of a CNAME record."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The verdict."""

    status: int
    wrong: frozenset[str] = frozenset()
    """The ids of all findings that are problems or warnings."""
    told: tuple[str, ...] = ()
    """Ids that the findings must have, whatever their severity."""
    untold: tuple[str, ...] = ()
    """Ids that no finding may have."""
    advice: tuple[str, ...] = ()
    """Parts of the advice; each must be in some line, in this order."""
    no_advice: tuple[str, ...] = ()
    """Parts that no line of the advice may hold."""
    unseen: tuple[str, ...] = ()
    """Parts of what the doctor reports as not seen."""
    evidence: tuple[str, ...] = ()
    """Parts of the evidence of the findings that are problems or warnings."""
    said: tuple[str, ...] = ()
    """Parts of the texts of findings, or their hosts; each must be in some finding."""
    unsaid: tuple[str, ...] = ()
    """Parts that no text of a finding may hold."""


@dataclass(frozen=True, kw_only=True)
class State:
    """A cluster, its network as a pod sees it, and the expected verdict."""

    name: str
    """A sentence: the id of the test."""
    objects: tuple[Object, ...]
    """The objects of the API server; one with the path of a base object replaces it."""
    at: Mapping[str, Server | Fate]
    """What a pod meets at `ADDRESS` (ports 80 and 443) or at `ADDRESS:PORT`; other ports of it refuse connections."""
    dns: Records
    """What the cluster's DNS answers; other names do not exist."""
    expected: Expected
    public: Records | None = None
    """What public DNS answers; None: the same as the cluster's."""
    host: str = HOST
    """The host to ask about; empty: all hosts of the cluster."""
    arguments: tuple[str, ...] = ("--probe",)
    plane: tuple[Object, ...] = (KUBE_PROXY,)
    """The programs that carry the connections to Services."""
    pod_has_ipv6: bool = False
    """Whether the pod has an address and a route of IPv6."""
    corefile: str = ""
    """The Corefile of the cluster's DNS instead of one for `dns`."""
    dnsproxy: tuple[str, ...] = ()
    """Flags of a dnsproxy that runs at the address of its Service; empty: none runs."""
    denied: tuple[str, ...] = ()
    """The resources that the doctor's account may not read; empty: an administrator asks."""
    saved: tuple[str, ...] | None = None
    """Arguments of an earlier doctor that saved its facts; the one that judges has only their file. None: no file."""


@dataclass(frozen=True)
class Verdict:
    """The doctor's answer."""

    status: int
    document: Mapping[str, Any] = field(default_factory=dict)
    stderr: str = ""

    @property
    def wrong(self) -> frozenset[str]:
        """The ids of problems and warnings."""
        return frozenset(one["id"] for one in self._wrong)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all findings."""
        return tuple(one["id"] for one in self.document.get("findings", ()))

    @property
    def unseen(self) -> tuple[str, ...]:
        """What was not seen, and why."""
        return tuple(f"{one['what']}: {one.get('why', '')}" for one in self.document.get("unseen", ()))

    @property
    def advice(self) -> tuple[str, ...]:
        """All steps: the text of each, then its lines to type."""
        sources = [*self.document.get("findings", ()), *self.document.get("unseen", ())]
        steps = [step for one in sources for step in one.get("steps", ())]
        return tuple(line for step in steps for line in (step["text"], *step.get("lines", ())))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all findings, each with its hosts."""
        found = self.document.get("findings", ())
        return tuple(" ".join((one["text"], *one.get("hosts", ()))) for one in found)

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(line for one in self._wrong for line in one.get("evidence", ()))

    @property
    def _wrong(self) -> list[dict[str, Any]]:
        return [one for one in self.document.get("findings", ()) if one["severity"] in ("problem", "warning")]


def healthy(*told: str, **more: Any) -> Expected:
    """Exit status 0 without a problem or warning; `told` are ids that the findings must have."""
    return Expected(status=0, told=told, **more)


def wrong(*ids: str, **more: Any) -> Expected:
    """Exit status 1 with these problems and warnings."""
    return Expected(status=1, wrong=frozenset(ids), **more)


def not_known(*unseen: str, **more: Any) -> Expected:
    """Exit status 3: no fault was seen, and these parts are in what was not seen."""
    return Expected(status=3, unseen=unseen, **more)


def differences(verdict: Verdict, expected: Expected) -> list[str]:
    """In what a verdict differs from the expected one; empty if it does not."""
    found = []
    if verdict.status != expected.status:
        found.append(f"status {verdict.status}, not {expected.status} {verdict.stderr}".rstrip())
    if verdict.wrong != expected.wrong:
        found.append(f"wrong: {sorted(verdict.wrong)}, not {sorted(expected.wrong)}")
    found += [f"no finding {one}" for one in expected.told if one not in verdict.ids]
    found += [f"a finding {one}" for one in expected.untold if one in verdict.ids]
    found += _missing("advice", expected.advice, verdict.advice)
    found += _unordered(expected.advice, verdict.advice)
    found += _missing("unseen", expected.unseen, verdict.unseen)
    found += _missing("evidence", expected.evidence, verdict.evidence)
    found += _missing("text", expected.said, verdict.texts)
    found += [f"text: {line}" for one in expected.unsaid for line in verdict.texts if one in line]
    found += [f"advice: {line}" for one in expected.no_advice for line in verdict.advice if one in line]
    return found


def _missing(kind: str, wanted: tuple[str, ...], lines: tuple[str, ...]) -> list[str]:
    return [f"no {kind} with {one!r} in {list(lines)}" for one in wanted if not any(one in line for line in lines)]


def _unordered(wanted: tuple[str, ...], lines: tuple[str, ...]) -> list[str]:
    """The parts that come before the part that they should follow."""
    first = {part: next((at for at, line in enumerate(lines) if part in line), -1) for part in wanted}
    return [f"advice: {later!r} before {one!r}" for one, later in pairwise(wanted) if -1 < first[later] < first[one]]


def table(*states: State) -> pytest.MarkDecorator:
    """The parametrisation of a test with states."""
    return pytest.mark.parametrize("state", states, ids=lambda state: state.name)
