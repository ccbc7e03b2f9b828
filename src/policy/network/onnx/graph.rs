//! Nodes, tensors and values of an ONNX graph, with the field numbers of
//! onnx.proto.

use super::wire::Message;

/// Element types of onnx.proto's TensorProto.DataType.
pub const FLOAT: i64 = 1;
pub const INT64: i64 = 7;

/// A dimension of an input or output.
pub enum Dim {
    Of(i64),
    Named(&'static str),
}

/// An attribute of a node.
pub enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
}

/// A graph that grows node by node; values are known by their names.
#[derive(Default)]
pub struct Graph {
    nodes: Vec<Message>,
    initializers: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
}

impl Graph {
    /// Adds a node and gives back the name of its output, which is `name`.
    pub fn node(
        &mut self,
        name: &str,
        operator: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) -> String {
        let attributes = attributes.iter().map(|(key, value)| {
            let message = Message::default().text(1, key);
            match value {
                Attribute::Float(value) => message.float(2, *value).number(20, 1),
                Attribute::Int(value) => message.number(3, *value).number(20, 2),
                Attribute::Ints(values) => message.numbers(8, values).number(20, 7),
            }
        });
        let node = Message::default()
            .texts(1, inputs.iter().copied())
            .text(2, name)
            .text(3, name)
            .text(4, operator)
            .messages(5, attributes);
        self.nodes.push(node);
        name.to_owned()
    }

    pub fn floats(&mut self, name: &str, dims: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.tensor(name, dims, FLOAT, &bytes)
    }

    /// Whole numbers as a vector.
    pub fn ints(&mut self, name: &str, values: &[i64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.tensor(name, &[values.len()], INT64, &bytes)
    }

    fn tensor(&mut self, name: &str, dims: &[usize], kind: i64, bytes: &[u8]) -> String {
        let dims: Vec<i64> = dims.iter().map(|&dim| dim as i64).collect();
        let tensor = Message::default()
            .numbers(1, &dims)
            .number(2, kind)
            .text(8, name)
            .bytes(9, bytes);
        self.initializers.push(tensor);
        name.to_owned()
    }

    pub fn input(&mut self, name: &str, kind: i64, dims: &[Dim], about: &str) -> String {
        self.inputs.push(value(name, kind, dims, about));
        name.to_owned()
    }

    pub fn output(&mut self, name: &str, kind: i64, dims: &[Dim], about: &str) {
        self.outputs.push(value(name, kind, dims, about));
    }

    pub fn into_message(self, name: &str, about: &str) -> Message {
        Message::default()
            .messages(1, self.nodes)
            .text(2, name)
            .messages(5, self.initializers)
            .text(10, about)
            .messages(11, self.inputs)
            .messages(12, self.outputs)
    }
}

fn value(name: &str, kind: i64, dims: &[Dim], about: &str) -> Message {
    let dims = dims.iter().map(|dim| match dim {
        Dim::Of(size) => Message::default().number(1, *size),
        Dim::Named(name) => Message::default().text(2, name),
    });
    let shape = Message::default().messages(1, dims);
    let tensor = Message::default().number(1, kind).message(2, shape);
    Message::default()
        .text(1, name)
        .message(2, Message::default().message(1, tensor))
        .text(3, about)
}
