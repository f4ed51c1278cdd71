"""Keys: what tsig-keygen prints is read, and every other text is an error with a line and without a secret."""

from __future__ import annotations

import base64
import subprocess
from typing import Final

import dns.tsigkeyring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.zone.tsig_keys import ALGORITHMS, BadKeys, TsigKey, parse_keys

SECRET: Final = base64.b64encode(b"a secret that nobody may see").decode()
OCTETS: Final = base64.b64decode(SECRET)


def statement(name: str = "transfer", algorithm: str = "hmac-sha256", secret: str = SECRET) -> str:
    return f'key "{name}" {{\n\talgorithm {algorithm};\n\tsecret "{secret}";\n}};\n'


@pytest.mark.peer("tsig-keygen")
@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if "." not in name])
def test_the_output_of_tsig_keygen_is_read(algorithm: str) -> None:
    printed = subprocess.run(
        ["tsig-keygen", "-a", algorithm, "Transfer.example.org"], capture_output=True, text=True, check=True
    ).stdout
    (key,) = parse_keys(printed)
    secret = printed.split('"')[3]
    assert key == TsigKey("transfer.example.org", ALGORITHMS[algorithm], base64.b64decode(secret))
    ring = dns.tsigkeyring.from_text({key.name: (key.algorithm, secret)})
    assert next(iter(ring.values())).secret == key.secret


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f'key "a" {{ algorithm hmac-sha256; secret "{SECRET}"; }};', id="on one line"),
        pytest.param(f"key a {{ secret {SECRET}; algorithm hmac-sha256; }};", id="without quotes, in the other order"),
        pytest.param(f'key"a"{{algorithm"hmac-sha256";secret"{SECRET}";}};', id="without spaces"),
        pytest.param("// one\n# two\n/* three\n*/" + statement("a"), id="after comments"),
        pytest.param(statement("a", "HMAC-SHA256."), id="the algorithm's name in DNS"),
        pytest.param(statement("A."), id="a final dot, in upper case"),
        pytest.param(statement("a").replace("\n", "\r\n"), id="line ends of Windows"),
        pytest.param(statement("a", secret=f"{SECRET[:8]} {SECRET[8:]}"), id="a secret with a space"),
    ],
)
def test_other_ways_to_write_a_key_are_read(text: str) -> None:
    assert parse_keys(text) == (TsigKey("a", "hmac-sha256", OCTETS),)


def test_keys_keep_their_order_and_hide_their_secrets() -> None:
    found = parse_keys(statement("b") + statement("a", "hmac-md5"))
    assert [(key.name, key.algorithm) for key in found] == [("b", "hmac-sha256"), ("a", "hmac-md5.sig-alg.reg.int")]
    assert "secret" not in repr(found)
    assert str(OCTETS) not in repr(found)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "there is no key statement", id="an empty file"),
        pytest.param("// nothing\n", "there is no key statement", id="a comment alone"),
        pytest.param(SECRET, "line 1: only key statements", id="the secret alone"),
        pytest.param(f"transfer:{SECRET}", "line 1: only key statements", id="dig's notation"),
        pytest.param("options { };", "line 1: only key statements", id="another statement"),
        pytest.param(statement() + "zone a {};", "line 5: only key statements", id="another statement after a key"),
        pytest.param(statement() + statement(), "line 5: key transfer is there twice", id="a key twice"),
        pytest.param(
            statement() + statement("TRANSFER."), "line 5: key transfer is there twice", id="in other letters"
        ),
        pytest.param('key "a"', "line 1: the text ends", id="cut after the name"),
        pytest.param(statement()[:-3], "the text ends", id="cut before the end"),
        pytest.param(statement().replace("};", "}"), "the text ends", id="no semicolon at the end"),
        pytest.param(statement().replace("256;", "256"), "line 3: ';' is missing", id="no semicolon inside"),
        pytest.param(statement().replace(" {", ""), "line 2: '{' is missing", id="no brace"),
        pytest.param(statement(algorithm="hmac-sha3"), "line 2: that is no algorithm", id="an unknown algorithm"),
        pytest.param(statement(algorithm=SECRET, secret="hmac-sha256"), "line 2: that is no algorithm", id="swapped"),
        pytest.param(statement(secret=SECRET[:-1] + "!"), "not in base64", id="not base64"),
        pytest.param(statement(secret=SECRET[:-3]), "not in base64", id="a cut secret"),
        pytest.param(statement(secret=""), "is empty", id="an empty secret"),
        pytest.param(f'key a {{ secret "{SECRET}"; }};', "line 1: key a has no algorithm", id="no algorithm"),
        pytest.param("key a { algorithm hmac-sha256; };", "line 1: key a has no secret", id="no secret"),
        pytest.param(f"key a {{ secret {SECRET}; secret {SECRET}; }};", "a second secret", id="two secrets"),
        pytest.param(f"key a {{ {SECRET}; }};", "an algorithm and a secret, and nothing else", id="no option"),
        pytest.param(statement(""), "a key's name", id="an empty name"),
        pytest.param(statement("a..b"), "a key's name", id="an empty label"),
        pytest.param(statement("a" * 64), "a key's name", id="a label of 64 characters"),
        pytest.param(statement(".".join(["a" * 60] * 5)), "a key's name", id="a name of 304 characters"),
        pytest.param(statement("a b"), "a key's name", id="a space in the name"),
        pytest.param(statement("a\nb"), "is missing", id="a line end in the name"),
    ],
)
def test_a_text_that_is_no_list_of_keys_is_an_error_without_its_secret(text: str, fault: str) -> None:
    with pytest.raises(BadKeys) as caught:
        parse_keys(text)
    assert fault in str(caught.value)
    assert SECRET[:8] not in str(caught.value)
    assert caught.value.__cause__ is None


@given(st.text('key"{};/*# \n\\a.', max_size=60) | st.text(max_size=40))
def test_any_text_is_keys_or_an_error(text: str) -> None:
    try:
        found = parse_keys(text)
    except BadKeys:
        return
    assert all(key.secret for key in found)
