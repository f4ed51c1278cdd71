#!/usr/bin/env bash
# `make image`: build the project's image, and write it to an archive that every cluster's own command takes.
#
#   IMAGE    the image's name, REGISTRY/NAME without a tag, as for `make release`; the default is that of deploy/
#   TARGET   the Dockerfile's target: programs, or with-nftables for an image of wholeip's agents
#   BUILDER  docker, podman or buildah; the default is the first of them that works here
#   ARGS     further options of the builder, such as --build-arg=PIP_INDEX_URL=https://index.example.org/simple
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/.."

fail() {
    echo "image: $1" >&2
    exit "$2"
}

# BUILDER: whether it works. The command of docker may be there without its daemon.
works() {
    case $1 in
    docker | podman) timeout 30 "$1" info ;;
    *) buildah --version ;;
    esac >/dev/null 2>&1
}

find_builder() {
    for one in docker podman buildah; do
        if works "$one"; then
            echo "$one"
            return
        fi
    done
    fail "none of docker, podman and buildah works here: install one, or start docker's daemon" 3
}

target=${TARGET:-programs}
case $target in
programs) name=switchback ;;
with-nftables) name=switchback-nftables ;;
*) fail "TARGET=$target is neither programs nor with-nftables" 2 ;;
esac
image=${IMAGE:-localhost/$name}
[[ ${image##*/} != *[:@]* ]] || fail "IMAGE=$image has a tag or a digest: leave it out, the tag is the version" 2
[[ $image == */* ]] || fail "IMAGE=${image@Q} begins with no registry: registry.example.org/switchback" 2
case ${BUILDER:-docker} in
docker | podman | buildah) ;;
*) fail "BUILDER=$BUILDER is none of docker, podman, buildah" 2 ;;
esac
part='[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*' host='([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?'
[[ $image =~ ^$host/$part(/$part)*$ ]] || fail "IMAGE=${image@Q} is no name of an image: registry.example.org/switchback" 2
registry=${image%%/*}
[[ $registry == *[.:]* || $registry == localhost ]] || fail "IMAGE=$image begins with no registry: registry.example.org/$image" 2
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
tagged=$image:$version
archive=build/$name.tar

builder=${BUILDER:-$(find_builder)}
works "$builder" || fail "$builder does not work here: \`$builder info\` shows why" 3
mkdir -p build
# Nobody should load the archive of an earlier build after one that failed, or a part of one.
rm -f "$archive"
trap 'rm -f "$archive.part"' EXIT
trap 'exit 130' INT TERM
# A changed tree is no commit, nor is another repository's that this one lies in.
revision=unknown
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] && [ -z "$(git status --porcelain)" ]; then
    revision=$(git rev-parse HEAD)
fi
options=(--target "$target" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" --tag "$tagged")
# shellcheck disable=SC2086 # ARGS are words
"$builder" build "${options[@]}" ${ARGS:-} .

case $builder in
docker) docker save --output "$archive.part" "$tagged" ;;
podman) podman save --quiet --format docker-archive --output "$archive.part" "$tagged" ;;
buildah) buildah push --quiet "$tagged" "docker-archive:$archive.part:$tagged" ;;
esac
[ -s "$archive.part" ] || fail "$builder wrote no archive" 3
mv "$archive.part" "$archive"
echo "$tagged is built, and in $archive"
