# shellcheck shell=bash
# The cache of built peers: NAME-VERSION/NAME, a program or a folder. A group of peers is a function that calls `peer`
# for each; so one list serves the build and --list.

# The same as peers_cache in tests/kit/programs.py
CACHE=${SWITCHBACK_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/switchback/peers}

say() { printf 'peers: %s\n' "$*" >&2; }
have() { [[ $1 == /* && -e $1 ]] || PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null; }

# What `peer` does: build or list
ACTION=build

# peer NAME VERSION COMMAND...: builds a peer with COMMAND once, or lists it
peer() { "${ACTION}_peer" "$@"; }

# optional NAME VERSION COMMAND...: a peer whose failed build is not an error
optional() { peer "$@" || say "not built: $1; the tests that need it will skip"; }

# optional_first NAME 'VERSION...' COMMAND...: the first of these versions that builds
optional_first() {
  local name=$1 versions=$2 version
  shift 2
  for version in $versions; do
    is_built "$name" "$version" && { peer "$name" "$version"; return; }
  done
  [ "$ACTION" = build ] || { list_peer "$name"; return; }
  for version in $versions; do
    build_peer "$name" "$version" "$@" && return 0
    say "$name $version does not build here"
  done
  say "not built: $name; the tests that need it will skip"
}

is_built() { [ -x "$CACHE/$1-$2/$1" ]; }

list_peer() {
  local found="missing ${2:-}"
  is_built "$1" "${2:-}" && found=$CACHE/$1-$2
  printf '%-23s %s\n' "$1" "$found"
}

# Runs COMMAND in a fresh folder and keeps its $GOBIN/$PEER. COMMAND also reads $VERSION.
build_peer() {
  local name=$1 version=$2 target work
  shift 2
  is_built "$name" "$version" && return 0
  have go || { say "not built: $name (needs Go); the tests that need it will skip"; return 0; }
  say "building $name $version (once; a program takes minutes)"
  target=$CACHE/$name-$version work=$(mktemp -d)
  mkdir "$work/bin"
  # An explicit check, because `set -e` has no effect if the caller tests the status.
  if ! (
    export GOBIN=$work/bin PEER=$name VERSION=$version CGO_ENABLED=0 GOFLAGS=-mod=mod
    cd "$work" && "$@" && [ -x "$GOBIN/$PEER" ]
  ) >&2; then
    rm -rf "$work"
    return 1
  fi
  mkdir -p "$target" && mv "$work/bin/$name" "$target/$name.new" && mv "$target/$name.new" "$target/$name" && rm -rf "$work"
}
