# shellcheck shell=bash
# For scripts/stress.sh and scripts/soak.sh: the small programs that their guests need
# beside the scheduler. They know nothing of its code, so only a change of their own
# makes them old.

# pack_helpers FOLDER NAME...: there, built where needed, without their symbols.
pack_helpers() {
    local folder=$1 helper built=$REPO/target/release/examples options=()
    shift
    for helper; do
        [[ $built/$helper -nt $REPO/examples/$helper.rs ]] || options+=(--example "$helper")
    done
    if ((${#options[@]})); then (cd "$REPO" && cargo build --locked --release --quiet "${options[@]}"); fi
    mkdir "$folder"
    for helper; do strip -o "$folder/$helper" "$built/$helper"; done
}
