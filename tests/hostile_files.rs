//! Files that are not what they should be, a disk that is full, a library that is not
//! ONNX Runtime: one sentence and a status each time, never a panic, never half a result.

use proptest::prelude::*;
use scx_temponet::policy::network::{GraphKind, Model, Tensor};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_scx_temponet");
const WORKLOAD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rtapp/one-cpu.json");

fn run(args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).output().unwrap()
}

/// It failed, and said why in one line.
fn assert_one_sentence(output: &Output, about: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let status = output.status.code();
    assert!(matches!(status, Some(1 | 2)), "{about}: {status:?} {said}");
    let lines = said.lines().filter(|line| !line.starts_with("warning"));
    assert_eq!(lines.count(), 1, "{about}: {said}");
    assert!(!said.contains("panicked"), "{about}: {said}");
    said
}

// ---- models

fn shipped() -> Vec<u8> {
    Model::shipped().to_onnx(GraphKind::Multiset)
}

fn refusal(file: &[u8]) -> String {
    Model::from_onnx(file).expect_err("a model").to_string()
}

/// The fields of a protocol buffer: number, and where its value lies.
fn fields(bytes: &[u8]) -> Vec<(u64, std::ops::Range<usize>)> {
    let varint = |at: &mut usize| {
        let mut value = 0u64;
        for shift in (0..).step_by(7) {
            value |= u64::from(bytes[*at] & 0x7f) << shift;
            *at += 1;
            if bytes[*at - 1] < 0x80 {
                return value;
            }
        }
        unreachable!()
    };
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let key = varint(&mut at);
        let start = at;
        let number = varint(&mut at);
        let value = if key & 7 == 2 {
            at += number as usize;
            at - number as usize..at
        } else {
            start..at
        };
        found.push((key >> 3, value));
    }
    found
}

