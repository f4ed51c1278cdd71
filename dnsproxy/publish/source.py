"""Sources of a table: the admin port of a server, or files of a mounted ConfigMap.

The law: a read returns a publication, the same object while nothing has changed, or raises SourceError. What a failed
read means for the published names is not decided here.
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
from sidecar.admin.asking import CONNECT_SECONDS, NoAnswer, Reply, get
from sidecar.files.follow import Mark, file_mark, read_octets, reason_of
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort
from sidecar.values.text import message_of

LARGEST: Final = 32 << 20
"""Octets of a compressed document; 100,000 names are 1 MB."""


class SourceError(Exception):
    """Why the table cannot be read now, on one line."""


class Source(Protocol):
    """Where a table is read."""

    async def read(self) -> Publication:
        """The present publication. Raises SourceError."""
        ...


class ServerSource:
    """The admin port of a `dnsproxy serve`; its name is resolved at each read."""

    def __init__(self, server: HostPort) -> None:
        self._server = server
        self._tag = ""
        self._last: Publication | None = None

    async def read(self) -> Publication:
        """See Source; for an unchanged table the server sends 304 without a body."""
        reply = await self._get()
        if reply.modified or self._last is None:
            try:
                # 100,000 names take a second.
                self._last = await trio.to_thread.run_sync(parse_document, reply.body)
            except ValueError as error:
                raise SourceError(
                    f"--from {self._server}: the answer is not a publication ({message_of(error)})"
                ) from None
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
        raise SourceError(failure)

    async def _resolve(self) -> list[Endpoint]:
        """The addresses in random order: the name of a headless Service has those of all replicas."""
        host, port = self._server.host, self._server.port
        try:
            with trio.fail_after(CONNECT_SECONDS):
                found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, trio.TooSlowError, UnicodeError) as error:
            reason = f"not within {CONNECT_SECONDS} s" if isinstance(error, trio.TooSlowError) else error
            raise SourceError(f"--from {self._server}: no address for the name ({reason})") from None
        endpoints = [Endpoint(str(address[0]), port) for *_, address in found]
        random.shuffle(endpoints)
        return endpoints


class FileSource:
    """A document in a file, or its parts in a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks: list[Mark] = []
        self._last: Publication | None = None

    async def read(self) -> Publication:
        """See Source."""
        return await trio.to_thread.run_sync(self._read)

    def _read(self) -> Publication:
        try:
            files, marks = self._look()
            if self._last is None or marks != self._marks:
                self._last, self._marks = self._parse(files, marks), marks
        except (OSError, ValueError) as error:
            raise SourceError(f"--from-file {self._path}: {reason_of(error)}") from None
        return self._last

    def _look(self) -> tuple[list[Path], list[Mark]]:
        files = list(self._files())
        return files, [file_mark(file) for file in files]

    def _parse(self, files: list[Path], marks: list[Mark]) -> Publication:
        octets = self._join(files) if self._path.is_dir() else read_octets(self._path, largest=LARGEST)
        publication = parse_document(octets)
        if self._look() != (files, marks):
            raise ValueError("was changed while it was read")
        return publication

    def _files(self) -> Iterator[Path]:
        if not self._path.is_dir():
            yield self._path
            return
        # The files of a mounted ConfigMap are links; a projected volume may have a sub-folder for each ConfigMap.
        for file in sorted(self._path.rglob("*")):
            if is_part(file.name) and not any(above.startswith("..") for above in file.relative_to(self._path).parts):
                yield file

    def _join(self, files: list[Path]) -> bytes:
        if len(files) > MOST_PARTS * 2:
            raise ValueError(f"there are {len(files)} parts, more than one publication has")
        return join_parts(Part(file.name, read_octets(file, largest=LARGEST)) for file in files)
