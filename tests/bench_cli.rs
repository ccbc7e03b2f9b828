//! `scx_temponet bench` as its users meet it.

use serde_json::Value;
use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg("bench")
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn every_backend_is_measured_stage_by_stage() {
    let out = bench(&["--n", "16,40", "--seconds", "0.05", "--json"]);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{errors}");
    let outcome: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(outcome["trained"], true);
    let rows = outcome["decisions"].as_array().unwrap();
    for jobs in [16, 40] {
        for backend in ["native", "native-int8", "native-bf16"] {
            let row = rows
                .iter()
                .find(|row| row["jobs"] == jobs && row["contestant"] == backend)
                .unwrap();
            let us = |key: &str| row[key].as_f64().unwrap();
            assert!(us("tokenise_us") > 0.0 && us("encode_us") > 0.0 && us("map_us") > 0.0);
            assert!(us("p50_us") <= us("p99_us"));
            assert!(1.0 < us("distinct") && us("distinct") <= jobs as f64 + 1.0);
        }
    }
    let with_runtime = !outcome["onnxruntime"].is_null();
    let scaling = outcome["scaling"].as_array().unwrap();
    let attentions = |backend: &str| -> Vec<&str> {
        let of_backend = scaling.iter().filter(|row| row["backend"] == backend);
        of_backend
            .map(|row| row["attention"].as_str().unwrap())
            .collect()
    };
    let every_kind = ["multiset", "dense", "sparse"];
    assert_eq!(attentions("native"), every_kind);
    assert_eq!(
        attentions("ort"),
        every_kind[..if with_runtime { 3 } else { 0 }]
    );
    for agreement in outcome["agreement"].as_array().unwrap() {
        for bits in ["int8_top_m", "bf16_top_m"] {
            let share = agreement[bits].as_f64().unwrap();
            assert!((0.5..=1.0).contains(&share), "{bits} {share}");
        }
    }
    let compared = rows
        .iter()
        .filter(|row| !row["cheaper_than_paper"].is_null());
    assert_eq!(compared.count(), if with_runtime { 10 } else { 0 });
}

#[test]
fn bad_input_is_one_sentence() {
    let out = bench(&["--model", "/nowhere/model.onnx"]);
    assert_eq!(out.status.code(), Some(2));
    let message = String::from_utf8(out.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("/nowhere/model.onnx"), "{message}");
    assert_eq!(bench(&["--n", "0"]).status.code(), Some(2));
}

#[test]
fn the_default_that_the_help_shows_is_one_that_the_parser_takes() {
    let help = String::from_utf8(bench(&["--help"]).stdout).unwrap();
    let defaults: Vec<&str> = help
        .split("[default: ")
        .skip(1)
        .filter_map(|rest| rest.split(']').next())
        .collect();
    let numbers = defaults.iter().find(|text| text.starts_with("64")).unwrap();
    // A model that is nowhere ends it after the command line was understood.
    let out = bench(&["--n", numbers, "--model", "/nowhere/model.onnx"]);
    let message = String::from_utf8(out.stderr).unwrap();
    assert!(message.contains("/nowhere/model.onnx"), "{message}");
}
