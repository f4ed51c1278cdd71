#!/usr/bin/env bash
# Runs the README's two commands as on a stranger's computer: a fresh clone of HEAD, no peers, a PATH with little more than
# make, git and Python, a home folder that cannot be written, and no root (as root, it becomes the user nobody).
# A test that needs more than it says fails here. What is not committed is not tested.
#   scripts/test-bare.sh                       with python3
#   scripts/test-bare.sh --image [ARGUMENT...] with the Python of the image (BASE in the Dockerfile), from `make peers`
#   scripts/test-bare.sh ARGUMENT...           with arguments for pytest
#   PASSED=FILE scripts/test-bare.sh           and write which tests passed
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR
source scripts/peers/cache.sh

BASICS=(
  awk basename bash cat chmod cmp comm cp cut date diff dirname echo env expand expr false find getconf git grep gzip head id
  install kill ln ls make mkdir mktemp mv nice nohup nproc od paste printf ps python3 readlink realpath rm rmdir sed seq sh
  sha256sum sleep sort stty tail tar tee test timeout touch tr true uname uniq wc xargs
)

say() { printf 'test-bare: %s\n' "$*" >&2; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir -m 755 "$folder/bin" && mkdir -m 555 "$folder/home" && mkdir -m 1777 "$folder/tmp"
for name in "${BASICS[@]}"; do
  # Without pyenv's shims, which need more programs and another home.
  if found=$(PATH=/usr/local/bin:/usr/bin:/bin type -P "$name"); then ln -s "$found" "$folder/bin/$name"; fi
done
git clone --quiet . "$folder/checkout"

if [ "${1:-}" = --image ]; then
  shift
  minor=$(sed -n 's/^ARG BASE=.*python:3\.\([0-9]*\)-.*/\1/p' Dockerfile)
  found=$(find "$CACHE" -maxdepth 2 -path "*/python3.$minor-v*/python3.$minor" | sort | tail -n 1)
  [ -n "$found" ] || { say "no Python 3.$minor: run make peers"; exit 1; }
  # A copy, because nobody may not enter another user's cache; the program has its own place in it.
  python=$folder/image
  cp -a "$found" "$python"
  loader=$(patchelf --print-interpreter "$found/usr/bin/python3.$minor")
  patchelf --set-interpreter "$python${loader#"$found"}" --force-rpath --set-rpath "$python/usr/lib/$(uname -m)-linux-gnu" \
    "$python/usr/bin/python3.$minor"
  # Debian's Python has no pip of its own for a new environment.
  make --quiet .venv/.synced
  .venv/bin/uv venv --quiet --seed --python "$python/usr/bin/python3.$minor" "$folder/checkout/.venv"
fi

become=()
if [ "$(id -u)" = 0 ]; then
  chown -R 65534:65534 "$folder/checkout"
  become=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
play() {
  "${become[@]}" env -u XDG_CACHE_HOME -u SWITCHBACK_PEERS -u UV_CACHE_DIR -u PYENV_ROOT -u REQUIRE_PEERS PATH="$folder/bin" HOME="$folder/home" \
    TMPDIR="$folder/tmp" make --no-print-directory -C "$folder/checkout" "$@"
}
play demo
status=0
play test ARGS="--note-passed=$folder/tmp/passed $*" || status=$?
[ -z "${PASSED:-}" ] || cp "$folder/tmp/passed" "$PASSED"
exit "$status"
