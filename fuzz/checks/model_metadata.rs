//! The metadata of an otherwise good model: bytes alone hardly ever get past the
//! framing of protocol buffers, so here the texts are put in with correct lengths.
//! The input holds up to eight values, separated by NULs, in the order of KEYS;
//! an empty one stands for the shipped model's.

use scx_temponet::policy::network::{GraphKind, Model};
use std::sync::OnceLock;

const KEYS: [&str; 8] = [
    "temponet.format",
    "temponet.graph",
    "temponet.name",
    "temponet.tokenizer",
    "temponet.shape",
    "temponet.training",
    "temponet.compliance",
    "temponet.distilled",
];
/// `metadata_props` of a ModelProto.
const METADATA: u8 = 14;

fn varint(mut value: usize, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn field(number: u8, bytes: &[u8], to: &mut Vec<u8>) {
    to.push(number << 3 | 2);
    varint(bytes.len(), to);
    to.extend(bytes);
}

/// The shipped model's file without its metadata, and its values.
fn parts() -> &'static (Vec<u8>, Vec<Vec<u8>>) {
    static PARTS: OnceLock<(Vec<u8>, Vec<Vec<u8>>)> = OnceLock::new();
    PARTS.get_or_init(|| {
        let file = Model::shipped().to_onnx(GraphKind::Multiset);
        let mut rest = Vec::new();
        let mut values = vec![Vec::new(); KEYS.len()];
        let mut at = 0;
        while at < file.len() {
            let start = at;
            let key = file[at];
            at += 1;
            let mut number = 0;
            for shift in (0..).step_by(7) {
                number |= usize::from(file[at] & 0x7f) << shift;
                at += 1;
                if file[at - 1] < 0x80 {
                    break;
                }
            }
            if key & 7 == 2 {
                at += number;
            }
            if key != METADATA << 3 | 2 {
                rest.extend(&file[start..at]);
                continue;
            }
            let entry = &file[at - number..at];
            for (i, name) in KEYS.iter().enumerate() {
                let found = entry.windows(name.len()).position(|w| w == name.as_bytes());
                if let Some(place) = found {
                    let after = &entry[place + name.len() + 1..];
                    let text = after
                        .iter()
                        .position(|b| *b < 0x80)
                        .map_or(after, |p| &after[p + 1..]);
                    values[i] = text.to_vec();
                }
            }
        }
        (rest, values)
    })
}

pub fn check(bytes: &[u8]) {
    let (rest, good) = parts();
    let mut file = rest.clone();
    let mut given = bytes.split(|byte| *byte == 0);
    for (key, good) in KEYS.iter().zip(good) {
        let value = given.next();
        // A file may lack this one, and with it other bins would never be accepted.
        if value.is_none() && *key == "temponet.distilled" {
            continue;
        }
        // What is left out or empty is as it should be.
        let value = value.filter(|v| !v.is_empty()).unwrap_or(good);
        let mut entry = Vec::new();
        field(1, key.as_bytes(), &mut entry);
        field(2, value, &mut entry);
        field(METADATA, &entry, &mut file);
    }
    if let Ok(model) = Model::from_onnx(&file) {
        assert!(model.shape().fits(model.tokenizer()));
        let again = Model::from_onnx(&model.to_onnx(GraphKind::Multiset));
        let again = again.expect("its own file");
        assert!(again.tokenizer() == model.tokenizer() && again.weights() == model.weights());
        assert!(again.distilled() == model.distilled());
    }
}
