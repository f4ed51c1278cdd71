"""Follows what gives rights: the namespaces whose annotations count, and the IngressClasses of Ingresses.

The law: a thin shell over hostnames/rights.py. Rights of a snapshot count until all of a kind was read, and the last
known ones through every outage. After a change, the names that it affects are judged again, in slices; the first sync
is over when that was done, so that no name is dropped or answered in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Final

import msgspec
import structlog
import trio

from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.rights import ALLOWED, LABEL, Annotations, Rights
from dnsproxy.sources.ingress import INGRESS_CLASSES, IngressClass
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace
from sidecar.loop.slices import in_slices


class LabelledNamespace(msgspec.Struct, frozen=True, gc=False):
    """A Namespace of which only the name counts: the API server compares the label."""

    metadata: ObjectMeta


NAMESPACES: Final = Collection(
    "labelled Namespace",
    "/api/v1/namespaces",
    LabelledNamespace,
    label_selector=f"{LABEL}={ALLOWED}",
    optional=True,
)
"""If RBAC hides them, no annotation counts. RBAC: list and watch namespaces, which a Role cannot allow."""


_TOGETHER: Final = 50
"""Hostnames that are judged again together."""


def reads_namespaces(rights: Rights | None) -> bool:
    """Whether the namespaces matter."""
    return rights is not None and rights.annotations is Annotations.LABELLED


class RightsFollower:
    """Keeps the rights of a registry; run() must be running.

    `on_affected` gets the hostnames to judge again, `on_synced` is called when the rights were applied after they were
    read. `awaits_classes`: whether the Ingress source will call set_classes(); `follows_classes`: whether it does not,
    and IngressClasses are followed here, for the Ingresses of another source.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        awaits_classes: bool,
        follows_classes: bool = False,
        on_affected: Callable[[frozenset[str]], None],
        on_synced: Callable[[], None] = lambda: None,
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        self.status = FollowerStatus(NAMESPACES.kind)
        self._registry = registry
        self._follows = reads_namespaces(registry.rights)
        self._follows_classes = follows_classes
        self._awaits_classes = awaits_classes or follows_classes
        self._class_status = FollowerStatus(INGRESS_CLASSES.kind)
        self._classes: dict[str, None] = {}
        self._on_affected = on_affected
        self._on_synced = on_synced
        self._pace = pace
        self._names: dict[str, None] = {}
        self._applied = registry.rights
        """The rights by which every name was judged."""
        self._changed = trio.Event()
        self._changed.set()
        self._warned = False

    @property
    def statuses(self) -> list[FollowerStatus]:
        """The status of each watch that there is."""
        return [*([self.status] if self._follows else []), *([self._class_status] if self._follows_classes else [])]

    @property
    def synced(self) -> bool:
        """Whether everything was read, and every name was judged by it."""
        return (
            self._applied == self._registry.rights
            and not self._awaits_classes
            and (self.status.synced or not self._follows)
        )

    @property
    def consistent(self) -> bool:
        """Whether the rights match the cluster, and nothing is unconfirmed."""
        return self.synced and not any(one.doubted for one in self.statuses)

    @property
    def known_classes(self) -> int:
        """How many IngressClasses there were in an earlier run."""
        return len(self._registry.rights.classes or ()) if self._registry.rights is not None else 0

    def set_classes(self, names: frozenset[str], nginx: frozenset[str] = frozenset()) -> None:
        """Set the names of all IngressClasses, and of those of ingress-nginx."""
        self._awaits_classes = False
        self._set(classes=names, nginx_classes=nginx)

    async def run(self, client: ApiClient) -> None:
        """Follow until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._apply)
            if self._follows:
                nursery.start_soon(self._follow, client)
            if self._follows_classes:
                nursery.start_soon(self._follow_classes, client)

    async def _follow(self, client: ApiClient) -> None:
        rights = self._registry.rights
        await follow(
            client,
            NAMESPACES,
            on_change=self._take,
            on_synced=self._set_namespaces,
            on_status=self._warn_if_hidden,
            status=self.status,
            expected=len(rights.namespaces or ()) if rights is not None else 0,
            pace=self._pace,
        )

    async def _follow_classes(self, client: ApiClient) -> None:
        await follow(
            client,
            INGRESS_CLASSES,
            on_change=self._take_classes,
            on_synced=self._report_classes,
            status=self._class_status,
            expected=self.known_classes,
            pace=self._pace,
        )

    def _take_classes(self, changes: Mapping[str, IngressClass | Unreadable | None]) -> None:
        _note_names(self._classes, changes)
        if self._class_status.synced:
            self._report_classes()

    def _report_classes(self) -> None:
        self.set_classes(frozenset(self._classes))

    def _warn_if_hidden(self) -> None:
        """Once, because nothing else says why an annotation does not count in a namespace that has the label."""
        never_read = self.status.synced and self.status.contact is None
        if never_read and self.status.absent and not self._warned:
            self._warned = True
            structlog.get_logger("dnsproxy.rights").warning(
                "no annotation adds a hostname or chooses a target: the namespaces cannot be listed; "
                "with --annotations all, those of every namespace count",
                error=str(self.status.error),
            )

    def _take(self, changes: Mapping[str, LabelledNamespace | Unreadable | None]) -> None:
        _note_names(self._names, changes)
        if self.status.synced:
            self._set_namespaces()

    def _set_namespaces(self) -> None:
        self._set(namespaces=frozenset(self._names))

    def _set(self, **changed: frozenset[str]) -> None:
        self._registry.set_rights(**changed)
        self._changed.set()

    async def _apply(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            before, after = self._applied, self._registry.rights
            if before != after:
                await in_slices(self._judge_again(before, after))
                self._applied = after
            if self.synced:
                self._on_synced()

    def _judge_again(self, before: Rights | None, after: Rights | None) -> Generator[None, None, None]:
        registry = self._registry
        affected: list[str] = []
        for hostname in registry.store.names():
            claims = registry.store.claims_for(hostname)
            if any(_denial(before, claim, registry) != _denial(after, claim, registry) for claim in claims):
                affected.append(hostname)
            if len(affected) == _TOGETHER:
                self._on_affected(frozenset(affected))
                affected.clear()
            yield
        if affected:
            self._on_affected(frozenset(affected))


def _note_names(names: dict[str, None], changes: Mapping[str, object]) -> None:
    for name, one in changes.items():
        if one is None:
            names.pop(name, None)
        else:
            names[name] = None


def _denial(rights: Rights | None, claim: Claim, registry: Registry) -> str | None:
    return rights.denial(claim, targets=registry.targets) if rights is not None else None
