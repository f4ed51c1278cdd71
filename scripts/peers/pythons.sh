# shellcheck shell=bash
# Newer Pythons, as Debian builds them: from a suite of its own each, with that suite's C library. They run beside this system's,
# which has one version alone, and the image's may be another.

PYTHONS=(trixie:3.13 testing:3.14 testing:3.15)

pythons() {
  local row
  for row in "${PYTHONS[@]}"; do
    python_peer "${row%%:*}" "${row##*:}"
  done
}

# python_peer SUITE MINOR: the folder python3.MINOR, with the program usr/bin/python3.MINOR
python_peer() {
  local name=python$2 version=v$1
  if [ "$ACTION" = list ]; then
    list_peer "$name" "$version"
  elif ! is_built "$name" "$version"; then
    make_python "$1" "$name" "$CACHE/$name-$version/$name" || say "not made: $name; the tests that need it will skip"
  fi
}

# make_python SUITE NAME TARGET: as root, because debootstrap demands it. Its first stage downloads and checks the packages; they
# are only unpacked here.
make_python() {
  local suite=$1 name=$2 target=$3 work package
  if ! have debootstrap || ! have patchelf || [ "$(id -u)" != 0 ]; then
    say "not made: $name (needs root, debootstrap and patchelf); the tests that need it will skip"
    return 0
  fi
  say "making $name of Debian $suite (once; a minute)"
  work=$(mktemp -d)
  mkdir "$work/$name"
  debootstrap --foreign --variant=minbase --include="$name" "$suite" "$work/root" >&2 &&
    for package in "$work"/root/var/cache/apt/archives/*.deb; do
      # /lib and /lib64 are links to the folders in /usr, and have to stay links.
      dpkg-deb --fsys-tarfile "$package" | tar -C "$work/$name" -x --keep-directory-symlink || break
    done && rm -rf "$work/$name"/{boot,var,usr/share} && keep_python "$work/$name" "$target"
  rm -rf "$work"
  is_built "$name" "v$suite" || return 1
}

# keep_python FOLDER TARGET: moves it to where it stays, and has it load its own libraries and not this system's
keep_python() {
  local program=$1/usr/bin/${2##*/} loader
  loader=$2$(patchelf --print-interpreter "$program") &&
    patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$2/usr/lib/$(uname -m)-linux-gnu" "$program" &&
    mkdir -p "$(dirname "$2")" && mv "$1" "$2" && "$2/usr/bin/${2##*/}" -c 'import ctypes, ssl, sqlite3' || { rm -rf "$2"; return 1; }
}
