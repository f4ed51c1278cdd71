"""Sources of publications: a server's admin port, or files that a ConfigMap is mounted as.

The law: a look gives a publication, the very same one while nothing has changed, or says why there is none; what that
means for what was published before is not decided here.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

import trio

from dnsproxy.admin.publication import Publication, parse_document
from dnsproxy.admin.publication_route import PATH
from dnsproxy.publish.parts import MOST_PARTS, Part, is_part, join_parts
from sidecar.asking import CONNECT_SECONDS, NoAnswer, Reply, get
from sidecar.endpoints import Endpoint
from sidecar.file_follower import Mark, file_mark, open_regular_file, reason_of
from sidecar.host_port import HostPort

LARGEST: Final = 32 << 20
"""Octets of a document as it comes; 100,000 names are 1 MB."""


class NotReadable(Exception):
    """Why there is no publication to be had now, on one line."""


class Source(Protocol):
    """Where publications come from."""

    async def look(self) -> Publication:
        """The publication of now. Raises NotReadable."""
        ...


class ServerSource:
    """The admin port of a `dnsproxy serve`, found anew each time by its name."""

    def __init__(self, server: HostPort) -> None:
        self._server = server
        self._tag = ""
        self._last: Publication | None = None

    async def look(self) -> Publication:
        """See Source; a table that has not changed costs the server no more than to say so."""
        reply = await self._get()
        if reply.modified or self._last is None:
            try:
                # 100,000 names take a second.
                self._last = await trio.to_thread.run_sync(parse_document, reply.body)
            except ValueError as error:
                raise NotReadable(f"--from {self._server}: what came is no publication ({error})") from None
            self._tag = reply.tag
        return self._last

    async def _get(self) -> Reply:
        headers = {"If-None-Match": self._tag} if self._tag and self._last is not None else {}
        failure = ""
        for endpoint in await self._resolve():
            try:
                return await get(endpoint, PATH, program="dnsproxy serve", largest=LARGEST, headers=headers)
            except NoAnswer as error:
                failure = failure or f"--from {endpoint}: {error}"
        raise NotReadable(failure)

    async def _resolve(self) -> list[Endpoint]:
        """The addresses, in any order: a headless Service has all replicas behind its name."""
        host, port = self._server.host, self._server.port
        try:
            with trio.fail_after(CONNECT_SECONDS):
                found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, trio.TooSlowError, UnicodeError) as error:
            reason = f"not within {CONNECT_SECONDS} s" if isinstance(error, trio.TooSlowError) else error
            raise NotReadable(f"--from {self._server}: no address for the name ({reason})") from None
        endpoints = [Endpoint(str(address[0]), port) for *_, address in found]
        random.shuffle(endpoints)
        return endpoints


class FileSource:
    """A document in a file, or its parts in a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks: list[Mark] = []
        self._last: Publication | None = None

    async def look(self) -> Publication:
        """See Source."""
        return await trio.to_thread.run_sync(self._look)

    def _look(self) -> Publication:
        try:
            files = list(self._files())
            marks = [file_mark(file) for file in files]
            if self._last is None or marks != self._marks:
                octets = self._join(files) if self._path.is_dir() else _read(self._path)
                self._last, self._marks = parse_document(octets), marks
        except (OSError, ValueError) as error:
            raise NotReadable(f"--from-file {self._path}: {reason_of(error)}") from None
        return self._last

    def _files(self) -> Iterator[Path]:
        if not self._path.is_dir():
            yield self._path
            return
        # A ConfigMap's folder has its files as links; a projected volume may keep each object's in one of its own.
        for file in sorted(self._path.rglob("*")):
            if is_part(file.name) and not any(above.startswith("..") for above in file.relative_to(self._path).parts):
                yield file

    def _join(self, files: list[Path]) -> bytes:
        if len(files) > MOST_PARTS * 2:
            raise ValueError(f"there are {len(files)} parts, more than one publication has")
        return join_parts(Part(file.name, _read(file)) for file in files)


def _read(path: Path) -> bytes:
    with open_regular_file(path) as file:
        octets = file.read(LARGEST + 1)
    if len(octets) > LARGEST:
        raise ValueError(f"is larger than {LARGEST >> 20} MiB")
    return octets
