//! Models go into files and come back; anything else is refused with a reason.

use super::*;
use crate::policy::network::{DistilledTable, Model, Provenance, Shape, Tensor, Weights};
use crate::policy::tests::cases;
use crate::policy::{Quantiser, Tokenizer};
use proptest::prelude::*;
use serde_json::json;

/// The smallest network there is.
fn small() -> Model {
    let slack = Quantiser::uniform(1_000_000, 8).unwrap();
    let work = Quantiser::uniform(1_000_000, 1).unwrap();
    let tokenizer = Tokenizer::new(slack, work, 1, 1).unwrap();
    let shape = Shape::new(&tokenizer, 4, 1, 2, 3).unwrap();
    let provenance = Provenance {
        name: "small".into(),
        training: json!({ "seed": 7, "steps": 1000 }),
        compliance: json!({ "sets": 200, "mean": 0.991 }),
    };
    Model::new(tokenizer, Weights::seeded(shape, 1), provenance).unwrap()
}

fn refusal(file: &[u8]) -> String {
    Model::from_onnx(file).expect_err("a model").to_string()
}

#[test]
fn a_model_comes_back_from_either_graph_as_it_was() {
    let shape = Model::default_shape();
    let model = Model::untrained(Model::default_tokenizer(), shape, 3).unwrap();
    let tokenizer = Model::default_tokenizer().with_loads(5);
    let with_all = Shape::new(&tokenizer, 8, 2, 2, 8).unwrap().with_pairs(true);
    let cells = tokenizer.slack_bins() * tokenizer.work().levels();
    let scores: Vec<f32> = (0..cells).map(|cell| (cell as f32).sin()).collect();
    let table = DistilledTable::new(&tokenizer, &scores, 10, 7).unwrap();
    let with_all = Model::untrained(tokenizer, with_all, 4).unwrap();
    assert_eq!(with_all.distilled(), None);
    let with_all = with_all.with_distilled(table.clone()).unwrap();
    small().with_distilled(table).expect_err("other bins");
    for model in [model, with_all, small()] {
        for kind in [GraphKind::Multiset, GraphKind::Dense, GraphKind::Sparse] {
            assert_eq!(Model::from_onnx(&model.to_onnx(kind)).unwrap(), model);
        }
    }
}

#[test]
fn a_file_is_there_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.onnx");
    small().save(&path).unwrap();
    assert_eq!(Model::load(&path).unwrap(), small());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let taken = dir.path().join("folder.onnx");
    std::fs::create_dir(&taken).unwrap();
    small().save(&taken).expect_err("that is a folder");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    let message = Model::load(&dir.path().join("none.onnx"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("none.onnx"), "{message}");
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let file = small().to_onnx(GraphKind::Multiset);
    for length in 0..file.len() {
        refusal(&file[..length]);
    }
}

#[test]
fn the_refusal_says_what_is_wrong() {
    assert!(refusal(b"\x0b").contains("not an ONNX file"));
    assert!(refusal(b"").contains("temponet.format is missing"));

    let file = small().to_onnx(GraphKind::Multiset);
    // The same length, so that everything else stays in its place.
    let with = |from: &str, to: &str| {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        assert_eq!(from.len(), to.len());
        let at = file.windows(from.len()).rposition(|w| w == from).unwrap();
        let mut changed = file.clone();
        changed[at..at + to.len()].copy_from_slice(to);
        refusal(&changed)
    };
    assert!(with("temponet.format", "temponet.FORMAT").contains("temponet.format is missing"));
    assert!(with("\"width\":4", "\"width\":5").contains("remainder of width by heads"));
    assert!(with("\"width\":4", "\"width\":8").contains("embed.idle is [1, 4]"));
    assert!(with("\"layers\":1", "\"layers\":2").contains("layer1.query is missing"));
    assert!(with("\"layers\":1", "\"layers\":9").contains("number of layers"));
    assert!(with("\"width\":4", "\"wodth\":4").contains("temponet.shape cannot be read"));
    assert!(with("\"classes\":1", "\"classes\":2").contains("embed.class is [1, 4]"));
    assert!(with("\"seed\":7", "\"seed\";7").contains("temponet.training"));

    let weight = small().weights().get(Tensor::Head)[0].to_le_bytes();
    let at = file.windows(4).position(|w| w == weight).unwrap();
    let mut broken = file.clone();
    broken[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(
        refusal(&broken),
        "head has a weight that is not a finite number"
    );

    let twice = [&file[..], &file[..]].concat();
    assert!(refusal(&twice).contains("twice"));
}

#[test]
fn a_tokenizer_of_another_network_is_refused() {
    let other = Model::untrained(Model::default_tokenizer(), *small().shape(), 1);
    assert_eq!(other, Err(super::ModelError::Tokenizer));
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_damaged_file_is_a_model_or_an_error_and_never_a_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = small().to_onnx(GraphKind::Multiset);
        for (place, byte) in damage {
            let place = place.index(file.len());
            file[place] = byte;
        }
        if let Ok(model) = Model::from_onnx(&file) {
            assert!(model.weights().values().iter().all(|weight| weight.is_finite()));
            assert!(model.shape().fits(model.tokenizer()));
        }
    }
}
