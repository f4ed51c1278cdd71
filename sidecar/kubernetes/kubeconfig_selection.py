"""What kubeconfigs say about one context: which cluster, and who one is there.

The law: pure; texts become values by client-go's rules, and files that they name are only named. The first file to have
a name wins, with all of its entry; relative paths are relative to the file that has them. Every error is one
ClusterConfigError that names the file and the key.
https://github.com/kubernetes/client-go/blob/master/tools/clientcmd/validation.go
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

from sidecar.kubernetes.cluster import ClusterConfigError
from sidecar.kubernetes.kubeconfig_shape import ClusterEntry, Context, Shape, User, parse_shape

SCHEMES: Final = ("https://", "http://")

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Content:
    """Certificates, a key or a token: the text, or the file that has it."""

    where: str
    """The file and the key that give it, for messages."""
    text: str | None = field(default=None, repr=False)
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """How to authenticate."""

    token: str | None = field(default=None, repr=False)
    token_file: Content | None = None
    """Wins over `token` as long as it can be read, as in client-go."""
    basic: str | None = field(default=None, repr=False)
    """Name and password as the value of an Authorization header."""
    certificate: Content | None = None
    key: Content | None = None
    command: str | None = None
    """The exec plugin that gives the credentials."""
    install_hint: str | None = None
    has_provider: bool = False
    """Whether an identity provider (OpenID Connect) gives them."""

    @property
    def has_authorization(self) -> bool:
        """Whether the files themselves give a header; client-go then asks neither plugin nor provider."""
        return bool(self.token or self.token_file or self.basic)

    @property
    def is_plain(self) -> bool:
        """Whether no program and no server need be asked for the credentials."""
        return self.has_authorization or not (self.command or self.has_provider)


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen context, with its cluster and its user."""

    context: str
    server: str
    authority: Content | None = None
    verify: bool = True
    server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"
    identity: Identity = field(default_factory=Identity)


@dataclass(frozen=True, slots=True)
class _Found(Generic[Entry]):
    """One entry of a list, and the file that has it."""

    path: Path
    name: str
    value: Entry

    def where(self, key: str) -> str:
        return f"{self.path}: {key} of {self.name!a}"


def parse_kubeconfig(texts: Iterable[tuple[Path, bytes]], *, files: str, context: str | None) -> Selection:
    """The selection by a context (None: the current one) of the files' texts, in their order."""
    shapes = [(path, parse_shape(text, path=path)) for path, text in texts]
    chosen = _choose_context(shapes, files=files, context=context)
    cluster = _find_cluster(shapes, chosen)
    authority = _content(cluster, "certificate-authority", cluster.value.authority, cluster.value.authority_data)
    if cluster.value.insecure and authority is not None:
        raise ClusterConfigError(f"{authority.where}: not allowed with insecure-skip-tls-verify: true")
    return Selection(
        context=chosen.name,
        server=_url(cluster, "server", cluster.value.server or "", fault="is not an http or https URL").rstrip("/"),
        authority=authority,
        verify=not cluster.value.insecure,
        server_name=cluster.value.tls_server_name or None,
        proxy=_proxy(cluster),
        namespace=chosen.value.namespace or "default",
        identity=_identity(_find_user(shapes, chosen)),
    )


def _choose_context(shapes: Sequence[tuple[Path, Shape]], *, files: str, context: str | None) -> _Found[Context]:
    contexts = _merge(
        (path, entry.name, entry.context or Context()) for path, shape in shapes for entry in shape.contexts or ()
    )
    names = ", ".join(sorted(contexts)) or "none"
    name = context or next((shape.current_context for _, shape in shapes if shape.current_context), None)
    if not name:
        raise ClusterConfigError(f"{files} has no current-context; choose one with --context or another file: {names}")
    if name not in contexts:
        raise ClusterConfigError(f"{files} has no context {name!a}; it has: {names}")
    return contexts[name]


def _merge(entries: Iterable[tuple[Path, str, Entry]]) -> dict[str, _Found[Entry]]:
    merged: dict[str, _Found[Entry]] = {}
    for path, name, value in entries:
        merged.setdefault(name, _Found(path, name, value))
    return merged


def _find_cluster(shapes: Sequence[tuple[Path, Shape]], chosen: _Found[Context]) -> _Found[ClusterEntry]:
    clusters = _merge(
        (path, entry.name, entry.cluster or ClusterEntry()) for path, shape in shapes for entry in shape.clusters or ()
    )
    return _find(clusters, chosen, "cluster", chosen.value.cluster)


