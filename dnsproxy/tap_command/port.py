"""Port: the queries of one server, by its admin port.

The law: an end that the user did not ask for is an error with status 3, so that a script never takes silence for the
absence of queries.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import NoReturn
from urllib.parse import urlencode

from dnsproxy.admin.tap_route import PATH
from dnsproxy.tap.event import Dropped, parse_event
from dnsproxy.tap.filters import TapFilter, format_filter
from dnsproxy.tap_command.viewer import Viewer
from sidecar.admin.asking import NoAnswer
from sidecar.admin.following import follow
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import message_of

_PROGRAM = "dnsproxy serve"


class PortWatch:
    """Listens to one server."""

    def __init__(self, admin: Endpoint, wanted: TapFilter, viewer: Viewer) -> None:
        self._admin = admin
        self._fields = urlencode(format_filter(wanted))
        self._viewer = viewer
        self._was_heard = False

    @property
    def unheard(self) -> str:
        """Why the server was never listened to, as a message; empty if it was."""
        return "" if self._was_heard else f"--admin {self._admin}: no answer yet"

    async def run(self) -> NoReturn:
        """Show the queries until cancelled. Raises StartError with status 3."""
        target = f"{PATH}?{self._fields}" if self._fields else PATH
        try:
            async with aclosing(follow(self._admin, target, program=_PROGRAM, on_answer=self._note_answer)) as lines:
                async for line in lines:
                    self._take(line)
        except NoAnswer as error:
            raise self._failed(str(error)) from None
        except ValueError as error:
            raise self._failed(f"the answer is not that of a `{_PROGRAM}` ({message_of(error)})") from None
        raise self._failed("the server ended the answer; is it stopping?")

    def _note_answer(self) -> None:
        self._was_heard = True

    def _take(self, line: bytes) -> None:
        one = parse_event(line)
        if isinstance(one, Dropped):
            self._viewer.note_dropped(one)
        else:
            self._viewer.show(one)

    def _failed(self, why: str) -> StartError:
        return StartError(f"--admin {self._admin}: {why}", status=ExitStatus.UNKNOWN)
