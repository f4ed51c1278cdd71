"""Hint reading: what the pods of dnsproxy say that an operator should know about their names, for `dnsproxy status`.

The law: GET requests only, at most MOST_PODS pods side by side. Each pod is asked directly, and through the API server
where there is no route to pods. A pod that says nothing is a reason, never an absence. Tested in
tests/dnsproxy/install/run/test_hint_reading.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from dnsproxy.admin.pod_documents import MOST_PODS
from dnsproxy.admin.subjects_document import LARGEST, PATH, SubjectsDocument, parse_subjects
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.hostnames.public_addresses import merge_unknown
from dnsproxy.hostnames.wide_wildcards import merge_wide
from dnsproxy.install.report.hint_rows import Hints
from dnsproxy.install.run.steering_reading import Pod, ask_pod, list_slices, pods_of
from sidecar.admin.asking import NoAnswer, get
from sidecar.kubernetes.endpoint_slices import SERVICE_NAME
from sidecar.kubernetes.errors import ApiError, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.loop.side_by_side import read_each
from sidecar.values.endpoints import Endpoint
from sidecar.values.text import cut, one_line

_PROGRAM = "dnsproxy serve"
_ADMIN_PORT = 8081
_LONGEST = 300
"""Characters of what a pod says instead of its document."""


async def read_hints(client: ApiClient, own: ObjectRef, admin: Endpoint | None = None) -> Hints:
    """What the pods behind dnsproxy's own Service say, or the server at `admin` alone. Never raises."""
    if admin is not None:
        return _make_hints([await _read_directly(admin)])
    try:
        slices = await list_slices(client, own.namespace, f"{SERVICE_NAME}={own.name}")
    except NotFound:
        return Hints()
    except ApiError as error:
        return Hints(unknown=f"the pods of dnsproxy could not be listed: {cut(one_line(str(error)), _LONGEST)}")
    pods = {pod.name: pod for one in reversed(slices) for pod in pods_of(one, port=_ADMIN_PORT)}
    asked = [pod for _, pod in sorted(pods.items())[:MOST_PODS]]
    return _make_hints(await read_each(lambda pod: _read_pod(client, own.namespace, pod), asked))


def _make_hints(answers: Sequence[SubjectsDocument | str]) -> Hints:
    """The hints of all documents together; a text is why there is none."""
    documents = [one for one in answers if isinstance(one, SubjectsDocument)]
    reasons = [one for one in answers if isinstance(one, str)]
    return Hints(
        merge_unknown(one.unknown_addresses for one in documents),
        merge_wide(one.wide for one in documents),
        "" if documents else next(iter(reasons), ""),
    )


async def _read_pod(client: ApiClient, namespace: str, pod: Pod) -> SubjectsDocument | str:
    try:
        return parse_subjects(await ask_pod(client, namespace, pod, PATH, program=_PROGRAM, largest=LARGEST))
    except (NoAnswer, ApiError, ValueError) as error:
        return f"pod {pod.name}: {cut(one_line(str(error)), _LONGEST)}"


async def _read_directly(admin: Endpoint) -> SubjectsDocument | str:
    try:
        return parse_subjects((await get(admin, PATH, program=_PROGRAM, largest=LARGEST)).body)
    except (NoAnswer, ValueError) as error:
        return f"--from {admin}: {cut(one_line(str(error)), _LONGEST)}"
