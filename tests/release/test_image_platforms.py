"""The images for amd64 and arm64, with nft: nothing in one is of the other's machine, and they hold the same."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from release.artefacts import image_name
from tests.deploy.containers import in_pod, output, packages_in, running
from tests.deploy.image import BASE, BASE_ARM64, Image, forget_unnamed, has_image, read_image
from tests.kit.faulty_api import AUTHORITY
from tests.kit.programs import program
from tests.release.clones import VERSION

pytestmark = [
    pytest.mark.peer("buildah", "debian-base", "debian-base-arm64", "kubectl", "readelf", "skopeo"),
    pytest.mark.timeout(900),
]

MACHINES: Mapping[str, tuple[int, str]] = {"amd64": (62, "x86_64"), "arm64": (183, "aarch64")}
"""The number in an ELF header (e_machine), and the name in wheels and folders."""
both = pytest.mark.parametrize("machine", MACHINES)


@pytest.fixture(scope="module")
def images(image_dist: Path) -> Iterator[Mapping[str, Image]]:
    """Those of the release with nft, by machine."""
    source = f"oci-archive:{image_dist / image_name('switchback-nftables', VERSION)}:{VERSION}"
    with ExitStack() as stack:
        pulled = {}
        for machine in MACHINES:
            pulled[machine] = read_image(source, machine=machine)
            stack.callback(pulled[machine].remove)
        yield pulled


def test_another_run_that_prunes_leaves_them(images: Mapping[str, Image]) -> None:
    forget_unnamed()
    assert [name for name, image in images.items() if not has_image(image.name)] == []


@both
def test_every_program_and_library_is_of_the_machine(images: Mapping[str, Image], machine: str) -> None:
    with images[machine].mounted() as root:
        files = {str(path.relative_to(root)): number for path, number in elf_files(root)}
    assert {name for name in files if name.startswith("app/")}
    assert "usr/sbin/nft" in files
    assert {name for name, number in files.items() if number != MACHINES[machine][0]} == set()
    assert len(files) > 100


@both
def test_every_wheel_is_for_the_machine(images: Mapping[str, Image], machine: str) -> None:
    with images[machine].mounted() as root:
        wheels = {path.parent.name: path.read_text() for path in root.glob("app/lib/*/site-packages/*.dist-info/WHEEL")}
    tags = {name: re.findall(r"^Tag: (.*)$", text, re.MULTILINE) for name, text in wheels.items()}
    platforms = {name: {tag.rpartition("-")[2] for tag in found} for name, found in tags.items()}
    assert len(platforms) > 15
    assert [name for name, found in platforms.items() if found != {"any"}]
    for name, found in platforms.items():
        assert all(one == "any" or one.endswith(MACHINES[machine][1]) for one in found), (name, found)


def test_both_have_the_same_packages(images: Mapping[str, Image]) -> None:
    assert packages_in(images["arm64"]) == packages_in(images["amd64"]) != set()
    assert unpacked(images["arm64"]) == unpacked(images["amd64"]) != set()


def test_both_have_the_same_files_apart_from_what_is_compiled(images: Mapping[str, Image]) -> None:
    """Byte code too: it is made where the image is built, and is the same for all machines."""
    programs = {machine: texts_of(image) for machine, image in images.items()}
    assert programs["arm64"] == programs["amd64"]
    assert len(programs["arm64"]) > 1000


def test_both_run_alike(images: Mapping[str, Image]) -> None:
    configs = {machine: image.document for machine, image in images.items()}
    assert {machine: config["architecture"] for machine, config in configs.items()} == {
        "amd64": "amd64",
        "arm64": "arm64",
    }
    settings = {machine: {**config["config"], "Labels": None} for machine, config in configs.items()}
    assert settings["arm64"] == settings["amd64"]
    # One label is that of one image alone, see build_image.
    labels = [set(config["config"]["Labels"]) for config in configs.values()]
    assert labels[0] == labels[1]
    assert configs["arm64"]["config"]["User"] == "65532:65532"


@both
def test_every_library_that_nft_needs_is_in_the_image(images: Mapping[str, Image], machine: str) -> None:
    with images[machine].mounted() as root:
        folder = root / "usr" / "lib" / f"{MACHINES[machine][1]}-linux-gnu"
        waiting, seen = [root / "usr" / "sbin" / "nft"], set[str]()
        while waiting:
            for name in needed(waiting.pop()) - seen:
                assert (folder / name).exists(), name
                seen.add(name)
                waiting.append(folder / name)
    assert {"libc.so.6", "libnftables.so.1", "libmnl.so.0"} <= seen


@both
def test_only_nft_and_its_libraries_are_added_to_the_base(images: Mapping[str, Image], machine: str) -> None:
    with Image(BASE if machine == "amd64" else BASE_ARM64).mounted() as root:
        base = paths_in(root)
    with images[machine].mounted() as root:
        added = {path for path in paths_in(root) - base if path.partition("/")[0] != "app"}
        libraries = f"usr/lib/{MACHINES[machine][1]}-linux-gnu/"
        assert base <= paths_in(root)
    packages = {f"usr/share/doc/{name}/copyright" for name, _ in unpacked(images[machine])}
    status = {f"var/lib/dpkg/status.d/{name}" for name, _ in unpacked(images[machine])}
    assert {path for path in added if not path.startswith(libraries)} == {"usr/sbin/nft", *packages, *status}


def test_wholeip_runs_nft_from_the_image(images: Mapping[str, Image], tmp_path: Path) -> None:
    """In a network of its own, so that no rule reaches this machine's; there is no API server in it."""
    words = ["wholeip", "run", "--node-name=node", "--admin=127.0.0.1:8080"]
    options = ["--user=0", "--cap-add=CAP_NET_ADMIN"]
    options += in_pod(tmp_path, port=9, authority=AUTHORITY, token="token")
    inside = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    with images["amd64"].container() as container:
        assert output(container, "nft", "--version").startswith("nftables v1.")
        assert "Usage:" in output(container, "wholeip", "uninstall", "--help")
        log = tmp_path / "log"
        with running(container, *words, log=log, event="retrying", options=options, inside=inside):
            assert "nft" not in log.read_text()


