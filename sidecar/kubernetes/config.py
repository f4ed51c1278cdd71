"""The cluster: where its API server is, whom to trust, who we are. In a pod or by kubeconfig.

The law: a Cluster is a value; what must be read again (a token that rotates, a plugin's output) is behind its two
functions. Loading may run a plugin, so it belongs in a thread once an event loop runs. The `kubernetes` package costs
half a second and 50 MB to import: a pod does without it (kubeconfig.py imports it where it is needed).
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts `token`, `ca.crt` and `namespace` into every pod."""


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


def load_cluster(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Cluster:
    """The cluster that is meant: by flag, then by KUBECONFIG, then the pod's own, then ~/.kube/config.

    `kubeconfig` may be several files joined by colons, as in KUBECONFIG. May run a plugin, so it may block.
    Raises ClusterConfigError.
    """
    files = kubeconfig or environment.get("KUBECONFIG")
    if not files and not context and environment.get("KUBERNETES_SERVICE_HOST"):
        return load_in_cluster(environment=environment, service_account=service_account)
    from sidecar.kubernetes.kubeconfig import load_kubeconfig  # noqa: PLC0415  # it reaches for the big package

    return load_kubeconfig(files or str(Path.home() / ".kube" / "config"), context=context)


def load_in_cluster(*, environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Cluster:
    """The cluster that this pod runs in. Raises ClusterConfigError."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT") or "443"
    if not host:
        raise ClusterConfigError("KUBERNETES_SERVICE_HOST is not set, so this is no pod; use --kubeconfig FILE")
    read_authorization = partial(_read_bearer, service_account / "token")
    read_authorization()
    cluster = Cluster(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        origin="the pod's service account",
        # The kubelet renews the file well before the token ends; at one request per minute, reading it each time
        # is cheaper than remembering for how long it is good.
        read_authorization=read_authorization,
        reload=partial(load_in_cluster, environment=environment, service_account=service_account),
        tls=Tls(ca=_read(service_account / "ca.crt")),
        namespace=_read_namespace(service_account / "namespace"),
    )
    check_tls(cluster.tls, source=str(service_account / "ca.crt"))
    return cluster


def check_tls(tls: Tls, *, source: str) -> None:
    """Raise ClusterConfigError if the certificates or the key are unusable."""
    try:
        tls.make_context()
    except (ValueError, OSError) as error:
        raise ClusterConfigError(f"{source}: unusable certificate or key: {error}") from error


def _read_bearer(path: Path) -> str:
    token = _read(path).strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ClusterConfigError(f"{path} holds no token")
    return f"Bearer {token}"


def _read_namespace(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "does the pod have automountServiceAccountToken: false?"
        reason = error.strerror if isinstance(error, OSError) else error
        raise ClusterConfigError(f"{path}: {reason}; {hint}") from error


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path for OpenSSL, which loads certificates from files alone: in memory, since a root may be read-only."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
