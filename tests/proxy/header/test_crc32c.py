"""The checksum against published values."""

from __future__ import annotations

import pytest

from proxy.header.v2 import crc32c


@pytest.mark.parametrize(
    ("octets", "checksum"),
    [
        pytest.param(b"", 0x00000000, id="nothing"),
        pytest.param(b"123456789", 0xE3069283, id="the check value of the catalogues"),
        # RFC 3720 appendix B.4, which prints the octets in the order in which they are sent.
        pytest.param(bytes(32), 0x8A9136AA, id="zeros"),
        pytest.param(b"\xff" * 32, 0x62A8AB43, id="ones"),
        pytest.param(bytes(range(32)), 0x46DD794E, id="rising"),
        pytest.param(bytes(reversed(range(32))), 0x113FDB5C, id="falling"),
    ],
)
def test_the_checksum_is_the_published_one(octets: bytes, checksum: int) -> None:
    assert crc32c(octets) == checksum
