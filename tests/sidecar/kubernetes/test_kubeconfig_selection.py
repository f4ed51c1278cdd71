"""What a context selects, from texts alone: the first file with a name wins, and each fault names file and key."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.kubernetes.cluster import ClusterConfigError
from sidecar.kubernetes.kubeconfig_selection import Content, Selection, parse_kubeconfig

ONE, TWO = Path("/one/config"), Path("/two/config")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def document(**changes: Any) -> dict[str, Any]:
    """A kubeconfig with the context `home`; `cluster` and `user` go into it, other keys stand as they are."""
    cluster = {"server": "https://192.0.2.1:6443"} | changes.pop("cluster", {})
    return {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": changes.pop("user", {"token": "secret"})}],
        "contexts": [{"name": "home", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "home",
        **changes,
    }


def select(*documents: dict[str, Any], context: str | None = None) -> Selection:
    texts = [(path, json.dumps(one).encode()) for path, one in zip((ONE, TWO), documents, strict=False)]
    return parse_kubeconfig(texts, files="FILES", context=context)


def cluster_of(server: str, name: str = "c") -> dict[str, Any]:
    return {"clusters": [{"name": name, "cluster": {"server": server}}]}


def test_the_first_file_with_a_name_wins_with_all_of_its_entry() -> None:
    """So the other file's proxy is not that of the first one's server."""
    other = document(cluster={"server": "https://192.0.2.2", "proxy-url": "http://192.0.2.3"}, user={"username": "a"})
    chosen = select(document(), other)
    assert (chosen.server, chosen.proxy) == ("https://192.0.2.1:6443", None)
    assert (chosen.identity.token, chosen.identity.basic) == ("secret", None)


def test_the_first_current_context_that_is_not_empty_wins() -> None:
    contexts = [{"name": name, "context": {"cluster": "c", "namespace": name}} for name in ("home", "away")]
    empty = document(contexts=contexts, **{"current-context": ""})
    assert select(empty, {"current-context": "away"}, {"current-context": "home"}).namespace == "away"
    assert select(empty, {"current-context": "away"}, context="home").namespace == "home"


def test_a_path_is_beside_the_file_that_has_it() -> None:
    """Also if another file has the cluster."""
    user = {"client-certificate": "c.crt", "client-key": "/keys/c.key", "tokenFile": "t"}
    chosen = select(document(cluster={"certificate-authority": "ca.crt"}, users=None), document(user=user))
    assert chosen.authority == Content(f"{ONE}: certificate-authority of 'c'", path=Path("/one/ca.crt"))
    assert chosen.identity.certificate == Content(f"{TWO}: client-certificate of 'u'", path=Path("/two/c.crt"))
    assert chosen.identity.key == Content(f"{TWO}: client-key of 'u'", path=Path("/keys/c.key"))
    assert chosen.identity.token_file == Content(f"{TWO}: tokenFile of 'u'", path=Path("/two/t"))


def test_an_empty_data_key_leaves_the_file() -> None:
    cluster = {"certificate-authority-data": "", "certificate-authority": "ca.crt"}
    authority = select(document(cluster=cluster)).authority
    assert authority is not None
    assert authority.path == Path("/one/ca.crt")


def test_a_key_without_a_certificate_is_not_read() -> None:
    assert select(document(user={"client-key": "none"})).identity.key is None


def test_an_unused_entry_may_be_incomplete() -> None:
    """As `kubectl config set-context` writes it."""
    extra = {"name": "new", "context": {"cluster": "", "user": ""}}
    one = document()
    one["contexts"].append(extra)
    one["users"].append({"name": "new", "user": None})
    one["clusters"].append({"name": "new"})
    assert select(one).context == "home"


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        pytest.param("contexts", {"name": "new", "context": None}, id="a context"),
        pytest.param("clusters", {"name": "new", "cluster": None}, id="a cluster"),
        pytest.param("users", {"name": "new", "user": {"exec": {"apiVersion": "v1"}}}, id="a plugin without command"),
        pytest.param("users", {"name": "new", "user": {"exec": {"command": "a"}}}, id="a plugin without version"),
        pytest.param("users", {"name": "new", "user": {"auth-provider": {}}}, id="a provider without a name"),
    ],
)
def test_an_unused_entry_without_what_it_needs_is_no_fault(kind: str, entry: dict[str, Any]) -> None:
    """As for kubectl."""
    one = document()
    one[kind].append(entry)
    assert select(one).context == "home"


PLUGIN = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin"}}
OIDC = {"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}}


@pytest.mark.parametrize(
    ("user", "plain"),
    [
        pytest.param({}, True, id="anonymous"),
        pytest.param({"token": "t"}, True, id="token"),
        pytest.param(PLUGIN, False, id="plugin"),
        pytest.param(OIDC, False, id="identity provider"),
        pytest.param(PLUGIN | {"token": "t"}, True, id="client-go asks no plugin beside a token"),
        pytest.param(PLUGIN | {"tokenFile": "t"}, True, id="nor beside a token's file"),
        pytest.param(PLUGIN | {"username": "a", "password": "b"}, True, id="nor beside a name and password"),
        pytest.param(PLUGIN | {"token": ""}, False, id="an empty token is none"),
        pytest.param({"exec": None, "auth-provider": None}, True, id="nulls"),
    ],
)
def test_only_a_plugin_or_provider_needs_to_be_asked(user: dict[str, Any], plain: bool) -> None:
    assert select(document(user=user)).identity.is_plain == plain


def test_no_secret_is_in_a_selections_text() -> None:
    user = {"token": "hidden", "client-certificate-data": encoded("hidden"), "client-key-data": encoded("hidden")}
    for one in (user, {"username": "a", "password": "hidden"}):
        text = repr(select(document(user=one)))
        assert "hidden" not in text
        assert encoded("a:hidden") not in text


CA = {"certificate-authority-data": encoded("x")}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "contexts twice": (document(contexts=document()["contexts"] * 2), "contexts: 'home' is there twice"),
    "clusters twice": (document(clusters=cluster_of("https://a")["clusters"] * 2), "clusters: 'c' is there twice"),
    "users twice": (document(users=document()["users"] * 2), "users: 'u' is there twice"),
    "user missing": (document(users=[]), "context 'home': no user 'u' in users: none"),
    "another user": (document(users=[{"name": "v"}]), "context 'home': no user 'u' in users: v"),
    "cluster missing": (document(clusters=None), "context 'home': no cluster 'c' in clusters: none"),
    "context without cluster": (document(contexts=[{"name": "home", "context": {}}]), "no cluster '' in clusters: c"),
    "context that is null": (document(contexts=[{"name": "home", "context": None}]), "no cluster '' in clusters: c"),
    "cluster that is null": (document(clusters=[{"name": "c", "cluster": None}]), "cluster 'c': server '' is not"),
    "name that is a number": (document(contexts=[{"name": 1}]), r"got `int` - at `\$.contexts\[0\].name`"),
    "users that are a mapping": (document(users={"u": {}}), r"got `object` - at `\$.users`"),
    "another kind": (document(kind="Secret"), "its kind is 'Secret', not Config"),
    "server without scheme": (document(cluster={"server": "a:1"}), "cluster 'c': server 'a:1' is not an http or https"),
    "server with a line break": (document(cluster={"server": "https://a\nb"}), "server .* is not an http or https"),
    "server of a file": (document(cluster={"server": "file:///etc/passwd"}), "cluster 'c': server 'file:"),
    "proxy of SOCKS": (document(cluster={"proxy-url": "socks5://a"}), "proxy-url 'socks5://a' .*only http and https"),
    "proxy without scheme": (document(cluster={"proxy-url": "a:3128"}), "cluster 'c': proxy-url 'a:3128'"),
    "insecure that is a text": (document(cluster={"insecure-skip-tls-verify": "true"}), "insecure-skip-tls-verify"),
    "insecure with authority": (document(cluster=CA | {"insecure-skip-tls-verify": True}), "-data of 'c': not allowed"),
    "authority twice": (document(cluster=CA | {"certificate-authority": "a"}), "certificate-authority of 'c': .* too"),
    "authority not base64": (
        document(cluster={"certificate-authority-data": "%"}),
        "authority-data of 'c' is not base",
    ),
    "authority without padding": (document(cluster={"certificate-authority-data": "YQ"}), "of 'c' is not base64"),
    "authority not ASCII": (document(cluster={"certificate-authority-data": "é"}), "of 'c' is not base64"),
    "certificate not base64": (
        document(user={"client-certificate-data": "%", "client-key": "k"}),
        "client-certificate-data of 'u' is not base64",
    ),
    "key not base64": (
        document(user={"client-certificate": "c", "client-key-data": "%"}),
        "client-key-data of 'u' is not base64",
    ),
    "certificate without key": (document(user={"client-certificate": "c"}), "client-certificate of 'u': client-key or"),
    "certificate twice": (
        document(user={"client-certificate": "c", "client-certificate-data": encoded("x"), "client-key": "k"}),
        "client-certificate of 'u': client-certificate-data is there too",
    ),
    "key twice": (
        document(user={"client-certificate": "c", "client-key": "k", "client-key-data": encoded("x")}),
        "client-key of 'u': client-key-data is there too",
    ),
    "token and name": (document(user={"token": "t", "username": "a"}), "user 'u': both token and username"),
    "token's file and password": (document(user={"tokenFile": "t", "password": "a"}), "user 'u': both token and"),
    "plugin and provider": (document(user=PLUGIN | OIDC), "user 'u': both exec and auth-provider"),
    "removed provider": (document(user={"auth-provider": {"name": "azure"}}), "user 'u': .*'azure'.* exec plugin"),
    "another identity": (document(user={"token": "t", "as": "bob"}), "user 'u': as 'bob': acting as another user"),
    "token of two lines": (document(user={"token": "a\nb"}), "token of 'u' is not a token"),
    "token not ASCII": (document(user={"token": "é"}), "token of 'u' is not a token"),
    "token of blanks": (document(user={"token": " "}), "token of 'u' is not a token"),
    "token that is a number": (document(user={"token": 12345}), r"\$.users\[0\].user.token"),
    "token that is a boolean": (document(user={"token": True}), r"\$.users\[0\].user.token"),
    "plugin without command": (document(user={"exec": {"apiVersion": "v1"}}), "user 'u': exec has no command"),
    "plugin without version": (document(user={"exec": {"command": "a"}}), "user 'u': exec has no apiVersion"),
    "provider without a name": (document(user={"auth-provider": {}}), "user 'u': auth-provider has no name"),
    "arguments that are a text": (document(user={"exec": PLUGIN["exec"] | {"args": "a"}}), "exec.args"),
}


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD.keys())
def test_each_fault_names_file_and_key(content: dict[str, Any], reason: str) -> None:
    with pytest.raises(ClusterConfigError, match=reason) as caught:
        select(content)
    assert str(caught.value).startswith(str(ONE))
    assert "\n" not in str(caught.value)


def test_of_two_files_the_one_with_the_fault_is_named() -> None:
    with pytest.raises(ClusterConfigError, match=f"^{TWO}: client-key-data of 'u'"):
        select(document(users=None), document(user={"client-certificate": "c", "client-key-data": "%"}))


def test_a_bomb_is_refused_with_its_file() -> None:
    with pytest.raises(ClusterConfigError, match=f"^{ONE} is not a kubeconfig: more than 100 levels"):
        parse_kubeconfig([(ONE, b"users: " + b"[" * 5000)], files="FILES", context=None)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"current-context": "x" * 200_000}, id="no such context"),
        pytest.param({"contexts": [{"name": f"c{number}"} for number in range(20_000)]}, id="many contexts"),
        pytest.param({"contexts": [{"name": "home", "context": {"cluster": "x" * 200_000}}]}, id="no such cluster"),
        pytest.param({"cluster": {"server": "x" * 200_000}}, id="no URL"),
        pytest.param({"kind": "x" * 200_000}, id="another kind"),
    ],
)
def test_a_long_text_of_the_file_is_not_repeated_whole(changes: dict[str, Any]) -> None:
    with pytest.raises(ClusterConfigError) as error:
        select(document(**changes))
    assert len(str(error.value)) < 2_100
