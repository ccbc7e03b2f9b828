//! What the build generated from `bpf/`: the skeleton, and the constants and
//! structs of `intf.h`. The only place that includes generated code.

#[allow(clippy::all, non_camel_case_types, non_upper_case_globals, dead_code)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

#[allow(
    clippy::all,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code
)]
pub mod intf {
    include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
}

pub use skel::*;
