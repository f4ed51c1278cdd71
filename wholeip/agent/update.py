"""The target: what a node is to have; and the steps by which its kernel gets there.

The law: pure. A step that plans again only what was touched ends at the same target as one that plans everything, and
changes the same in the table; for what a Service has there depends on those alone that it shares an address with.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from wholeip.mappings.addresses import Network
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.plan import InUse, Plan
from wholeip.ruleset.ruleset import TABLE, Ruleset, make_ruleset


@dataclass(frozen=True, slots=True)
class DesiredTable:
    """What a node is to have: of two, the tables differ no more than plans and networks do."""

    plan: Plan
    networks: AbstractSet[Network] = frozenset()
    """Of the cluster."""
    table: str = TABLE

    def ruleset(self) -> Ruleset:
        """The whole table. Raises BadMapping."""
        return make_ruleset(self.plan.mappings, cluster=self.networks, table=self.table)

    def ruleset_of(self, services: AbstractSet[str], *, networks: bool) -> Ruleset:
        """What some Services have in it, with or without the networks. Raises BadMapping."""
        cluster = self.networks if networks else ()
        return make_ruleset(self.plan.mappings_of(services), cluster=cluster, table=self.table)


@dataclass(frozen=True)
class Update:
    """A way to a target."""

    before: DesiredTable | Ruleset | None
    """What the kernel has: a target that it was brought to, or what was read; None: no table."""
    target: DesiredTable
    services: AbstractSet[str] | None = None
    """Only they may differ, and nobody else shares an address with them before or after; None: anything may."""

    @cached_property
    def rulesets(self) -> tuple[Ruleset | None, Ruleset]:
        """Before and after, without the Services that keep what they have. Raises BadMapping."""
        before, after = self.before, self.target
        if not isinstance(before, DesiredTable):
            return before, after.ruleset()
        if self.services is None:
            return before.ruleset(), after.ruleset()
        # The state has another set whenever they may have changed; to compare thousands each time takes longer.
        moved = before.networks is not after.networks
        return before.ruleset_of(self.services, networks=moved), after.ruleset_of(self.services, networks=moved)

    def then(self, later: Update) -> Update:
        """Both as one."""
        either = None if self.services is None or later.services is None else self.services | later.services
        return Update(self.before, later.target, either)


def whole_update(current: Ruleset | None, state: ClusterState, in_use: InUse, table: str = TABLE) -> Update:
    """From whatever the kernel has, with everything planned from nothing."""
    return Update(current, DesiredTable(state.plan(in_use), state.networks, table))


def update_from(known: DesiredTable, state: ClusterState) -> Update:
    """From a target that the kernel has and that is no older than what the state has told to be touched before."""
    touched = state.take_touched()
    part = state.plan_of(touched, known.plan.in_use(touched))
    return Update(known, DesiredTable(known.plan.replacing(touched, part), state.networks, known.table), touched)
