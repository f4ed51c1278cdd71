"""Kubeconfig files, read by the `kubernetes` package: merging, plugins, client certificates, token refresh.

The law: only this module uses the package, through its documented functions. Every error in a file becomes one
ClusterConfigError that names the file, a missing package too. The package does not validate the structure of a file, so
this module does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from sidecar.kubernetes.cluster import Cluster, ClusterConfigError, Tls, check_tls


class _Context(msgspec.Struct):
    cluster: str
    user: str | None = None
    namespace: str | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _ClusterEntry(msgspec.Struct, rename="kebab"):
    server: str | None = None
    proxy_url: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _ClusterEntry


class _AuthProvider(msgspec.Struct):
    name: str
    config: dict[str, str] | None = None


class _Exec(msgspec.Struct, rename="camel"):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None
    install_hint: str | None = None


class _User(msgspec.Struct, rename="kebab"):
    exec: _Exec | None = None
    auth_provider: _AuthProvider | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _Shape(msgspec.Struct, rename="kebab"):
    current_context: str | None = None
    contexts: list[_NamedContext] | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None


def load_kubeconfig(files: str, *, context: str | None) -> Cluster:
    """The cluster of a context (None: the current one) of the files, separated by colons. Raises ClusterConfigError."""
    shapes = _read_shapes(files)
    chosen = _choose_context(shapes, files=files, context=context)
    user = _user_of(shapes, chosen)
    _refuse_provider(user, files=files)
    source = f"{files}, context {chosen.name}"
    plugin = user.exec if user is not None else None
    try:
        configuration, tls = _read_with_package(files, context=chosen.name, source=source)
    except ClusterConfigError as error:
        # The package only logs why a plugin failed; whether it is there is asked afterwards.
        raise ClusterConfigError(f"{error}{_hint(plugin)}") from error.__cause__
    if plugin is not None and not (configuration.api_key or tls.certificate):
        raise ClusterConfigError(f"{source}: {plugin.command} gave no credentials")
    _check_urls(configuration, source=source)
    check_tls(tls, source=source)
    return Cluster(
        server=configuration.host.rstrip("/"),
        origin=source,
        read_authorization=partial(_read_authorization, configuration, source),
        reload=partial(load_kubeconfig, files, context=context),
        tls=tls,
        namespace=chosen.context.namespace or "default",
        proxy=configuration.proxy or None,
        trust_env=True,
        blocks=user is not None and (user.exec is not None or user.auth_provider is not None),
    )


def _read_shapes(files: str) -> list[_Shape]:
    shapes = []
    for name in filter(None, files.split(":")):
        path = Path(name).expanduser()
        try:
            # As in kubectl, an empty file is valid and a missing file is skipped.
            shapes.append(msgspec.yaml.decode(path.read_bytes(), type=_Shape | None) or _Shape())
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ClusterConfigError(f"{path}: {error.strerror}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
            raise ClusterConfigError(f"{path} is not a kubeconfig: {' '.join(str(error).split())}") from error
    if not shapes:
        raise ClusterConfigError(f"{files} does not exist; name a kubeconfig with --kubeconfig or KUBECONFIG")
    return shapes


def _choose_context(shapes: list[_Shape], *, files: str, context: str | None) -> _NamedContext:
    contexts: dict[str, _NamedContext] = {}
    for entry in (entry for shape in shapes for entry in shape.contexts or ()):
        contexts.setdefault(entry.name, entry)
    names = ", ".join(sorted(contexts)) or "none"
    name = context or next((shape.current_context for shape in shapes if shape.current_context), None)
    if not name:
        raise ClusterConfigError(f"{files} has no current-context; choose one with --context or another file: {names}")
    if name not in contexts:
        raise ClusterConfigError(f"{files} has no context {name!a}; it has: {names}")
    return contexts[name]


def _user_of(shapes: list[_Shape], chosen: _NamedContext) -> _User | None:
    users = (entry for shape in shapes for entry in shape.users or ())
    return next((entry.user for entry in users if entry.name == chosen.context.user), None)


def _refuse_provider(user: _User | None, *, files: str) -> None:
    provider = user.auth_provider if user is not None else None
    if provider is not None and provider.name != "oidc":
        raise ClusterConfigError(
            f"{files}: kubectl 1.26 took auth-provider {provider.name!a} out, and it is not supported here either; "
            "use the exec plugin of your cloud (gke-gcloud-auth-plugin, kubelogin)"
        )


def _hint(plugin: _Exec | None) -> str:
    """What to do if the program that gives the credentials is not installed: its author's words, as kubectl does."""
    if plugin is None or "/" in plugin.command or which(plugin.command):
        return ""
    return f"; {' '.join((plugin.install_hint or f'install {plugin.command}, which gives the credentials').split())}"