def _find_user(shapes: Sequence[tuple[Path, Shape]], chosen: _Found[Context]) -> _Found[User] | None:
    """None: the context has no user, so that requests are anonymous."""
    users = _merge((path, entry.name, entry.user or User()) for path, shape in shapes for entry in shape.users or ())
    return _find(users, chosen, "user", chosen.value.user) if chosen.value.user else None


def _find(entries: dict[str, _Found[Entry]], chosen: _Found[Context], kind: str, name: str | None) -> _Found[Entry]:
    if name not in entries:
        names = ", ".join(sorted(entries)) or "none"
        raise ClusterConfigError(
            f"{chosen.path}: context {chosen.name!a}: no {kind} {name or ''!a} in {kind}s: {names}"
        )
    return entries[name]


def _url(cluster: _Found[ClusterEntry], key: str, value: str, *, fault: str) -> str:
    if not value.startswith(SCHEMES) or not value.isprintable():
        raise ClusterConfigError(f"{cluster.path}: cluster {cluster.name!a}: {key} {value!a} {fault}")
    return value


def _proxy(cluster: _Found[ClusterEntry]) -> str | None:
    """client-go takes socks5 too, which the HTTP client here does not."""
    proxy = cluster.value.proxy_url
    return (
        _url(cluster, "proxy-url", proxy, fault="is not supported; only http and https proxies work here")
        if proxy
        else None
    )


def _content(found: _Found[Entry], key: str, file: str | None, data: str | None) -> Content | None:
    """None: neither is set. An empty text is like none."""
    if file and data:
        raise ClusterConfigError(f"{found.where(key)}: {key}-data is there too; only one can count")
    if data:
        where = found.where(f"{key}-data")
        return Content(where, text=_decode_base64(data, where=where))
    return Content(found.where(key), path=found.path.parent / file) if file else None


def _decode_base64(data: str, *, where: str) -> str:
    try:
        # Line breaks are allowed, anything else is not, as in Go.
        return b64decode(data.replace("\n", "").replace("\r", ""), validate=True).decode("utf-8-sig", "replace")
    except (Base64Error, ValueError) as error:
        raise ClusterConfigError(f"{where} is not base64: {error}") from error


def _identity(found: _Found[User] | None) -> Identity:
    if found is None:
        return Identity()
    user = found.value
    _check_user(found)
    certificate = _content(found, "client-certificate", user.client_certificate, user.client_certificate_data)
    key = _content(found, "client-key", user.client_key, user.client_key_data)
    if certificate is not None and key is None:
        raise ClusterConfigError(f"{certificate.where}: client-key or client-key-data is missing")
    return Identity(
        token=_token(found, user.token) if user.token else None,
        token_file=_content(found, "tokenFile", user.token_file, None),
        basic=_basic(user.username, user.password or "") if user.username else None,
        certificate=certificate,
        key=key if certificate is not None else None,
        command=user.exec.command if user.exec is not None else None,
        install_hint=user.exec.install_hint if user.exec is not None else None,
        has_provider=user.auth_provider is not None,
    )


def _check_user(found: _Found[User]) -> None:
    user = found.value
    where = f"{found.path}: user {found.name!a}"
    if (user.token or user.token_file) and (user.username or user.password):
        raise ClusterConfigError(f"{where}: both token and username; only one can count")
    if user.exec is not None and (lacking := _lacking(command=user.exec.command, apiVersion=user.exec.api_version)):
        raise ClusterConfigError(f"{where}: exec has no {lacking}")
    if user.auth_provider is not None and not user.auth_provider.name:
        raise ClusterConfigError(f"{where}: auth-provider has no name")
    if user.exec is not None and user.auth_provider is not None:
        raise ClusterConfigError(f"{where}: both exec and auth-provider; only one can count")
    if user.impersonate:
        raise ClusterConfigError(f"{where}: as {user.impersonate!a}: acting as another user is not supported")
    if user.auth_provider is not None and user.auth_provider.name != "oidc":
        raise ClusterConfigError(
            f"{where}: kubectl 1.26 took auth-provider {user.auth_provider.name!a} out, and it is not supported here "
            "either; use the exec plugin of your cloud (gke-gcloud-auth-plugin, kubelogin)"
        )


def _lacking(**values: str) -> str:
    """The first key without a value."""
    return next((key for key, value in values.items() if not value), "")


def _token(found: _Found[User], text: str) -> str:
    token = text.strip()
    if not is_token(token):
        raise ClusterConfigError(f"{found.where('token')} is not a token")
    return token


def is_token(text: str) -> bool:
    """Whether this can stand in a header; a line break would begin another header."""
    return bool(text) and text.isascii() and text.isprintable()


def _basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode('ascii')}"
