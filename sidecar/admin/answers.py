"""Answers of the admin server as values: from a request to a resource to an answer.

The law: pure. This module decides which path and method gives which answer; sockets, deadlines and framing are in
server.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

METHODS = ("GET", "HEAD")
SCHEMES: Final = frozenset({b"http", b"https"})
MAXIMUM_FIELDS = 16
"""Fields in the query of a request target."""

TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
JSON = "application/json"
NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, without the framing."""

    status: int
    body: bytes | Iterator[bytes] | AsyncIterator[bytes]
    """An iterator is sent piece by piece, for a body too large to make at once. An empty piece lets other tasks run.
    An asynchronous one is a live answer (live_answers.py): lines are sent as they come, until they end."""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


Route = Callable[[Mapping[str, str]], Answer | Awaitable[Answer]]
"""From the fields of the request's query to the answer of a resource."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the program can do its work now; the reason is one line of text."""

    ready: bool
    reason: str
    more: Sequence[str] = ()
    """Further lines below the reason, for people."""


def path_of(target: bytes) -> str:
    """The path of a request target in origin or absolute form (RFC 9112 section 3.2), without the query."""
    path = target.partition(b"?")[0]
    if path.startswith((b"http://", b"https://")):
        path = b"/" + path.split(b"/", 3)[3] if path.count(b"/") > 2 else b"/"  # noqa: PLR2004  # the two of the scheme
    return path.decode("ascii", "replace")


def authority_of(target: bytes) -> str:
    """The host and port of a request target in absolute form; empty in origin form."""
    scheme, found, rest = target.partition(b"://")
    return rest.partition(b"/")[0].partition(b"?")[0].decode("latin-1") if found and scheme in SCHEMES else ""


def query_of(target: bytes) -> dict[str, str]:
    """The fields of a request target's query, the last of each name; empty if there are more than MAXIMUM_FIELDS."""
    try:
        fields = parse_qsl(
            target.partition(b"?")[2].decode("ascii", "replace"),
            keep_blank_values=True,
            max_num_fields=MAXIMUM_FIELDS,
        )
    except ValueError:
        return {}
    return dict(fields)


def refusal(method: str, path: str, paths: frozenset[str]) -> Answer | None:
    """404 for an unknown path, 405 for a method other than GET and HEAD, else None."""
    if path not in paths:
        return Answer(404, f"There is nothing here; try {' '.join(sorted(paths))}\n".encode())
    if method not in METHODS:
        return Answer(405, b"Only GET and HEAD are known here.\n", headers={"Allow": ", ".join(METHODS)})
    return None


def not_modified(answer: Answer, if_none_match: str) -> Answer:
    """The answer, or 304 instead if the client already has it (RFC 9110 sections 13.1.2 and 15.4.5).

    `if_none_match` is the header's value, empty without the header; tags are compared weakly.
    """
    tag = answer.headers.get("ETag", "")
    given = [one.strip().removeprefix("W/") for one in if_none_match.split(",")]
    if answer.status != 200 or not tag or not ("*" in given or tag.removeprefix("W/") in given):  # noqa: PLR2004  # OK
        return answer
    return Answer(304, b"", headers={"ETag": tag})


def readiness_answer(readiness: Readiness, *, detailed: bool) -> Answer:
    """200 or 503 with the reason as text, which a kubelet shows in its events; else only whether it is ready."""
    lines = (readiness.reason, *readiness.more) if detailed else ("ready" if readiness.ready else "not ready",)
    return Answer(200 if readiness.ready else 503, "".join(f"{line}\n" for line in lines).encode())


def metrics_answer(registry: CollectorRegistry, accept: str) -> Answer:
    """The metrics in the format of the Accept header: Prometheus text or OpenMetrics."""
    encode, content_type = choose_encoder(accept)
    return Answer(200, encode(registry), content_type)


_PAGE_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("style", "script", "img", "connect")),
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


def page_answer(page: str | Generator[None, None, str]) -> Answer:
    """A page that may show names from a cluster, either complete or made in steps, with other tasks in between.

    Its policy lets a browser load and run only the style and script of this port, whatever the page contains.
    """
    body = page.encode(errors="replace") if isinstance(page, str) else _pieces(page)
    return Answer(200, body, HTML, {"Content-Security-Policy": _PAGE_POLICY, "Referrer-Policy": "no-referrer"})


def _pieces(steps: Generator[None, None, str]) -> Iterator[bytes]:
    page = ""

    def work() -> Generator[None, None, None]:
        nonlocal page
        page = yield from steps

    for _ in work():
        yield b""
    yield page.encode(errors="replace")
