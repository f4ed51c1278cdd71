"""The real `dnsproxy serve --rpz` over a hosts file: a policy zone that a test changes by writing lines."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import dns.message
import dns.query

from tests.kit.ports import free_port
from tests.kit.serve_process import Serving, serving

ZONE: Final = "rpz.example.org"
KEY: Final = "switchback"


def secret_of(word: str) -> str:
    """A secret for TSIG; the same word gives the same secret."""
    return base64.b64encode(hashlib.sha256(word.encode()).digest()).decode()


SECRET: Final = secret_of("right")


def key_statement(secret: str) -> str:
    """As `tsig-keygen` prints it."""
    return f'key "{KEY}" {{\n\talgorithm hmac-sha256;\n\tsecret "{secret}";\n}};\n'


class Publisher:
    """The primary. `notify`: the ports on loopback that are told of changes."""

    def __init__(self, folder: Path, *, notify: Sequence[int], options: Sequence[str] = ()) -> None:
        self.folder = folder
        self.port = free_port()
        self._notify = tuple(notify)
        self._options = tuple(options)
        self._stack = ExitStack()
        self._process: Serving | None = None

    def write(self, *lines: str) -> None:
        """The whole hosts file."""
        new = self.folder / "hosts.new"
        new.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        new.replace(self.folder / "hosts")

    def start(self) -> None:
        """Start it, as often as it was killed."""
        # A restart within a second would repeat the serial that the clock tells.
        serial = ["--rpz-serial", str(self.folder / "serial")]
        flags = ["--upstream", "127.0.0.1:9", "--rpz", ZONE, *serial, *self._options]
        if "--source" not in self._options:
            flags += ["--hosts-file", str(self.folder / "hosts")]
        key = self.folder / "switchback.key"
        key.write_text(key_statement(SECRET), encoding="utf-8")
        flags += ["--rpz-key", str(key)]
        for port in self._notify:
            flags += ["--rpz-notify", f"127.0.0.1:{port}"]
        self._process = self._stack.enter_context(serving(self.folder, *flags, port=self.port))

    def kill(self) -> None:
        """SIGKILL, like a crash."""
        assert self._process is not None
        self._process.kill()
        self._process = None

    def close(self) -> None:
        """End it, if it still runs."""
        self._stack.close()

    @property
    def log(self) -> str:
        """What it has logged since its last start."""
        assert self._process is not None
        return self._process.log.read_text(encoding="utf-8")

    def addresses(self, name: str) -> list[str]:
        """What its own DNS answers."""
        reply = dns.query.udp(dns.message.make_query(name, "A"), "127.0.0.1", port=self.port, timeout=10)
        return [str(record) for answer in reply.answer for record in answer]


@contextmanager
def publishing(folder: Path, *lines: str, notify: Sequence[int], options: Sequence[str] = ()) -> Iterator[Publisher]:
    """A running primary with these lines of a hosts file."""
    folder.mkdir(exist_ok=True)
    publisher = Publisher(folder, notify=notify, options=options)
    publisher.write(*lines)
    try:
        publisher.start()
        yield publisher
    finally:
        publisher.close()
