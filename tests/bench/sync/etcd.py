"""A client of etcd, beneath the API server.

The law: it reads and writes the octets of the API server as they are.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterable
from typing import Any, Final

MOST_IN_ONE: Final = 128
"""Operations in one transaction: etcd's default of --max-txn-ops."""


class Etcd:
    """Its JSON interface (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/) over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def __enter__(self) -> Etcd:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, key: str) -> bytes:
        """A value that is there."""
        value = self.find(key)
        if value is None:
            raise KeyError(key)
        return value

    def find(self, key: str) -> bytes | None:
        """A value; None if there is none."""
        rows = self._ask("range", {"key": _encode(key.encode())}).get("kvs", [])
        return base64.b64decode(rows[0]["value"]) if rows else None

    def put(self, key: str, value: bytes) -> None:
        """Set a value."""
        self._ask("put", {"key": _encode(key.encode()), "value": _encode(value)})

    def put_all(self, entries: Iterable[tuple[str, bytes]]) -> None:
        """Set at most MOST_IN_ONE values in one transaction."""
        puts = [{"requestPut": {"key": _encode(key.encode()), "value": _encode(value)}} for key, value in entries]
        self._ask("txn", {"success": puts})

    def _ask(self, method: str, body: dict[str, Any]) -> Any:
        self._connection.request("POST", f"/v3/kv/{method}", json.dumps(body))
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status != http.client.OK:
            raise OSError(f"etcd: {answer}")
        return answer


def _encode(octets: bytes) -> str:
    return base64.b64encode(octets).decode()
