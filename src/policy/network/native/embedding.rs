//! The first layer's rows as look-ups: a row is a sum of embeddings, and so are
//! its query, key and value.

use super::kernels::Rows;
use super::lanes::{flat, flat_mut, panels, Sixteen};
use crate::policy::network::{Shape, Tensor, Weights};
use crate::policy::tokenizer::Token;

/// Where the rows of a pass go.
pub struct FirstRows<'a> {
    pub x: &'a mut Rows,
    pub q: &'a mut Rows,
    pub k: &'a mut Rows,
    pub v: &'a mut Rows,
}

/// For every value of a feature its part of x, q, k and v, side by side.
#[derive(Debug, Clone)]
pub struct Embedding {
    /// Panels of one of the four.
    panels: usize,
    idle: Vec<Sixteen>,
    slack: Vec<Sixteen>,
    work: Vec<Sixteen>,
    /// Where the shape has pairs: slack, work and pair, added up.
    pairs: Option<Vec<Sixteen>>,
    works: usize,
    class: Vec<Sixteen>,
    doubt: Vec<Sixteen>,
}

impl Embedding {
    /// Queries are multiplied by `query_scale`.
    pub fn new(weights: &Weights, query_scale: f32) -> Embedding {
        let shape = weights.shape();
        // A row has one idle or one slack embedding, so the biases go there.
        let table = |tensor, with_bias| table(weights, shape, tensor, with_bias, query_scale);
        let (slack, work) = (table(Tensor::Slack, true), table(Tensor::Work, false));
        let pairs = shape.pairs.then(|| {
            let mut sums = table(Tensor::Pair, false);
            let stride = 4 * panels(shape.width);
            for (pair, sum) in sums.chunks_mut(stride).enumerate() {
                let parts = [
                    entry(&slack, pair / shape.work, stride),
                    entry(&work, pair % shape.work, stride),
                ];
                for part in parts {
                    for (to, more) in flat_mut(sum).iter_mut().zip(flat(part)) {
                        *to += more;
                    }
                }
            }
            sums
        });
        Embedding {
            panels: panels(shape.width),
            idle: table(Tensor::Idle, true),
            slack,
            work,
            pairs,
            works: shape.work,
            class: table(Tensor::Class, false),
            doubt: table(Tensor::Doubt, false),
        }
    }

    pub fn look_up(&self, tokens: &[Token], to: FirstRows<'_>) {
        let parts = [to.x, to.q, to.k, to.v];
        let stride = parts.len() * self.panels;
        let entry = |table, value: usize| -> &[Sixteen] { entry(table, value, stride) };
        for (part, rows) in parts.into_iter().enumerate() {
            rows.resize(tokens.len());
            let cut = part * self.panels..(part + 1) * self.panels;
            for (row, &token) in tokens.iter().enumerate() {
                let row = rows.row_mut(row);
                let (slack, work, class, doubt) = match token {
                    Token::Idle { load } => {
                        row.copy_from_slice(&entry(&self.idle, load.into())[cut.clone()]);
                        continue;
                    }
                    Token::Job {
                        slack,
                        work,
                        class,
                        doubt,
                    } => (slack, work, class, doubt),
                };
                let (slack, work): (usize, usize) = (slack.into(), work.into());
                let class = &entry(&self.class, class.into())[cut.clone()];
                let doubt = &entry(&self.doubt, doubt.into())[cut.clone()];
                if let Some(pairs) = &self.pairs {
                    let pair = &entry(pairs, slack * self.works + work)[cut.clone()];
                    for (i, block) in row.iter_mut().enumerate() {
                        block.0 = std::array::from_fn(|lane| {
                            pair[i].0[lane] + (class[i].0[lane] + doubt[i].0[lane])
                        });
                    }
                    continue;
                }
                let slack = &entry(&self.slack, slack)[cut.clone()];
                let work = &entry(&self.work, work)[cut.clone()];
                for (i, block) in row.iter_mut().enumerate() {
                    block.0 = std::array::from_fn(|lane| {
                        (slack[i].0[lane] + work[i].0[lane]) + (class[i].0[lane] + doubt[i].0[lane])
                    });
                }
            }
        }
    }
}

fn entry(table: &[Sixteen], value: usize, stride: usize) -> &[Sixteen] {
    &table[value * stride..][..stride]
}

fn table(
    weights: &Weights,
    shape: &Shape,
    tensor: Tensor,
    with_bias: bool,
    query_scale: f32,
) -> Vec<Sixteen> {
    let d = shape.width;
    let (rows, _) = tensor.dims(shape);
    let stride = 4 * panels(d);
    let mut table = vec![Sixteen::default(); rows * stride];
    let projections = [
        (Tensor::Query(0), Some(Tensor::QueryBias(0)), query_scale),
        (Tensor::Key(0), None, 1.0),
        (Tensor::Value(0), Some(Tensor::ValueBias(0)), 1.0),
    ];
    for (embedding, entry) in weights.get(tensor).chunks(d).zip(table.chunks_mut(stride)) {
        let mut parts = entry.chunks_mut(panels(d)).map(flat_mut);
        let mut next = || &mut parts.next().expect("four parts")[..d];
        next().copy_from_slice(embedding);
        for (matrix, bias, scale) in projections {
            let matrix = weights.get(matrix);
            let bias = bias.filter(|_| with_bias).map(|bias| weights.get(bias));
            for (column, place) in next().iter_mut().enumerate() {
                let product = |(row, &x): (usize, &f32)| x as f64 * matrix[row * d + column] as f64;
                let sum: f64 = embedding.iter().enumerate().map(product).sum();
                *place = (sum + bias.map_or(0.0, |bias| bias[column] as f64)) as f32 * scale;
            }
        }
    }
    table
}
