"""The descriptors of this process: how many it may have, and how many of them clients may take.

The law: the shares of all clients together are smaller than the limit. So idle connections take no descriptor that the
admin port, the upstreams or the API server need: a liveness probe that finds none would end a healthy pod.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from typing import Final

from sidecar.values.errors import StartError

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of accept(2), socket(2) and open(2) that mean "not now": a limit of this process or of the system."""

LEAST_FREE: Final = 24
"""Descriptors that a program needs beyond those that are open at its start: connections, files, the admin port."""

_ADMIN_PART: Final = 8
_ADMIN_BOUNDS: Final = (4, 256)
_UNLIMITED: Final = 1_048_576
"""Stands for a limit of infinity, and for an absurd one: the kernel's own default for the most of one process."""
_ASSUMED_OPEN: Final = 16
"""Where the system does not list the open descriptors."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit to the hard limit, if the kernel permits; it is low only for programs that use select(2)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptor_limit() -> int:
    """How many descriptors this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if soft == resource.RLIM_INFINITY else min(soft, _UNLIMITED)


def free_descriptors(*, upcoming: int = 0) -> int:
    """How many descriptors are left beside the open ones and `upcoming` ones, such as listeners.

    Raises StartError if they are too few for any program.
    """
    limit = descriptor_limit()
    free = limit - _open_descriptors() - upcoming
    if free < LEAST_FREE:
        raise StartError(too_few(limit, needed=limit - free + LEAST_FREE))
    return free


def too_few(limit: int, *, needed: int | None = None) -> str:
    """The message for a limit that is too low."""
    least = "more" if needed is None else f"at least {needed}"
    return f"the limit of open files is {limit}, and {least} are needed; raise it (ulimit -n, LimitNOFILE=)"


def admin_share(limit: int) -> int:
    """How many connections the admin port takes within a descriptor limit."""
    least, most = _ADMIN_BOUNDS
    return min(most, max(least, limit // _ADMIN_PART))


def _open_descriptors() -> int:
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return _ASSUMED_OPEN