def elf_files(root: Path) -> Iterator[tuple[Path, int]]:
    """Each ELF file, and the number of its machine (e_machine, at octet 18)."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(20)
            if head.startswith(b"\x7fELF"):
                yield path, struct.unpack_from("<H", head, 18)[0]


def needed(path: Path) -> set[str]:
    """The libraries that a program or library names (DT_NEEDED), without the loader."""
    done = subprocess.run([program("readelf"), "-d", str(path)], capture_output=True, text=True, check=True)
    return {name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout) if not name.startswith("ld-linux")}


def unpacked(image: Image) -> set[tuple[str, str]]:
    """The name and version of each Debian package that was unpacked over the base."""
    with image.mounted() as root:
        texts = [path.read_text() for path in (root / "var" / "lib" / "dpkg" / "status.d").iterdir()]
    fields = [dict(re.findall(r"^(Package|Version): (.*)$", text, re.MULTILINE)) for text in texts]
    return {(one["Package"], one["Version"]) for one in fields}


def texts_of(image: Image) -> dict[str, str]:
    """A hash of each file of the programs and their packages by its path, without what differs by machine."""
    with image.mounted() as root:
        files = [path for path in (root / "app").rglob("*") if path.is_file() and not path.is_symlink()]
        same = [one for one in files if one.suffix != ".so" and one.name not in {"WHEEL", "RECORD"}]
        return {str(one.relative_to(root)): hashlib.sha256(one.read_bytes()).hexdigest() for one in same}


def paths_in(root: Path) -> set[str]:
    """The paths of all files and links of an image."""
    found = (Path(folder) / name for folder, _, names in os.walk(root) for name in names)
    return {str(path.relative_to(root)) for path in found}
