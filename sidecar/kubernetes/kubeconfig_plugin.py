"""Credentials of kubeconfigs that a plugin or an identity provider gives, through the `kubernetes` package.

The law: only this module uses the package, through its documented functions, and only for users whose credentials are
not in the files (kubeconfig.py). Every failure, also those that the package only logs and a missing package, becomes
one ClusterConfigError.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from sidecar.kubernetes.cluster import ClusterConfigError, Tls
from sidecar.values.text import message_of


def read_with_package(files: str, *, context: str, source: str) -> tuple[Any, Tls]:
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
    """Its modules `client` and `config`. Images have no package, because no pod needs it."""
    try:
        return import_module("kubernetes.client"), import_module("kubernetes.config")
    except ModuleNotFoundError as error:
        raise ClusterConfigError(
            f"{source}: the Python package that runs credential plugins is not installed ({error}). Images leave it "
            "out: a pod has its own account, which is used without KUBECONFIG, --kubeconfig and --context. Elsewhere: "
            "pip install kubernetes"
        ) from error


def _read_pem(path: str | None) -> str | None:
    return Path(path).read_text(encoding="utf-8-sig", errors="replace") if path else None


def read_package_authorization(configuration: Any, source: str) -> str | None:
    """The header; a plugin or identity provider renews a token that is about to expire."""
    with _errors_of_package(source):
        text = configuration.get_api_key_with_prefix("BearerToken")
    # A token that ends with a line break would be a header injection to the HTTP client.
    return text.strip() if text else None


@contextmanager
def _errors_of_package(source: str) -> Iterator[None]:
    """Turn the errors that the package raises, and those that it only logs, into one ClusterConfigError."""
    try:
        with _PluginErrors() as logged:
            yield
    except _exceptions_of_package() as error:
        raise ClusterConfigError(f"{source}: {message_of(error)}") from error
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
        self.messages.append(message_of(record.getMessage()))
        return False

    def __enter__(self) -> _PluginErrors:
        logging.getLogger().addFilter(self)
        logging.getLogger().addHandler(self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self._handler)
        logging.getLogger().removeFilter(self)
