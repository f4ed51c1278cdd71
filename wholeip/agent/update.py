"""The table that a node should have, and the updates that bring its kernel there.

The law: an update that plans only the touched Services results in the same table as an update that plans all of them,
and changes the same elements: a Service's elements depend only on the Services with which it shares an address.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from wholeip.mappings.addresses import Network
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.plan import InUse, Plan
from wholeip.ruleset.ruleset import TABLE, Ruleset, has_mappings, make_ruleset, ruleset_steps
from wholeip.ruleset.steps import at_once

BETWEEN: Final = 50
"""Each flow is compared with all of them, and while flows cannot be read, updates are collected without end."""


@dataclass(frozen=True, slots=True)
class DesiredTable:
    """The table that a node should have; two of them differ only where their plans or networks differ."""

    plan: Plan
    networks: AbstractSet[Network] = frozenset()
    """The networks of the cluster."""
    table: str = TABLE

    def ruleset(self) -> Ruleset:
        """The whole table. Raises BadMapping."""
        return at_once(self.steps())

    def steps(self) -> Generator[None, None, Ruleset]:
        """The same in steps of a mapping. Raises BadMapping."""
        mappings = (one for part in self.plan.parts.values() for one in part.mappings)
        return ruleset_steps(mappings, cluster=self.networks, table=self.table)

    def ruleset_of(self, services: AbstractSet[str], *, networks: bool) -> Ruleset:
        """The elements of some Services, with or without the networks. Raises BadMapping."""
        cluster = self.networks if networks else ()
        return make_ruleset(self.plan.mappings_of(services), cluster=cluster, table=self.table)


@dataclass(frozen=True)
class Update:
    """A change of the kernel's table."""

    before: DesiredTable | Ruleset | None
    """What the kernel has: the table of the last update, or the ruleset that was read; None: no table."""
    desired: DesiredTable
    services: AbstractSet[str] | None = None
    """Only these may differ, and no other Service shares an address with them before or after; None: any may."""
    gap: bool = False
    """Whether the kernel may have had another table for some time, so that any pod may have begun flows without it."""
    between: tuple[Ruleset | DesiredTable, ...] = ()
    """What we gave the kernel meanwhile, if this is several updates: the last with mappings that came and went."""
    restored: frozenset[str] = frozenset()
    """The pods that got their address in an update after the first one: they may have had it before, and lost it."""

    @cached_property
    def rulesets(self) -> tuple[Ruleset | None, Ruleset]:
        """The rulesets before and after, without the Services that do not change. Raises BadMapping."""
        return at_once(self.steps())

    def steps(self) -> Generator[None, None, tuple[Ruleset | None, Ruleset]]:
        """The same in steps of a mapping, if any may change, and else in one. Raises BadMapping."""
        before, after = self.before, self.desired
        if not isinstance(before, DesiredTable):
            return before, (yield from after.steps())
        if self.services is None:
            return (yield from before.steps()), (yield from after.steps())
        yield
        # The state makes a new set when the networks may have changed; comparing thousands each time takes longer.
        moved = before.networks is not after.networks
        return before.ruleset_of(self.services, networks=moved), after.ruleset_of(self.services, networks=moved)

    @property
    def new_egress(self) -> dict[str, str]:
        """The addresses, by pod of this node, that flows which began before the update may lack. Raises BadMapping."""
        return at_once(self.egress_steps(*self.rulesets))

    def egress_steps(self, before: Ruleset | None, after: Ruleset) -> Generator[None, None, dict[str, str]]:
        """The same from the rulesets, in steps of a pod."""
        elements = {} if before is None or self.gap else before.elements
        found = {}
        for version in ("v4", "v6"):
            here, egress = elements.get(f"here_{version}", {}), elements.get(f"egress_{version}", {})
            for pod, address in after.elements[f"egress_{version}"].items():
                is_old = pod in here and egress.get(pod) == address and pod not in self.restored
                if pod in after.elements[f"here_{version}"] and not is_old:
                    found[pod] = address
                yield
        return found

    def then(self, later: Update) -> Update:
        """Both updates as one."""
        either = None if self.services is None or later.services is None else self.services | later.services
        between = [*self.between]
        for one in (*self._between(later), *later.between):
            # A Service that comes and goes all the time must not add to it each time.
            if one not in between:
                between.append(one)
        restored = self.restored | later.restored | (frozenset() if later.gap else later.new_egress.keys())
        gap = self.gap or later.gap
        return Update(self.before, later.desired, either, gap=gap, between=tuple(between[-BETWEEN:]), restored=restored)

    def since(self, known: DesiredTable) -> Update:
        """The same from the table that we gave the kernel before another program changed it.

        Flows of a mapping that both have taken away would show in neither.
        """
        changed = () if self.before is None else (self.before,)
        return Update(known, self.desired, gap=True, between=changed)

    def _between(self, later: Update) -> Iterator[Ruleset | DesiredTable]:
        """What we gave the kernel between the updates, and it may have neither before nor after both."""
        services = later.services if self.services is None else self.services
        if self.services is not None and later.services is not None:
            services = self.services & later.services
        if services is None:
            yield self.desired  # a ruleset takes long to make, and few updates are of all Services
        elif has_mappings(found := self.desired.ruleset_of(services, networks=False)):
            yield found

    def between_steps(self) -> Generator[None, None, list[Ruleset]]:
        """The rulesets of `between`, in steps of a mapping. Raises BadMapping."""
        found: list[Ruleset] = []
        for one in self.between:
            ruleset = one if isinstance(one, Ruleset) else (yield from one.steps())
            found.append(ruleset)
        return found


def whole_update(current: Ruleset | None, state: ClusterState, in_use: InUse, table: str = TABLE) -> Update:
    """The update from the kernel's ruleset, with all Services planned."""
    return Update(current, DesiredTable(state.plan(in_use), state.networks, table), gap=True)


def update_from(known: DesiredTable, state: ClusterState) -> Update:
    """The update from the table that the kernel has, with the touched Services planned.

    `known` must include all Services that the state reported as touched before.
    """
    touched = state.take_touched()
    part = state.plan_of(touched, known.plan.in_use(touched))
    return Update(known, DesiredTable(known.plan.replacing(touched, part), state.networks, known.table), touched)
