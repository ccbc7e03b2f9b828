fn main() {
    let builder = || {
        scx_cargo::BpfBuilder::new().expect(
            "scx_cargo: no usable clang; set BPF_CLANG (scripts/setup.sh installs clang-19)",
        )
    };
    builder()
        .enable_intf("bpf/intf.h", "bpf_intf.rs")
        .enable_skel("bpf/main.bpf.c", "bpf")
        .build()
        .expect("building bpf/ failed");
    builder()
        .enable_intf("bpf/record.h", "record_intf.rs")
        .enable_skel("bpf/record.bpf.c", "record")
        .build()
        .expect("building bpf/record.bpf.c failed");
}
