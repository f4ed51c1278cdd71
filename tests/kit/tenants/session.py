"""Calls to the API server over one connection, with any account's token: a handshake for each call would take longest.

The law: one call at a time.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.kit.apiserver import TOKEN, ApiServer

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
IDLE: Final = 5.0
"""Seconds."""


class Session:
    """An open connection to an API server."""

    def __init__(self, connection: http.client.HTTPSConnection) -> None:
        self._connection = connection
        self._used = time.monotonic()

    def call(self, method: str, path: str, body: object = None, *, token: str = TOKEN) -> tuple[int, str]:
        """The status and the text of a call; a PATCH is a merge patch."""
        headers = {"authorization": f"Bearer {token}", "content-type": MERGE if method == "PATCH" else JSON}
        if time.monotonic() - self._used > IDLE:
            # The API server closes idle connections; the next request opens another one.
            self._connection.close()
        self._used = time.monotonic()
        try:
            self._connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = self._connection.getresponse()
            return response.status, response.read().decode()
        except Exception:
            # The next call connects again: a call that ended in the middle must fail its own test alone.
            self._connection.close()
            raise

    def request(self, method: str, path: str, body: object = None) -> Any:
        """The same as the owner of the cluster. Returns the decoded answer, and fails on any status but 2xx."""
        status, said = self.call(method, path, body)
        assert status in range(200, 300), f"{method} {path}: {status} {said}"
        return json.loads(said)


@contextmanager
def session(server: ApiServer) -> Iterator[Session]:
    """A session for the duration of a block."""
    with server.connection() as connection:
        yield Session(connection)
