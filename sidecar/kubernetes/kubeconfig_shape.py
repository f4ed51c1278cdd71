"""The structure of one kubeconfig: its keys and their types.

The law: pure; what the file says, before any rule about it. Unknown keys are ignored, as in client-go; an incomplete
entry with a name is no fault until a context uses it.
https://github.com/kubernetes/client-go/blob/master/tools/clientcmd/api/v1/types.go
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from sidecar.kubernetes.bounded_yaml import decode_yaml
from sidecar.kubernetes.cluster import ClusterConfigError


class Context(msgspec.Struct, frozen=True):
    """The names of a cluster and a user."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class NamedContext(msgspec.Struct, frozen=True):
    """An entry of `contexts`."""

    name: str
    context: Context | None = None


class ClusterEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """Where an API server is, and how to trust it."""

    server: str | None = None
    authority: str | None = msgspec.field(default=None, name="certificate-authority")
    authority_data: str | None = msgspec.field(default=None, name="certificate-authority-data")
    insecure: bool | None = msgspec.field(default=None, name="insecure-skip-tls-verify")
    tls_server_name: str | None = None
    proxy_url: str | None = None


class NamedCluster(msgspec.Struct, frozen=True):
    """An entry of `clusters`."""

    name: str
    cluster: ClusterEntry | None = None


class AuthProvider(msgspec.Struct, frozen=True):
    """An identity provider; client-go has only OpenID Connect left."""

    name: str = ""
    config: dict[str, str] | None = None


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A plugin that prints credentials."""

    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None
    install_hint: str | None = None


class User(msgspec.Struct, frozen=True, rename="kebab"):
    """Credentials, or the program or provider that gives them."""

    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    username: str | None = None
    password: str | None = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    exec: Exec | None = None
    auth_provider: AuthProvider | None = None


class NamedUser(msgspec.Struct, frozen=True):
    """An entry of `users`."""

    name: str
    user: User | None = None


class Shape(msgspec.Struct, frozen=True, rename="kebab"):
    """The file."""

    kind: str | None = None
    current_context: str | None = None
    contexts: list[NamedContext] | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None


def parse_shape(text: bytes, *, path: Path) -> Shape:
    """One file's structure. An empty file is valid, as in kubectl. Raises ClusterConfigError."""
    try:
        shape = msgspec.convert(decode_yaml(text), Shape | None) or Shape()
    except ValueError as error:  # msgspec's ValidationError is one
        raise ClusterConfigError(f"{path} is not a kubeconfig: {' '.join(str(error).split())}") from error
    if shape.kind not in (None, "", "Config"):
        raise ClusterConfigError(f"{path} is not a kubeconfig: its kind is {shape.kind!a}, not Config")
    for key, entries in (("contexts", shape.contexts), ("clusters", shape.clusters), ("users", shape.users)):
        _check_names(entries or (), where=f"{path}: {key}")
    return shape


def _check_names(entries: list[NamedContext] | list[NamedCluster] | list[NamedUser] | tuple[()], *, where: str) -> None:
    twice = [name for name, count in Counter(entry.name for entry in entries).items() if count > 1]
    if twice:
        raise ClusterConfigError(f"{where}: {twice[0]!a} is there twice")
