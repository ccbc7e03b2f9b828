//! A model from an .onnx file that anybody may have written. Only weights and
//! metadata are read; the operators are known.

use super::graph::FLOAT;
use super::wire::{Fields, WireError};
use super::{Key, OnnxError, FORMAT};
use crate::policy::network::model::{Model, Provenance};
use crate::policy::network::{Shape, Tensor, Weights};
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// More than any training writes about itself.
const MOST_METADATA: usize = 1 << 20;

pub fn read(file: &[u8]) -> Result<Model, OnnxError> {
    let mut graph = None;
    let mut metadata = HashMap::new();
    for field in Fields::of(file) {
        let (field, value) = field?;
        if field == 7 && graph.replace(value.bytes(7)?).is_some() {
            return Err(OnnxError::Twice("the graph".into()));
        }
        if field == 14 {
            let (key, text) = entry(value.bytes(14)?)?;
            // Others' keys may be there, and are none of our business.
            let known = Key::ALL.into_iter().find(|k| k.name().as_bytes() == key);
            let Some(key) = known else { continue };
            if metadata.insert(key, text).is_some() {
                return Err(OnnxError::Twice(key.name().into()));
            }
        }
    }
    let text = |key: Key| {
        let bytes = metadata
            .get(&key)
            .ok_or(OnnxError::Missing(key.name().into()))?;
        if bytes.len() > MOST_METADATA {
            return Err(OnnxError::LongMetadata(key.name()));
        }
        std::str::from_utf8(bytes).map_err(|_| OnnxError::Metadata {
            key: key.name(),
            why: "is not text".into(),
        })
    };
    let format = text(Key::Format)?;
    if format != FORMAT {
        return Err(OnnxError::Format(format.chars().take(20).collect()));
    }
    let shape: Shape = json(Key::Shape, text(Key::Shape)?)?;
    shape.check()?;
    let tokenizer = json(Key::Tokenizer, text(Key::Tokenizer)?)?;
    let provenance = Provenance {
        name: text(Key::Name)?.to_owned(),
        training: json(Key::Training, text(Key::Training)?)?,
        compliance: json(Key::Compliance, text(Key::Compliance)?)?,
    };
    let graph = graph.ok_or(OnnxError::Missing("the graph".into()))?;
    let model = Model::new(tokenizer, weights(graph, shape)?, provenance)?;
    if !metadata.contains_key(&Key::Distilled) {
        return Ok(model);
    }
    let table = json(Key::Distilled, text(Key::Distilled)?)?;
    Ok(model.with_distilled(table)?)
}

fn json<T: DeserializeOwned>(key: Key, text: &str) -> Result<T, OnnxError> {
    serde_json::from_str(text).map_err(|error| OnnxError::Metadata {
        key: key.name(),
        why: format!("cannot be read: {error}"),
    })
}

fn entry(message: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (mut key, mut value) = (&[][..], &[][..]);
    for field in Fields::of(message) {
        match field? {
            (1, text) => key = text.bytes(1)?,
            (2, text) => value = text.bytes(2)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// A tensor as it lies in the file.
#[derive(Default)]
struct Stored<'a> {
    name: &'a [u8],
    dims: Vec<i64>,
    kind: i64,
    bytes: Option<&'a [u8]>,
}

fn stored(message: &[u8]) -> Result<Stored<'_>, WireError> {
    /// Nothing of ours has more than two.
    const MOST_DIMS: usize = 8;
    let mut tensor = Stored::default();
    for field in Fields::of(message) {
        match field? {
            (1, value) => value.add_numbers(1, &mut tensor.dims, MOST_DIMS)?,
            (2, value) => tensor.kind = value.number(2)?,
            // Packed floats lie as raw ones do.
            (field @ (4 | 9), value) => tensor.bytes = Some(value.bytes(field)?),
            (8, value) => tensor.name = value.bytes(8)?,
            _ => {}
        }
    }
    Ok(tensor)
}

fn weights(graph: &[u8], shape: Shape) -> Result<Weights, OnnxError> {
    let names: Vec<(String, Tensor)> = Tensor::all(&shape)
        .map(|tensor| (tensor.name(), tensor))
        .collect();
    let mut found: HashMap<Tensor, Stored<'_>> = HashMap::new();
    for field in Fields::of(graph) {
        let (5, value) = field? else { continue };
        let tensor = stored(value.bytes(5)?)?;
        let known = |(name, _): &&(String, Tensor)| name.as_bytes() == tensor.name;
        if let Some((name, place)) = names.iter().find(known) {
            check(name, *place, &shape, &tensor)?;
            if found.insert(*place, tensor).is_some() {
                return Err(OnnxError::Twice(name.clone()));
            }
        }
    }
    if let Some((name, _)) = names.iter().find(|(_, place)| !found.contains_key(place)) {
        return Err(OnnxError::Missing(name.clone()));
    }
    // All are there and as long as they must be: memory in proportion to the file.
    let mut values = Vec::with_capacity(Weights::count(&shape));
    for (_, place) in &names {
        let bytes = found[place].bytes.unwrap_or_default();
        let float = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        values.extend(bytes.chunks_exact(4).map(float));
    }
    Ok(Weights::new(shape, values)?)
}

fn check(name: &str, place: Tensor, shape: &Shape, tensor: &Stored<'_>) -> Result<(), OnnxError> {
    let wrong = |why: String| OnnxError::Tensor {
        name: name.to_owned(),
        why,
    };
    if tensor.kind != FLOAT {
        return Err(wrong("is not made of 32-bit floats".into()));
    }
    let (rows, columns) = place.dims(shape);
    let needed = [rows as i64, columns as i64];
    if tensor.dims != needed && !(rows == 1 && tensor.dims == needed[1..]) {
        let dims = &tensor.dims;
        return Err(wrong(format!("is {dims:?}, and the shape says {needed:?}")));
    }
    let bytes = tensor
        .bytes
        .ok_or_else(|| wrong("does not lie in this file".into()))?;
    if bytes.len() != 4 * rows * columns {
        let (has, needs) = (bytes.len(), 4 * rows * columns);
        return Err(wrong(format!("has {has} bytes and needs {needs}")));
    }
    Ok(())
}
