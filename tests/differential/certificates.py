"""Certificates for the Secrets of generated sets: a controller drops what it cannot read."""

from __future__ import annotations

import base64

import trustme


def secret() -> dict[str, str]:
    """`tls.crt` and `tls.key` of a server in Base64."""
    issued = trustme.CA().issue_cert("*.example.org")
    files = {"tls.crt": issued.cert_chain_pems[0], "tls.key": issued.private_key_pem}
    return {name: base64.b64encode(one.bytes()).decode() for name, one in files.items()}
