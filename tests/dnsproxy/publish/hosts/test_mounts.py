"""Mounts in the kernel's notation."""

from __future__ import annotations

import pytest

from dnsproxy.publish.hosts.mounts import Mount, find_mount

MOUNTINFO = b"""\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:21 / /proc rw shared:5 - proc proc rw
41 22 254:0 /etc/hosts /host/hosts rw,relatime - ext4 /dev/vda rw
42 22 254:0 /etc/hosts//deleted /gone/hosts rw,relatime master:1 - ext4 /dev/vda rw
43 22 254:0 /a\\040b /with\\040blank/hosts rw - ext4 /dev/vda rw
44 22 254:0 /etc/hosts//deleted /twice/hosts rw - ext4 /dev/vda rw
45 22 254:0 /etc/hosts /twice/hosts rw - ext4 /dev/vda rw
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(b"/host/hosts", Mount(deleted=False), id="a file"),
        pytest.param(b"/gone/hosts", Mount(deleted=True), id="a file that was replaced"),
        pytest.param(b"/with blank/hosts", Mount(deleted=False), id="a blank"),
        pytest.param(b"/twice/hosts", Mount(deleted=False), id="the topmost of two"),
        pytest.param(b"/proc/hosts", None, id="below a mount"),
        pytest.param(b"/host", None, id="above a mount"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_a_mount_is_found_at_its_own_path(path: bytes, expected: Mount | None) -> None:
    assert find_mount(MOUNTINFO, path) == expected


@pytest.mark.parametrize("mountinfo", [b"", b"\n\n", b"1 2 3", b"41 22 254:0 /etc/hosts"])
def test_garbage_has_no_mounts(mountinfo: bytes) -> None:
    assert find_mount(mountinfo, b"/etc/hosts") is None
