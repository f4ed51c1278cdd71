"""Kubeconfig files: reads them, and what they name, into a Cluster.

The law: kubeconfig_selection.py decides, this module reads files. Only if a plugin or an identity provider gives the
credentials does it import the `kubernetes` package (kubeconfig_plugin.py), which takes 0.3 s of processor time and
30 MB. Every error is one ClusterConfigError that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import which

from sidecar.kubernetes.cluster import Cluster, ClusterConfigError, Tls, check_tls
from sidecar.kubernetes.kubeconfig_selection import Content, Identity, Selection, is_token, parse_kubeconfig


def load_kubeconfig(files: str, *, context: str | None) -> Cluster:
    """The cluster of a context (None: the current one) of the files, separated by colons. Raises ClusterConfigError."""
    texts = list(_read_files(files))
    if not texts:
        raise ClusterConfigError(f"{files} does not exist; name a kubeconfig with --kubeconfig or KUBECONFIG")
    selection = parse_kubeconfig(texts, files=files, context=context)
    cluster = Cluster(
        server=selection.server,
        origin=f"{files}, context {selection.context}",
        read_authorization=partial(_read_authorization, selection.identity),
        reload=partial(load_kubeconfig, files, context=context),
        tls=_read_tls(selection),
        namespace=selection.namespace,
        proxy=selection.proxy,
        trust_env=True,
    )
    if selection.identity.is_plain:
        cluster.read_authorization()
    else:
        cluster = _ask_for_credentials(cluster, selection, files=files)
    check_tls(cluster.tls, source=cluster.origin)
    return cluster


def _read_files(files: str) -> Iterator[tuple[Path, bytes]]:
    """The texts of those that exist; client-go skips the others."""
    for name in filter(None, files.split(":")):
        try:
            path = Path(name).expanduser()
        except RuntimeError:  # of a user that does not exist
            continue
        try:
            yield path, path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ClusterConfigError(f"{path}: {error.strerror}") from error


def _read_tls(selection: Selection) -> Tls:
    identity = selection.identity
    options = Tls(server_name=selection.server_name, verify=selection.verify)
    # Files are read for http as well, because client-go refuses a missing one.
    ca, certificate, key = (_read_text(one) for one in (selection.authority, identity.certificate, identity.key))
    if not selection.server.startswith("https"):
        return options
    return replace(options, ca=ca, certificate=certificate, key=key)


def _read_text(content: Content | None) -> str | None:
    return _read(content) if content is not None else None


def _read(content: Content) -> str:
    if content.path is None:
        return content.text or ""
    try:
        return content.path.read_text(encoding="utf-8-sig", errors="replace")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ClusterConfigError(f"{content.where}: {content.path}: {reason}") from error


def _read_authorization(identity: Identity) -> str | None:
    """The header now; a token's file is read each time, because its writer renews it."""
    if identity.basic:
        return identity.basic
    token = _read_token(identity)
    return f"Bearer {token}" if token else None


def _read_token(identity: Identity) -> str | None:
    """As client-go: the file's content, or the token beside it as long as the file has none."""
    if identity.token_file is None:
        return identity.token
    try:
        return _read_token_file(identity.token_file)
    except ClusterConfigError:
        if identity.token is None:
            raise
        return identity.token


def _read_token_file(content: Content) -> str:
    token = _read(content).strip()
    if not is_token(token):
        raise ClusterConfigError(f"{content.where}: {content.path} contains no token")
    return token


def _ask_for_credentials(cluster: Cluster, selection: Selection, *, files: str) -> Cluster:
    """The cluster with what the plugin or identity provider gives."""
    from sidecar.kubernetes.kubeconfig_plugin import (  # noqa: PLC0415  # it imports the big package
        read_package_authorization,
        read_with_package,
    )

    command, source = selection.identity.command, cluster.origin
    try:
        configuration, tls = read_with_package(files, context=selection.context, source=source)
    except ClusterConfigError as error:
        # The package only logs why a plugin failed; whether it is there is asked afterwards.
        raise ClusterConfigError(f"{error}{_hint(selection.identity)}") from error.__cause__
    if command is not None and not (configuration.api_key or tls.certificate):
        raise ClusterConfigError(f"{source}: {command} gave no credentials")
    return replace(
        cluster,
        read_authorization=partial(read_package_authorization, configuration, source),
        tls=replace(cluster.tls, certificate=tls.certificate, key=tls.key),
        blocks=True,
    )


def _hint(identity: Identity) -> str:
    """What to do if the program that gives the credentials is not installed: its author's words, as kubectl does."""
    command = identity.command
    if command is None or "/" in command or which(command):
        return ""
    return f"; {' '.join((identity.install_hint or f'install {command}, which gives the credentials').split())}"
