# shellcheck shell=bash
# For scripts/stress.sh, scripts/soak.sh and tests/vm/storm.sh: what they do alike on the
# host's side.

# Of a guest: its kernel fell over a fault of the emulator (scripts/vm); the host disturbed
# it (lib.sh).
# shellcheck disable=SC2034
EMULATOR=122 DISTURBED=75

# pack_helpers NAME...: into $helpers, the small programs that guests need beside the scheduler,
# built where needed, without their symbols. They know nothing of its code, so only a change of
# their own makes them old. When the script ends the folder goes, and so do its guests.
pack_helpers() {
    local helper built=$REPO/target/quick/examples options=()
    helpers=$(mktemp -d)
    trap 'jobs -p | xargs -r kill 2>/dev/null; wait; rm -rf "$helpers"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    for helper; do
        if is_old "$built/$helper" "$(source_of "$helper")"; then options+=(--example "$helper"); fi
    done
    if ((${#options[@]})); then (cd "$REPO" && cargo build --locked --profile quick --quiet "${options[@]}"); fi
    for helper; do strip -o "$helpers/$helper" "$built/$helper"; done
}

# A file or a folder.
source_of() { if [[ -d $REPO/tests/vm/$1 ]]; then echo "$REPO/tests/vm/$1"; else echo "$REPO/tests/vm/helpers"; fi; }
is_old() { [[ ! -e $1 || -n $(find "$2" -type f -newer "$1") ]]; }

# boot FOLDER ARGUMENT...: a guest with the helpers and the tests, which leaves its files there;
# its status. Without the instructions that make an inference slow in an emulator alone.
boot() {
    local folder=$1 helper options=() guest status=0
    shift
    rm -rf "$folder"
    mkdir -p "$folder"
    for helper in "$helpers"/*; do options+=(--add "$helper:/usr/bin/${helper##*/}"); done
    "$REPO/scripts/vm" --no-fma --console "$folder/console" --out "$folder" "${options[@]}" \
        --add "$REPO/tests/vm/stress:/stress" "$@" >"$folder/vm" 2>&1 &
    # In the background, so that a signal need not wait for it.
    guest=$!
    # shellcheck disable=SC2064
    trap "kill $guest 2>/dev/null; exit 143" TERM
    wait $guest || status=$?
    return $status
}

# try_guest NAME FOLDER COMMAND...: the command boots a guest in $mode that leaves its files in
# the folder; its status. Once more where it was the emulator, in the mode that spares it that
# fault (scripts/vm), or where the host left too little of its CPUs to judge by, which vCPUs
# that wait for each other look like too.
try_guest() {
    local name=$1 folder=$2 attempt status wanted=$mode mode=$mode
    shift 2
    for attempt in 1 2 3; do
        status=0
        "$@" || status=$?
        ((attempt < 3 && (status == EMULATOR || status == DISTURBED))) || break
        printf '      %s, once more: %s\n' "$name" "$(why_again "$status" "$folder")"
        if ((status == EMULATOR)); then mode=turns; else mode=$wanted && await_calm; fi
    done
    return $status
}

why_again() { if (($1 == EMULATOR)); then echo "that was the emulator"; else grep ^disturbed: "$2/log"; fi; }
