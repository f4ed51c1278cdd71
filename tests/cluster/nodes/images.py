"""The images for the scene's pods, besides the project's own: pause, CoreDNS, and two of Debian with its programs.

The law: built from programs of this machine and Debian's packages; no registry is used.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.cluster.nodes.configs import PAUSE
from tests.deploy.containers import output
from tests.deploy.image import BASE, build_image, buildah, has_image, make_base
from tests.kit.programs import program

WITH_NFTABLES: Final = "localhost/switchback-nftables:0.1.0"
"""The project's image with nft, which wholeip runs."""
COREDNS: Final = "localhost/coredns:1"
TOOLS: Final = "localhost/switchback-tools:v1"
SERVERS: Final = "localhost/switchback-servers:v1"
_PACKAGES: Final[Mapping[str, Sequence[str]]] = {
    TOOLS: ("curl", "nginx-light"),
    SERVERS: ("docker-registry", "openssh-server", "openssh-client", "git"),
}
"""Of Debian, by the image that has them. A change needs another version in the image's name."""

_PAUSE: Final = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"
_RESOLVE: Final = r"""
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

/* Prints the addresses of a name, as the C library that this is linked with resolves it. */
int main(int count, char **words) {
    struct addrinfo *found, hints;
    char text[INET6_ADDRSTRLEN];
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    int error = getaddrinfo(words[1], NULL, &hints, &found);
    if (count != 2 || error) {
        fprintf(stderr, "%s\n", gai_strerror(error));
        return 1;
    }
    for (; found; found = found->ai_next) {
        void *address = found->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)found->ai_addr)->sin_addr
                                                    : (void *)&((struct sockaddr_in6 *)found->ai_addr)->sin6_addr;
        puts(inet_ntop(found->ai_family, address, text, sizeof text));
    }
    return 0;
}
"""


def save_images(folder: Path, *, coredns: str, sources: Path) -> dict[str, Path]:
    """An archive for each image by name, with this CoreDNS; of the project that with nft. The other one: readme.py."""
    nftables = build_image(WITH_NFTABLES, folder=folder, context=sources, target="with-nftables")
    pause, resolve = compile_static("pause", _PAUSE, folder), compile_static("resolve", _RESOLVE, folder)
    make_image(PAUSE, base="scratch", files={pause: "/pause"}, entrypoint=["/pause"])
    make_image(COREDNS, base="scratch", files={Path(program(coredns)): "/coredns"}, entrypoint=["/coredns"])
    for name, packages in _PACKAGES.items():
        make_debian(name, packages)
    tools, servers = "localhost/tools:1", "localhost/servers:1"
    make_image(tools, base=TOOLS, files={resolve: "/usr/local/bin/musl-resolve"}, entrypoint=[])
    make_image(servers, base=SERVERS, files={}, entrypoint=[])
    saved = {}
    for name in (PAUSE, COREDNS, tools, servers):
        saved[name] = save(name, folder / f"{name.partition('/')[2].partition(':')[0]}.tar")
    saved[WITH_NFTABLES] = folder / "switchback-nftables.tar"
    nftables.save(saved[WITH_NFTABLES], name=WITH_NFTABLES)
    return saved


def compile_static(name: str, source: str, folder: Path) -> Path:
    """A C program linked statically with musl."""
    (folder / f"{name}.c").write_text(source, encoding="utf-8")
    command = [program("musl-gcc"), "-static", "-Os", "-o", str(folder / name), str(folder / f"{name}.c")]
    subprocess.run(command, check=True)
    return folder / name


def make_image(name: str, *, base: str, files: Mapping[Path, str], entrypoint: Sequence[str], user: str = "") -> None:
    """An image with some additional files on its base."""
    container = buildah("from", "--pull-never", base).strip()
    try:
        for source, target in files.items():
            buildah("copy", "--quiet", "--chmod", "755", container, str(source), target)
        buildah("config", "--entrypoint", json.dumps(list(entrypoint)), "--user", user, container)
        buildah("commit", "--quiet", container, name)
    finally:
        buildah("rm", container)


def make_debian(name: str, packages: Sequence[str]) -> None:
    """Debian with some of its packages; built once."""
    make_base()
    if has_image(name):
        return
    container = buildah("from", "--pull-never", BASE).strip()
    install = f"apt-get update -q && apt-get install -qy --no-install-recommends {' '.join(packages)} && apt-get clean"
    try:
        output(container, "sh", "-c", install)
        buildah("commit", "--quiet", container, name)
    finally:
        buildah("rm", container)


def save(name: str, file: Path) -> Path:
    """Write an image as an archive for containerd."""
    buildah("push", "--quiet", name, f"docker-archive:{file}:{name}")
    return file
