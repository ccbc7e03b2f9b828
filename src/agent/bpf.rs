//! The skeleton that the build generated from `bpf/main.bpf.c`.

#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    non_camel_case_types,
    non_upper_case_globals,
    dead_code
)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

pub use skel::*;
