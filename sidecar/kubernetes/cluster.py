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
from typing import Final

from sidecar.kubernetes.errors import Forbidden
from sidecar.values.text import cut

_LONGEST: Final = 2000
"""Characters of a message."""


class ClusterConfigError(Exception):
    """The configuration of the cluster is unusable; the message names the file or variable, and the remedy."""

    def __init__(self, message: str) -> None:
        # A file may have thousands of contexts, and a value of any length.
        super().__init__(cut(message, _LONGEST))


@dataclass(frozen=True, slots=True)
class Tls:
    """The certificates to trust and to present, as PEM texts, so that two reads of the same files compare equal."""

    ca: str | None = None
    """Certificates to trust; None: those of the operating system."""
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)
    server_name: str | None = None
    """The name in the server's certificate, if it differs from the host in the URL."""
    verify: bool = True

    def make_context(self) -> ssl.SSLContext:
        """An SSL context for clients. Raises ValueError or ssl.SSLError for an invalid certificate or key."""
        if self.ca is not None and not self.ca.strip():
            # This should trust no certificate, but OpenSSL would take it for those of the operating system.
            raise ValueError("no certificate in the authority's file")
        # OpenSSL ignores text between certificates; Python refuses text that is not ASCII, as in comments of bundles.
        ca = self.ca.encode("ascii", "ignore").decode("ascii") if self.ca is not None else None
        context = ssl.create_default_context(cadata=ca)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None and self.key is not None:
            with _as_file(self.certificate) as certificate, _as_file(self.key) as key:
                # With an encrypted key OpenSSL would ask for a password on the terminal; this makes it fail instead.
                context.load_cert_chain(certificate, key, password="")
        return context


@dataclass(frozen=True, slots=True)
class Cluster:
    """One API server, and how to authenticate to it."""

    server: str
    """`https://HOST[:PORT][/PREFIX]`, no final slash."""
    origin: str
    """Where this was read, for messages: `the pod's service account`, `FILE, context NAME`."""
    read_authorization: Callable[[], str | None] = field(repr=False, compare=False)
    """Returns the current Authorization header; None if only a client certificate authenticates."""
    reload: Callable[[], Cluster] = field(repr=False, compare=False)
    """Reads everything again, after the server has rejected the credentials. May block; raises ClusterConfigError."""
    tls: Tls = field(default_factory=Tls)
    namespace: str = "default"
    proxy: str | None = None
    """URL of an HTTP proxy."""
    trust_env: bool = False
    """Whether HTTPS_PROXY and NO_PROXY apply. Not in a pod, where they are for connections out of the cluster."""
    blocks: bool = False
    """Whether `read_authorization` may run a program or use the network, so that it needs a thread."""


def could_not_ask(cluster: Cluster, cause: object) -> str:
    """The message of a program that ends because the API server does not answer, or refuses the credentials."""
    text = f"the API server at {cluster.server} ({cluster.origin}) could not be asked: {cause}"
    if not cluster.trust_env:
        return text
    # Only a kubeconfig has such a context; a pod has its account, and no kubectl.
    if isinstance(cause, Forbidden):
        return f"{text}; ask for this right, or choose another --context"
    return f"{text}; if kubectl cannot either, start the cluster, log in again, or choose another --context"


def check_tls(tls: Tls, *, source: str) -> None:
    """Raise ClusterConfigError if the certificates or the key are unusable."""
    try:
        tls.make_context()
    except (ValueError, OSError) as error:
        raise ClusterConfigError(f"{source}: unusable certificate or key: {error}") from error


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path in memory for OpenSSL, which loads certificates only from files; the file system may be read-only."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
