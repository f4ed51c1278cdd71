#!/usr/bin/env bash
# Fetches and builds the clients of tests/clients: programs that look names up with the resolvers of glibc, musl, Go and
# Rust, and Debian's systemd-resolved. They go into the cache of scripts/peers.sh, NAME-vVERSION/NAME, and each is built
# once for a version of its source. Nothing of systemd-resolved is installed: a package would change /etc/resolv.conf.
# You may run this any number of times.
#
#   scripts/peers-clients.sh         everything
#   scripts/peers-clients.sh --list  list the existing and the missing ones; builds nothing
#
# SWITCHBACK_PEERS  the cache folder (default: ~/.cache/switchback/peers)
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
PROGRAMS=$HERE/../tests/clients/programs
# shellcheck source-path=SCRIPTDIR
source "$HERE/peers/cache.sh"
# resolved is that of Debian 12. musl before 1.2.4 has no TCP, and images with it are still in use: both sides of that.
RESOLVED_VERSION=v252
RESOLVED_SUITE=bookworm
MUSL_SUITE=trixie
MUSL_OLD_SUITE=bookworm

source "$HERE/peers/debian.sh"
# package:program
CLIENTS_DEBIAN=(gcc:gcc libc6-dev:/usr/include/netdb.h nodejs:node openjdk-17-jdk-headless:javac openjdk-17-jdk-headless:java)

# The version of a program: a hash of its sources. tests/clients/clients.py computes the same.
hash_of() { (cd "$PROGRAMS/$1" && shift && cat "$@" | sha256sum | cut -c1-12); }

C_VERSION=v$(hash_of c lookup.c)
GO_VERSION=v$(hash_of go go.mod main.go)
RUST_VERSION=v$(hash_of rust Cargo.lock Cargo.toml src/main.rs)

# keep NAME VERSION NEEDED COMMAND...: runs COMMAND in a fresh folder and keeps its NAME, a program or a folder
keep() {
  local name=$1 version=$2 needed=$3 target work
  shift 3
  target=$CACHE/$name-$version
  [ ! -x "$target/$name" ] || return 0
  have "$needed" || { say "not built: $name (needs $needed); the tests that need it will skip"; return 0; }
  say "building $name $version"
  work=$(mktemp -d)
  # An explicit check, because `set -e` has no effect if the caller tests the status.
  if ! (cd "$work" && "$@") >&2; then
    rm -rf "$work"
    say "not built: $name; the tests that need it will skip"
    return 0
  fi
  mkdir -p "$target"
  mv "$work/$name" "$target/$name.new"
  mv "$target/$name.new" "$target/$name"
  rm -rf "$work"
}

# unpack SUITE PACKAGE...: the files of Debian packages into root/, with an apt that knows nothing of this computer's
unpack() {
  local suite=$1 options one
  shift
  mkdir -p apt/lists/partial apt/cache/archives/partial root
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian %s main\n' \
    "$suite" >apt/sources.list
  options=(-o "Dir::Etc::SourceList=$PWD/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root
    -o "Dir::State::Lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache" -o Dir::State::status=/dev/null)
  apt-get "${options[@]}" -q update && apt-get "${options[@]}" -q download "$@" || return 1
  for one in *.deb; do
    dpkg -x "$one" root || return 1
  done
}

build_glibc() {
  gcc -O2 -Wall -o lookup-glibc "$PROGRAMS/c/lookup.c"
}

# With the specs of the package, which names installed paths.
build_musl() {
  local name=$1 suite=$2 version folder
  unpack "$suite" musl-dev || return 1
  version=$(dpkg-deb -f musl-dev_*.deb Version)
  folder=$(echo "$PWD"/root/usr/lib/*-linux-musl)
  sed -i "s|/usr/|$PWD/root/usr/|g" "$folder/musl-gcc.specs"
  gcc -O2 -Wall -static -DVERSION="\"${version%%-*}\"" -specs "$folder/musl-gcc.specs" -o "$name" "$PROGRAMS/c/lookup.c"
}

build_go() {
  (cd "$PROGRAMS/go" && CGO_ENABLED=1 go build -trimpath -o "$OLDPWD/lookup-go" .)
}

build_rust() {
  CARGO_TARGET_DIR=$PWD/target cargo build --locked --quiet --release --manifest-path "$PROGRAMS/rust/Cargo.toml" &&
    mv target/release/lookup-hickory .
}

fetch_resolved() {
  unpack "$RESOLVED_SUITE" systemd-resolved libsystemd-shared libnss-resolve && mv root systemd-resolved
}

list() {
  local name
  list_packages "${CLIENTS_DEBIAN[@]}"
  for name in "lookup-glibc-$C_VERSION" "lookup-musl-$C_VERSION" "lookup-musl-old-$C_VERSION" "lookup-go-$GO_VERSION" \
    "lookup-hickory-$RUST_VERSION" "systemd-resolved-$RESOLVED_VERSION"; do
    list_peer "${name%-v*}" "v${name##*-v}"
  done
}

case "${1:-}" in
  --list) list ;;
  '')
    install_packages "${CLIENTS_DEBIAN[@]}"
    keep lookup-glibc "$C_VERSION" gcc build_glibc
    keep lookup-musl "$C_VERSION" gcc build_musl lookup-musl "$MUSL_SUITE"
    keep lookup-musl-old "$C_VERSION" gcc build_musl lookup-musl-old "$MUSL_OLD_SUITE"
    keep lookup-go "$GO_VERSION" go build_go
    keep lookup-hickory "$RUST_VERSION" cargo build_rust
    keep systemd-resolved "$RESOLVED_VERSION" apt-get fetch_resolved
    list
    ;;
  *) say "unknown argument $1 (only --list)"; exit 2 ;;
esac
