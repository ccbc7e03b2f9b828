//! The constants and structs of `bpf/intf.h` and `include/temponet_hint.h`, as the build
//! generated them.
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code
)]

include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
