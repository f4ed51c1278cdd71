"""Service: the queries of all pods of a Service, merged by time.

The law: one pod that fails does not end the others: it is noted once, and asked again. Pods that come are listened to,
those that go are forgotten. Only a missing right, and a Service that is not there, end the command.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn

import msgspec
import trio

from dnsproxy.tap.event import Dropped, parse_event
from dnsproxy.tap.filters import TapFilter, format_filter
from dnsproxy.tap_command.merging import Merging
from dnsproxy.tap_command.pod_stream import is_missing_right, read_pod, reason_of
from dnsproxy.tap_command.request import ServicePods
from dnsproxy.tap_command.service_pods import MOST_PODS, pods_of
from dnsproxy.tap_command.viewer import Viewer
from sidecar.kubernetes.cluster import could_not_ask
from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.endpoint_slices import SERVICE_NAME, EndpointSlice
from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.one_shot import get_object, list_all
from sidecar.kubernetes.structs.network import Service
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import message_of

FIRST_PAUSE: Final = 1.0
"""Seconds before a pod is asked again; doubles up to LONGEST_PAUSE."""
LONGEST_PAUSE: Final = 15.0
_TURN: Final = 0.1
"""Seconds between two looks at the events that wait."""


class ServiceWatch:
    """Listens to the pods of one Service."""

    def __init__(self, pods: ServicePods, wanted: TapFilter, viewer: Viewer) -> None:
        self._place = pods
        self._fields = format_filter(wanted)
        self._viewer = viewer
        self._merging = Merging()
        self._slices: dict[str, EndpointSlice] = {}
        self._followed: dict[str, trio.CancelScope] = {}
        self._noted: dict[str, str] = {}
        self._was_heard = False

    @property
    def unheard(self) -> str:
        """Why no pod was ever listened to, as a message; empty if one was."""
        if self._was_heard:
            return ""
        why = next(
            (f"pod {pod}: {why}" for pod, why in self._noted.items() if pod), self._noted.get("", "no answer yet")
        )
        return f"--service {self._place.ref}: {why}"

    async def run(self) -> NoReturn:
        """Show the queries until cancelled. Raises StartError with status 3."""
        place = self._place
        cluster = await find_cluster(kubeconfig=place.kubeconfig, context=place.context, status=ExitStatus.UNKNOWN)
        async with ApiClient(cluster) as client:
            await self.watch(client)

    async def watch(self, client: ApiClient) -> NoReturn:
        """The same, with a client of the cluster."""
        await self._look(client)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._show_in_turn)
                listen = partial(self._listen, client, nursery)
                await follow(client, self._slices_of(), on_change=partial(self._change, listen), on_synced=listen)
        finally:
            for event in self._merging.take_all():
                self._viewer.show(event)

    async def _look(self, client: ApiClient) -> None:
        """Read once what is followed then: a follower would ask again and again where the user must act."""
        ref = self._place.ref
        try:
            with suppress(Forbidden, Garbled):
                await get_object(client, f"/api/v1/namespaces/{ref.namespace}/services/{ref.name}", Service)
            await list_all(client, self._slices_of())
        except NotFound:
            raise StartError(f"--service {ref}: there is no such Service", status=ExitStatus.UNKNOWN) from None
        except ApiError as error:
            said = could_not_ask(client.cluster, error)
            raise StartError(f"--service {ref}: {said}", status=ExitStatus.UNKNOWN) from None

    def _slices_of(self) -> Collection[EndpointSlice]:
        ref = self._place.ref
        path = f"/apis/discovery.k8s.io/v1/namespaces/{ref.namespace}/endpointslices"
        return Collection("EndpointSlice", path, EndpointSlice, label_selector=f"{SERVICE_NAME}={ref.name}")

    def _change(self, listen: Callable[[], None], changes: Changes[EndpointSlice]) -> None:
        for key, value in changes.items():
            if isinstance(value, EndpointSlice):
                self._slices[key] = value
            else:
                self._slices.pop(key, None)
        listen()

    def _listen(self, client: ApiClient, nursery: trio.Nursery) -> None:
        """Listen to the pods of now, and to no other."""
        pods = pods_of(self._slices.values(), namespace=self._place.ref.namespace)
        if len(pods) > MOST_PODS:
            self._note("", f"only {MOST_PODS} of {len(pods)} pods are shown")
        elif not pods:
            self._note("", f"no pod of {self._place.ref} is ready")
        wanted = pods[:MOST_PODS]
        for pod in self._followed.keys() - set(wanted):
            self._followed.pop(pod).cancel()
        for pod in wanted:
            if pod not in self._followed:
                self._followed[pod] = scope = trio.CancelScope()
                nursery.start_soon(self._follow_pod, client, pod, scope)

    async def _follow_pod(self, client: ApiClient, pod: str, scope: trio.CancelScope) -> None:
        pause = FIRST_PAUSE
        with scope:
            while True:
                begun = trio.current_time()
                self._note(pod, await self._read(client, pod))
                if trio.current_time() - begun > LONGEST_PAUSE:
                    # It restarts, or its connection was lost: no reason to wait long.
                    pause = FIRST_PAUSE
                await trio.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 2)

    async def _read(self, client: ApiClient, pod: str) -> str:
        """Take what a pod says, until it ends; returns why. Raises StartError if no pod can be heard."""
        ref = self._place.ref
        try:
            await read_pod(
                client,
                namespace=ref.namespace,
                pod=pod,
                port=self._place.port,
                fields=self._fields,
                take=partial(self._take, pod),
            )
        except ApiError as error:
            if is_missing_right(error):
                right = f"the right to get pods/proxy in the namespace {ref.namespace} is missing"
                raise StartError(f"--service {ref}: {right}: {error}", status=ExitStatus.UNKNOWN) from None
            return reason_of(error)
        except ValueError as error:
            return f"the answer is not that of a `dnsproxy serve` ({message_of(error)})"
        return "its server ended the answer"

    def _take(self, pod: str, line: bytes) -> None:
        self._was_heard = True
        self._noted.pop(pod, None)
        if not line:
            return
        one = parse_event(line)
        if isinstance(one, Dropped):
            self._viewer.note_dropped(one, pod=pod)
        else:
            self._merging.add(msgspec.structs.replace(one, pod=pod), now=trio.current_time())

    def _note(self, pod: str, why: str) -> None:
        """Note what is wrong with a pod, or without one with the Service, once."""
        if self._noted.get(pod) != why:
            self._noted[pod] = why
            self._viewer.note(f"pod {pod}: {why}" if pod else why)

    async def _show_in_turn(self) -> NoReturn:
        while True:
            await trio.sleep(_TURN)
            for event in self._merging.take(now=trio.current_time()):
                self._viewer.show(event)
