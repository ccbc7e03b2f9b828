# shellcheck shell=bash
# For scripts/stress.sh and scripts/soak.sh: what they do alike on the host's side.

# Of a guest: its kernel fell over a fault of the emulator (scripts/vm); the host disturbed
# it (lib.sh).
# shellcheck disable=SC2034
EMULATOR=122 DISTURBED=75

# pack_helpers NAME...: into $helpers, the small programs that guests need beside the scheduler,
# built where needed, without their symbols. They know nothing of its code, so only a change of
# their own makes them old. When the script ends the folder goes, and so do its guests.
pack_helpers() {
    local helper built=$REPO/target/release/examples options=()
    helpers=$(mktemp -d)
    trap 'jobs -p | xargs -r kill 2>/dev/null; wait; rm -rf "$helpers"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    for helper; do
        [[ $built/$helper -nt $REPO/examples/$helper.rs ]] || options+=(--example "$helper")
    done
    if ((${#options[@]})); then (cd "$REPO" && cargo build --locked --release --quiet "${options[@]}"); fi
    for helper; do strip -o "$helpers/$helper" "$built/$helper"; done
}

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