fn put(field: u8, value: &[u8], to: &mut Vec<u8>) {
    to.push(field << 3 | 2);
    let mut length = value.len();
    while length >= 0x80 {
        to.push(length as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
    to.extend(value);
}

/// The shipped model's file with another value of one metadata entry.
fn with_metadata(key: &str, value: &str) -> Vec<u8> {
    let file = shipped();
    let mut changed = Vec::new();
    for (number, place) in fields(&file) {
        let bytes = &file[place];
        let ours = number == 14 && bytes[2..].starts_with(key.as_bytes());
        match number {
            14 if ours => {
                let mut entry = Vec::new();
                put(1, key.as_bytes(), &mut entry);
                put(2, value.as_bytes(), &mut entry);
                put(14, &entry, &mut changed);
            }
            7 | 14 => put(number as u8, bytes, &mut changed),
            // Versions and names, which nobody reads.
            _ => {}
        }
    }
    changed
}

#[test]
fn the_shipped_model_cut_off_at_any_byte_is_refused() {
    let file = shipped();
    for length in 0..file.len() {
        refusal(&file[..length]);
    }
}

#[test]
fn a_weight_that_is_no_number_is_refused_in_every_tensor() {
    let (model, file) = (Model::shipped(), shipped());
    let mut tried = 0;
    for tensor in Tensor::all(model.shape()) {
        let weights = model.weights().get(tensor);
        let raw: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
        // Biases that are all alike could stand anywhere; the large ones are unique.
        let Some(at) = file.windows(raw.len()).position(|w| w == raw) else {
            panic!("{} does not lie in the file", tensor.name());
        };
        for (value, place) in [(f32::NAN, 0), (f32::INFINITY, weights.len() - 1)] {
            let mut broken = file.clone();
            let at = at + 4 * place;
            broken[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert!(refusal(&broken).contains("finite"), "{}", tensor.name());
            tried += 1;
        }
    }
    assert!(tried >= 2 * 10, "{tried} weights");
}

/// Refused by the sizes themselves, before memory is taken for them: the test would
/// not survive otherwise.
#[test]
fn huge_and_senseless_shapes_are_refused() {
    let file = shipped();
    let (_, place) = fields(&file)
        .into_iter()
        .find(|(n, place)| *n == 14 && file[place.clone()][2..].starts_with(b"temponet.shape"))
        .unwrap();
    let entry = &file[place];
    let text = &entry[entry.iter().position(|b| *b == b'{').unwrap()..];
    let good: serde_json::Value = serde_json::from_slice(text).unwrap();
    let again = Model::from_onnx(&with_metadata("temponet.shape", &good.to_string())).unwrap();
    assert_eq!(again, Model::shipped(), "the way of changing it is sound");
    let sizes = good.as_object().unwrap();
    assert!(sizes.len() >= 4);
    for name in sizes.keys() {
        for size in [0, 1 << 20, 1 << 32, 1 << 62, u64::MAX] {
            let mut shape = good.clone();
            shape[name] = size.into();
            refusal(&with_metadata("temponet.shape", &shape.to_string()));
        }
        for wrong in ["-1", "1.5", "null", "\"8\"", "1e400", "[]"] {
            let text = good.to_string();
            let from = format!("\"{name}\":{}", good[name]);
            assert!(text.contains(&from));
            let text = text.replace(&from, &format!("\"{name}\":{wrong}"));
            refusal(&with_metadata("temponet.shape", &text));
        }
    }
    let deep = "[".repeat(100_000);
    assert!(refusal(&with_metadata("temponet.training", &deep)).contains("training"));
}

/// Only weights and metadata are read. What runs is our own graph, so an operator set,
/// inputs or nodes of another's making have nobody to hurt.
#[test]
fn operators_and_inputs_of_a_file_are_never_run() {
    let file = shipped();
    let mut other = Vec::new();
    for (number, place) in fields(&file) {
        let value = &file[place];
        match number {
            // opset_import: a domain of somebody's own, version 9999.
            8 => put(8, b"\x0a\x04evil\x10\x8f\x4e", &mut other),
            7 => {
                let mut graph = Vec::new();
                for (part, place) in fields(value) {
                    match part {
                        1 => put(1, b"\x22\x04Loop", &mut graph),
                        11 => put(11, b"\x0a\x05wrong", &mut graph),
                        _ => put(part as u8, &value[place], &mut graph),
                    }
                }
                put(7, &graph, &mut other);
            }
            14 => put(14, value, &mut other),
            _ => {}
        }
    }
    let model = Model::from_onnx(&other).unwrap();
    assert_eq!(model, Model::shipped());
    assert_eq!(model.to_onnx(GraphKind::Multiset), file);
}

/// A pickle, an ELF, a picture, text, nothing: as a user would hand them over.
#[test]
fn what_is_no_model_is_refused_by_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let elf = std::fs::read(PROGRAM).unwrap();
    let pickle = b"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.";
    let half = &shipped()[..20_000];
    let files: [(&str, &[u8]); 6] = [
        ("pickle.onnx", pickle),
        ("elf.onnx", &elf),
        ("picture.onnx", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("text.onnx", b"{\"weights\": []}\n"),
        ("empty.onnx", b""),
        ("half.onnx", half),
    ];
    let mut paths: Vec<PathBuf> = Vec::new();
    for (name, bytes) in files {
        paths.push(dir.path().join(name));
        std::fs::write(paths.last().unwrap(), bytes).unwrap();
    }
    paths.push(dir.path().to_owned());
    paths.push("/dev/zero".into());
    paths.push(dir.path().join("missing.onnx"));
    for path in &paths {
        let path = path.to_str().unwrap();
        let output = run(&["replay", WORKLOAD, "--policy", "temponet", "--model", path]);
        let said = assert_one_sentence(&output, path);
        assert!(said.contains(path), "{said}");
        assert!(output.stdout.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn metadata_of_any_text_is_a_model_or_an_error(
        key in 0..7usize,
        text in "[\\[\\]{}\",:0-9a-z.e+-]{0,60}",
    ) {
        let keys = ["format", "graph", "name", "tokenizer", "shape", "training", "compliance"];
        let _ = Model::from_onnx(&with_metadata(&format!("temponet.{}", keys[key]), &text));
    }
}

// ---- ONNX Runtime

fn bench_with(library: &Path) -> Output {
    Command::new(PROGRAM)
        .args(["bench", "--backend", "ort", "--n", "8", "--seconds", "0.05"])
        .env("ORT_DYLIB_PATH", library)
        .output()
        .unwrap()
}

/// A library of that name with other contents, another version, or an API that it
/// does not have after all.
#[test]
fn an_onnx_runtime_that_is_missing_or_too_old_is_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("libonnxruntime.so");
    let said = assert_one_sentence(&bench_with(&missing), "missing");
    assert!(said.contains("libonnxruntime.so"), "{said}");
    for (name, version) in [("old", "1.10.0"), ("none", "1.20.0"), ("odd", "next")] {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let source = folder.join("stub.c");
        let code = format!(
            "static const char *version(void) {{ return \"{version}\"; }}\n\
             static const void *api(unsigned v) {{ (void)v; return 0; }}\n\
             struct base {{ const void *(*api)(unsigned); const char *(*version)(void); }};\n\
             static const struct base base = {{ api, version }};\n\
             const struct base *OrtGetApiBase(void) {{ return &base; }}\n"
        );
        std::fs::write(&source, code).unwrap();
        let library = folder.join("libonnxruntime.so");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source)
            .status();
        assert!(built.unwrap().success());
        let said = assert_one_sentence(&bench_with(&library), name);
        assert!(said.contains("libonnxruntime.so"), "{said}");
    }
}

// ---- full disks

/// Runs `act` on a disk without a free byte, in a mount namespace of its own. Needs root.
fn on_full_disk(act: impl FnOnce(&Path) + Send) {
    // SAFETY: geteuid has no arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped, needs root to mount a small disk");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let at = CString::new(disk.as_os_str().as_bytes()).unwrap();
            let (root, tmpfs, size) = (c"/", c"tmpfs", c"size=64k");
            let none = std::ptr::null();
            // SAFETY: all strings live across the calls; namespaces are the thread's own.
            unsafe {
                assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
                let private = libc::MS_REC | libc::MS_PRIVATE;
                let made = libc::mount(none, root.as_ptr(), none, private, none.cast());
                assert_eq!(made, 0);
                let kind = tmpfs.as_ptr();
                assert_eq!(
                    libc::mount(kind, at.as_ptr(), kind, 0, size.as_ptr().cast()),
                    0
                );
            }
            act(disk);
        });
    });
}

