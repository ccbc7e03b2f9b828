//! `scx_temponet explain` as its users meet it.

use scx_temponet::policy::network::Model;
use serde_json::Value;
use std::process::{Command, Output};

fn explain(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg("explain")
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn the_fitted_table_is_stored_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("model.onnx").display().to_string();
    let fitted = explain(&[
        "--fit-distilled",
        "--out",
        &out,
        "--machines",
        "24",
        "--json",
    ]);
    let errors = String::from_utf8_lossy(&fitted.stderr);
    assert!(fitted.status.success(), "{errors}");
    let fitted: Value = serde_json::from_slice(&fitted.stdout).unwrap();
    assert!(fitted["agreement"]["first"].as_f64().unwrap() > 0.5);

    let model = Model::load(out.as_ref()).unwrap();
    assert_eq!(model.weights(), Model::shipped().weights());
    let table = model.distilled().expect("a table");
    let stored = fitted["distilled"]["scores"].as_array().unwrap();
    assert_eq!(stored.len(), table.scores().len());
    assert_eq!(stored[7].as_i64(), Some(i64::from(table.scores()[7])));

    let shown = explain(&["--model", &out, "--machines", "2"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("The distilled table"), "{text}");
    let heat_maps = text.matches("slack ms  work from").count();
    assert_eq!(heat_maps, 2, "of the network and of the table");
}

#[test]
fn bad_input_is_one_sentence() {
    for args in [
        &["--fit-distilled"][..],
        &["--model", "/nowhere/model.onnx"],
    ] {
        let out = explain(args);
        assert_eq!(out.status.code(), Some(2));
        let message = String::from_utf8(out.stderr).unwrap();
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
