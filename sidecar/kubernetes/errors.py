"""Errors of an API server, named by their cause and their remedy.

The law: an error response or a broken connection becomes one of these at the edge (http.py, protocol.py); other code
knows nothing of HTTP. Each has a short `cause` that may be a metric's label. Each is temporary: a follower retries.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

_SHOWN_LIMIT: Final = 200

# After the API server was restored from a backup, the version is in its future; only a new list helps, as after 410.
# https://github.com/kubernetes/apimachinery/blob/v0.34.4/pkg/apis/meta/v1/types.go CauseTypeResourceVersionTooLarge
_TOO_LARGE: Final = "too large resource version"


class ApiError(Exception):
    """A request to the API server failed. Only the subclasses are raised."""

    cause: ClassVar[str]
    """The kind of error in one word, from a small closed set."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait before the next request, as the server asked; or None."""


class Unauthorized(ApiError):
    """401: the credentials are not accepted; they are read again before the next attempt."""

    cause = "unauthorized"


class Forbidden(ApiError):
    """403: the credentials are valid, but RBAC does not allow this; an administrator has to grant it."""

    cause = "forbidden"


class NotFound(ApiError):
    """404: the server does not have this object or kind; a CustomResourceDefinition may come later."""

    cause = "not-found"


class Conflict(ApiError):
    """409: the object was changed since it was read, or exists already; read it again, then decide again."""

    cause = "conflict"


class Gone(ApiError):
    """410: the resource version or continue token has expired (or is in the future); only a new list helps."""

    cause = "gone"


class TooManyRequests(ApiError):
    """429: the server is busy; obey `retry_after`."""

    cause = "too-many-requests"


class Refused(ApiError):
    """Any other 3xx or 4xx: the request is wrong for this server, or another program answers at this address."""

    cause = "refused"


class ServerTrouble(ApiError):
    """The server fails or cannot be reached: 5xx, a lost connection."""

    cause = "server-trouble"


class Garbled(ServerTrouble):
    """The server, or a proxy in between, sent something that is not a Kubernetes object."""

    cause = "garbled"


class Oversized(ServerTrouble):
    """An answer larger than the program takes in; one with fewer objects may fit."""

    cause = "oversized"


class TimedOut(ServerTrouble):
    """No answer in time: the server hangs, or the connection was lost without a reset."""

    cause = "timeout"


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int | None = None


class Status(msgspec.Struct):
    """meta/v1 Status: the body of an error response, or the object of an ERROR event."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(Status)

_BY_CODE: Final[dict[int, type[ApiError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def error_from_response(code: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """The error for a response that is not 200; `retry_after` is that header's text (RFC 9110 section 10.2.3)."""
    try:
        status = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A page of a load balancer, not an answer of an API server: one line of it shows where it comes from.
        status = Status(message=shown(body))
    # Python's strip() takes away separators that float() refuses.
    delay = (retry_after or "").strip(" \t")
    seconds = float(delay) if delay.isdecimal() else None
    return error_from_status(status, code=code, retry_after=seconds)


def error_from_status(status: Status, *, code: int | None = None, retry_after: float | None = None) -> ApiError:
    """The error for a Status; `code` is the status code of its response."""
    number = status.code or code or 500
    message = status.message or status.reason or "no reason given"
    if retry_after is None and status.details is not None and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    kind = _BY_CODE.get(number, ServerTrouble if number >= 500 else Refused)  # noqa: PLR2004
    if status.reason in {"Expired", "Gone"} or _TOO_LARGE in message.lower():
        kind = Gone
    return kind(f"{number}: {shown(message.encode())}", retry_after=retry_after)


def shown(text: bytes) -> str:
    """The beginning of a foreign text on one line, safe for logs and terminals."""
    line = " ".join(text[: 4 * _SHOWN_LIMIT].decode("utf-8", "replace").split())
    return line[:_SHOWN_LIMIT].encode("unicode_escape").decode("ascii") or "an empty body"