fn fill(disk: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(disk.join("filler")).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
}

const RECIPE: &str = "rounds = 1\nmachines = 2\npasses = 1.0\nwarm_rounds = 1\n\
    episode_ms = 100.0\nvalidate_every = 1\nvalidation_sets = 1\n\
    [network]\nwidth = 8\nlayers = 1\nheads = 2\nhidden = 8\n\
    [rollout]\ntried = 1.0\nbase_rounds = 1\nhorizon_ms = 50.0\n";

#[test]
fn a_full_disk_costs_the_new_result_and_not_the_old_one() {
    let recipes = tempfile::tempdir().unwrap();
    let recipe = recipes.path().join("tiny.toml");
    std::fs::write(&recipe, RECIPE).unwrap();
    let recipe = recipe.to_str().unwrap();
    let elsewhere = recipes.path().join("elsewhere.onnx");
    let elsewhere = elsewhere.to_str().unwrap();
    let sim = ["sim", "-w", "standard", "-k", "1", "-p", "edf"];
    let replay = ["replay", WORKLOAD, "-p", "edf"];
    let train = ["train", "--algo", "bc", "--config", recipe];
    let cases: [(&[&str], &str, &str); 8] = [
        (&sim, "--save", "set.toml"),
        (&sim, "--trace", "trace.json"),
        (&sim, "--jobs", "jobs.csv"),
        (&replay, "--html", "page.html"),
        (&replay, "--perfetto", "trace.json"),
        (&replay, "--save", "set.json"),
        (&train, "--out", "model.onnx"),
        (&train, "--checkpoint", ""),
    ];
    on_full_disk(|disk| {
        for (command, option, name) in cases {
            let target = disk.join(name);
            let old = match name {
                "" => disk.join("checkpoint.json"),
                _ => target.clone(),
            };
            std::fs::write(&old, "old").unwrap();
            fill(disk);
            let mut args = command.to_vec();
            args.extend([option, target.to_str().unwrap()]);
            if name.is_empty() {
                args.extend(["--out", elsewhere]);
            }
            let about = format!("{} {option}", command[0]);
            let output = run(&args);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{about} says that all is well");
            assert!(said.contains("No space left"), "{about}: {said}");
            assert!(!said.contains("panicked"), "{about}: {said}");
            assert_eq!(std::fs::read_to_string(&old).unwrap(), "old", "{about}");
            let left: Vec<_> = std::fs::read_dir(disk)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .filter(|name| name != "filler" && Some(&**name) != old.file_name())
                .collect();
            assert!(left.is_empty(), "{about} leaves {left:?}");
            std::fs::remove_file(disk.join("filler")).unwrap();
            std::fs::remove_file(&old).unwrap();
        }
    });
}

#[test]
fn figures_that_cannot_be_written_are_an_error_and_a_closed_pipe_is_none() {
    let commands: [&[&str]; 7] = [
        &["sim", "--list"],
        &["sim", "-w", "standard", "-k", "1", "-p", "edf", "--json"],
        &["replay", WORKLOAD, "-p", "edf", "--json"],
        &["doctor"],
        &[
            "bench",
            "--backend",
            "native",
            "--n",
            "8",
            "--seconds",
            "0.05",
        ],
        &["--version"],
        &["--help-stats"],
    ];
    for args in commands {
        let about = args.join(" ");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let output = Command::new(PROGRAM)
            .args(args)
            .stdout(full.unwrap())
            .output()
            .unwrap();
        let said = assert_one_sentence(&output, &about);
        assert!(said.contains("No space left"), "{about}: {said}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(PROGRAM)
            .args(args)
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{about}: {said}");
        assert!(
            output.status.code().is_some(),
            "{about}: killed by a signal"
        );
    }
}
