# shellcheck shell=bash
# Programs and folders from published Go modules; commands for `peer`, which sets PEER, VERSION and GOBIN.

# module_program MODULE ./PACKAGE [LDFLAG...]: a program of this module
module_program() {
  main_module "$1" && go_program "$1${2#.}" "${@:3}"
}

# main_module MODULE [SED-OPTION...]: a go.mod for a build of this module's programs, its text edited by sed.
# Only the main module's `replace` and `exclude` count, and `go install` rejects a module with `replace`. So our main
# module starts as a copy of the program's go.mod. A replacement by a folder is dropped: a published module does not
# contain that folder.
main_module() {
  local module=$1 file
  shift
  file=$(module_path "$module" GoMod) && [ -n "$file" ] &&
    sed -E "$@" -e '/=> \.\.?\//d' "$file" >go.mod &&
    go mod edit -module=switchback.dev/peers -require="$module@$VERSION"
}

# go_program PACKAGE [LDFLAG...]: builds $PEER in the current main module
go_program() {
  go build -trimpath -ldflags "-s -w ${*:2}" -o "$GOBIN/$PEER" "$1"
}

# module_path MODULE GoMod|Dir: the path of its go.mod or its folder, downloaded; logs why it cannot be had
module_path() {
  go mod download -json "$1@$VERSION" | sed -n "s/.*\"$2\": \"\(.*\)\".*/\1/p; /\"Error\":/w /dev/stderr"
}

# module_folder MODULE FOLDER: a copy of one folder of this module
module_folder() {
  local source
  source=$(module_path "$1" Dir) && [ -n "$source" ] && cp -r "$source/$2" "$GOBIN/$PEER" && make_removable
}

# module_folders MODULE PATH...: a folder with copies of these files and folders
module_folders() {
  local source
  source=$(module_path "$1" Dir) && [ -n "$source" ] && mkdir "$GOBIN/$PEER" &&
    (cd "$source" && cp -r "${@:2}" "$GOBIN/$PEER") && make_removable
}

# A module's files are read-only, and the cache must be removable.
make_removable() { chmod -R u+w "$GOBIN/$PEER"; }
