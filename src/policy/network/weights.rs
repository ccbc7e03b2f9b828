//! The numbers of a network, in one block, in one order.

use super::shape::Shape;
use std::ops::Range;
use thiserror::Error;

/// A place in [`Weights`]. Matrices are row-major, [in, out].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tensor {
    Idle,
    Slack,
    Work,
    Class,
    Doubt,
    /// Only where the shape has pairs: [slack · works + work].
    Pair,
    /// Of a layer from here on. Keys have no bias: a softmax does not see it.
    Query(usize),
    QueryBias(usize),
    Key(usize),
    Value(usize),
    ValueBias(usize),
    Out(usize),
    OutBias(usize),
    Norm1(usize),
    Norm1Bias(usize),
    Up(usize),
    UpBias(usize),
    Down(usize),
    DownBias(usize),
    Norm2(usize),
    Norm2Bias(usize),
    Head,
    HeadBias,
}

impl Tensor {
    /// All of them, in the order in which they are stored.
    pub fn all(shape: &Shape) -> impl Iterator<Item = Tensor> {
        use Tensor::*;
        let of_layer = |l| {
            [
                Query(l),
                QueryBias(l),
                Key(l),
                Value(l),
                ValueBias(l),
                Out(l),
                OutBias(l),
                Norm1(l),
                Norm1Bias(l),
                Up(l),
                UpBias(l),
                Down(l),
                DownBias(l),
                Norm2(l),
                Norm2Bias(l),
            ]
        };
        let layers = (0..shape.layers).flat_map(of_layer);
        [Idle, Slack, Work, Class, Doubt]
            .into_iter()
            .chain(shape.pairs.then_some(Pair))
            .chain(layers)
            .chain([Head, HeadBias])
    }

    /// Rows and columns; vectors have one row.
    pub fn dims(self, shape: &Shape) -> (usize, usize) {
        use Tensor::*;
        let (d, f) = (shape.width, shape.hidden);
        match self {
            Slack => (shape.slack, d),
            Work => (shape.work, d),
            Class => (shape.classes, d),
            Doubt => (shape.doubts, d),
            Idle => (shape.loads, d),
            Pair => (shape.slack * shape.work, d),
            Query(_) | Key(_) | Value(_) | Out(_) => (d, d),
            Up(_) => (d, f),
            Down(_) => (f, d),
            UpBias(_) => (1, f),
            HeadBias => (1, 1),
            Head => (d, 1),
            QueryBias(_) | ValueBias(_) | OutBias(_) | Norm1(_) | Norm1Bias(_) | DownBias(_)
            | Norm2(_) | Norm2Bias(_) => (1, d),
        }
    }

    fn len(self, shape: &Shape) -> usize {
        let (rows, columns) = self.dims(shape);
        rows * columns
    }

    pub fn range(self, shape: &Shape) -> Range<usize> {
        let before = Tensor::all(shape).take_while(|&other| other != self);
        let start = before.map(|tensor| tensor.len(shape)).sum();
        start..start + self.len(shape)
    }

    /// As in the ONNX file, e.g. `layer0.query`.
    pub fn name(self) -> String {
        use Tensor::*;
        let (layer, name) = match self {
            Idle => return "embed.idle".into(),
            Slack => return "embed.slack".into(),
            Work => return "embed.work".into(),
            Class => return "embed.class".into(),
            Doubt => return "embed.doubt".into(),
            Pair => return "embed.pair".into(),
            Head => return "head".into(),
            HeadBias => return "head.bias".into(),
            Query(l) => (l, "query"),
            QueryBias(l) => (l, "query.bias"),
            Key(l) => (l, "key"),
            Value(l) => (l, "value"),
            ValueBias(l) => (l, "value.bias"),
            Out(l) => (l, "out"),
            OutBias(l) => (l, "out.bias"),
            Norm1(l) => (l, "norm1"),
            Norm1Bias(l) => (l, "norm1.bias"),
            Up(l) => (l, "up"),
            UpBias(l) => (l, "up.bias"),
            Down(l) => (l, "down"),
            DownBias(l) => (l, "down.bias"),
            Norm2(l) => (l, "norm2"),
            Norm2Bias(l) => (l, "norm2.bias"),
        };
        format!("layer{layer}.{name}")
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum WeightsError {
    #[error("the network needs {needed} weights and there are {given}")]
    Count { needed: usize, given: usize },
    #[error("{0} has a weight that is not a finite number")]
    NotFinite(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    shape: Shape,
    values: Vec<f32>,
}

impl Weights {
    pub fn count(shape: &Shape) -> usize {
        Tensor::all(shape).map(|tensor| tensor.len(shape)).sum()
    }

    /// All zero.
    pub fn zeros(shape: Shape) -> Weights {
        Weights {
            values: vec![0.0; Weights::count(&shape)],
            shape,
        }
    }

    pub fn new(shape: Shape, values: Vec<f32>) -> Result<Weights, WeightsError> {
        let (needed, given) = (Weights::count(&shape), values.len());
        if needed != given {
            return Err(WeightsError::Count { needed, given });
        }
        let weights = Weights { shape, values };
        for tensor in Tensor::all(&shape) {
            if !weights.get(tensor).iter().all(|value| value.is_finite()) {
                return Err(WeightsError::NotFinite(tensor.name()));
            }
        }
        Ok(weights)
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn get(&self, tensor: Tensor) -> &[f32] {
        &self.values[tensor.range(&self.shape)]
    }

    pub fn get_mut(&mut self, tensor: Tensor) -> &mut [f32] {
        &mut self.values[tensor.range(&self.shape)]
    }

    pub fn values(&self) -> &[f32] {
        &self.values
    }

    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }
}
