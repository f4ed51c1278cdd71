"""The cluster as a value: where its API server is, which certificates to trust, and how to authenticate.

The law: a Cluster is a value. What must be read again (a token that rotates, the output of a plugin) is behind its two
functions. This module reads no settings; config.py and kubeconfig.py do.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class ClusterConfigError(Exception):
    """We can't tell how to reach the cluster; the message names the file or variable and says what to do."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Whom to trust and what to show, as PEM texts, so that two readings of the same files compare equal."""

    ca: str | None = None
    """Certificates to trust; None: those of the operating system."""
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)
    server_name: str | None = None
    """The name in the server's certificate, where it is not the one in its URL."""
    verify: bool = True

    def make_context(self) -> ssl.SSLContext:
        """An SSL context for clients. Raises ValueError or ssl.SSLError for what is no certificate or key."""
        if self.ca is not None and not self.ca.strip():
            # Nobody would be trusted; OpenSSL would take it for "the operating system's".
            raise ValueError("no certificate in the authority's file")
        context = ssl.create_default_context(cadata=self.ca)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None and self.key is not None:
            with _as_file(self.certificate) as certificate, _as_file(self.key) as key:
                # An encrypted key would have OpenSSL ask on the terminal; this makes it fail instead.
                context.load_cert_chain(certificate, key, password="")
        return context


@dataclass(frozen=True, slots=True)
class Cluster:
    """One API server and how to be let in."""

    server: str
    """`https://HOST[:PORT][/PREFIX]`, no final slash."""
    origin: str
    """Where this was read, for people: `the pod's service account`, `FILE, context NAME`."""
    read_authorization: Callable[[], str | None] = field(repr=False, compare=False)
    """The value of the Authorization header, fresh; None where a client certificate is all there is."""
    reload: Callable[[], Cluster] = field(repr=False, compare=False)
    """Everything read again, for when the server refuses us. May block; raises ClusterConfigError."""
    tls: Tls = field(default_factory=Tls)
    namespace: str = "default"
    proxy: str | None = None
    """URL of an HTTP proxy."""
    trust_env: bool = False
    """Whether HTTPS_PROXY and NO_PROXY count. Not in a pod, where they are meant for the world outside."""
    blocks: bool = False
    """Whether `read_authorization` may run a program or use the network, and so belongs in a thread."""


def check_tls(tls: Tls, *, source: str) -> None:
    """Raise ClusterConfigError if the certificates or the key are unusable."""
    try:
        tls.make_context()
    except (ValueError, OSError) as error:
        raise ClusterConfigError(f"{source}: unusable certificate or key: {error}") from error


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path for OpenSSL, which loads certificates from files alone: in memory, since a root may be read-only."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
