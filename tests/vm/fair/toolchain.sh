# shellcheck shell=bash
# For tests/vm/fair.sh: a C compiler and something to compile, as options of scripts/vm.

# The source of a package that Cargo.lock names, fetched where it is missing.
source_folder() {
    (cd "$REPO" && cargo metadata --quiet --locked --format-version 1 --filter-platform x86_64-unknown-linux-gnu) |
        python3 -c 'import json, pathlib, sys
print(*{pathlib.Path(p["manifest_path"]).parent for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1]})' "$1"
}

# zlib, which comes with libbpf-sys, and all that it takes to make it, a word per line.
toolchain_in_guest() {
    local zlib programs=() tool file
    zlib=$(source_folder libbpf-sys)/zlib
    [[ -e $zlib/Makefile.in ]] || die "no zlib in $zlib"
    for tool in as ar; do programs+=("$(command -v "$tool")"); done
    programs+=("$(command -v gcc)" "$(command -v make)" "$(gcc -print-prog-name=cc1)")
    printf -- '--add\n%s\n' "$zlib:/fair/zlib" "$REPO/tests/vm/fair/make.sh:/fair/make.sh"
    {
        printf '%s\n' "${programs[@]}"
        ldd "${programs[@]}" | grep -o '/[^ ]*\.so[^ ]*'
        for file in "$zlib"/*.c; do gcc -O2 -M "$file"; done | tr -s '[:space:]' '\n' | grep -E '^/(usr|lib)/'
    } | sort -u | sed 's/.*/--add\n&:&/'
}