def _read_with_package(files: str, *, context: str, source: str) -> tuple[Any, Tls]:
    """The package's Configuration, and a Tls whose texts the package writes into files of a temporary folder."""
    client, config = _import_package(source)
    load: Any = config.load_kube_config
    # None would mean localhost and the proxy of the environment, which could not be told from values of the file.
    configuration = client.Configuration(host="", proxy="", no_proxy="")
    with TemporaryDirectory(prefix="kubeconfig-") as folder, _errors_of_package(source):
        load(files, context, configuration, temp_file_path=folder)
        return configuration, Tls(
            ca=_read_pem(configuration.ssl_ca_cert),
            certificate=_read_pem(configuration.cert_file),
            key=_read_pem(configuration.key_file),
            server_name=configuration.tls_server_name,
            verify=configuration.verify_ssl,
        )


def _import_package(source: str) -> tuple[Any, Any]:
    """Its modules `client` and `config`: half a second and 50 MB. Images have no package, because no pod needs it."""
    try:
        return import_module("kubernetes.client"), import_module("kubernetes.config")
    except ModuleNotFoundError as error:
        raise ClusterConfigError(
            f"{source}: the Python package that reads kubeconfigs is not installed ({error}). Images leave it out: a "
            "pod has its own account, which is used without KUBECONFIG, --kubeconfig and --context. Elsewhere: "
            "pip install kubernetes"
        ) from error


def _read_pem(path: str | None) -> str | None:
    return Path(path).read_text(encoding="utf-8-sig", errors="replace") if path else None


def _read_authorization(configuration: Any, source: str) -> str | None:
    """The header; a plugin or identity provider renews a token that is about to expire."""
    with _errors_of_package(source):
        text = configuration.get_api_key_with_prefix("BearerToken")
    # A tokenFile's final newline would be a header injection to the HTTP client.
    return text.strip() if text else None


def _check_urls(configuration: Any, *, source: str) -> None:
    if not configuration.host.startswith(("https://", "http://")):
        raise ClusterConfigError(f"{source}: server {configuration.host!a} is not an http or https URL")
    if configuration.proxy and not configuration.proxy.startswith(("https://", "http://")):
        raise ClusterConfigError(f"{source}: proxy-url {configuration.proxy!a}: only http and https proxies work here")


@contextmanager
def _errors_of_package(source: str) -> Iterator[None]:
    """Turn the errors that the package raises, and those that it only logs, into one ClusterConfigError."""
    try:
        with _PluginErrors() as logged:
            yield
    except _exceptions_of_package() as error:
        raise ClusterConfigError(f"{source}: {error}") from error
    if logged.messages:
        raise ClusterConfigError(f"{source}: {logged.messages[-1]}")


def _exceptions_of_package() -> tuple[type[Exception], ...]:
    """The exceptions of reading a file, running a plugin or asking an identity provider."""
    named = (
        ("kubernetes.config", "ConfigException"),
        ("oauthlib.oauth2", "OAuth2Error"),
        ("urllib3.exceptions", "HTTPError"),
    )
    return (OSError, ValueError, *(getattr(import_module(module), name) for module, name in named))


class _PluginErrors(logging.Filter):
    """Collects the package's messages on the root logger: it only logs the failure of a plugin, and continues."""

    MODULE: Final = "kube_config"

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        # Without a handler, logging.error() would configure the root logger permanently.
        self._handler = logging.NullHandler()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.module != self.MODULE:
            return True
        self.messages.append(" ".join(record.getMessage().split()))
        return False

    def __enter__(self) -> _PluginErrors:
        logging.getLogger().addFilter(self)
        logging.getLogger().addHandler(self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self._handler)
        logging.getLogger().removeFilter(self)
