#!/usr/bin/env bash
# Runs the tests of the pure core, and of what meets the interpreter, on each other Python of this computer that users may have:
# those on the PATH, those of `make peers`, and pyenv's.
# A Python that is not installed is named and skipped. Each gets an environment of its own in build/pythons.
#   scripts/test-pythons.sh [MINOR...]      for example 12 13
set -euo pipefail
cd "$(dirname "$0")/.."
minors=("$@")
[ "${#minors[@]}" -gt 0 ] || minors=(12 13 14 15)
# Sockets, imports and the byte paths, where the standard library is used most
versions_differ=(tests/sidecar/{cli,sockets,loop} tests/dnsproxy/{datagrams,server} tests/proxy/relay)

# shellcheck source-path=SCRIPTDIR
source scripts/peers/cache.sh

# find_python MINOR: the path of one that runs; a shim of pyenv may have no version to run.
find_python() {
  local candidate
  for candidate in "$(command -v "python3.$1" || true)" "$CACHE/python3.$1"-v*/"python3.$1/usr/bin/python3.$1" \
    "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$1".*/bin/python; do
    if [ -x "$candidate" ] && "$candidate" -c "import sys; sys.exit(sys.version_info[:2] != (3, $1))" 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

for minor in "${minors[@]}"; do
  if ! python=$(find_python "$minor"); then
    echo "Python 3.$minor: skipped, it is not installed"
    continue
  fi
  environment=$PWD/build/pythons/3.$minor
  UV_PROJECT_ENVIRONMENT=$environment UV_PYTHON_DOWNLOADS=never .venv/bin/uv sync --frozen --quiet --python "$python"
  echo "Python 3.$minor: $python"
  "$environment/bin/pytest" --pure --quiet --numprocesses="${WORKERS:-2}" --dist=loadfile
  "$environment/bin/pytest" --quiet --numprocesses="${WORKERS:-2}" --dist=loadfile "${versions_differ[@]}"
done
