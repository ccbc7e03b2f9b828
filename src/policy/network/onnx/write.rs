//! A model as ONNX: plain operators of opset 17, everything else about it in
//! `metadata_props`.

use super::graph::{Attribute, Dim, Graph, FLOAT, INT64};
use super::wire::Message;
use super::{GraphKind, Key};
use crate::policy::network::model::Model;
use crate::policy::network::{Tensor, NORM_EPSILON};

/// What the operators mean; since ONNX 1.12 of 2022.
const OPSET: i64 = 17;
/// The IR version that came with it.
const IR_VERSION: i64 = 8;

const ABOUT_TOKENS: &str = "One row per token of a job: slack bin (0: late), work bin, \
criticality class, level of doubt; see temponet.tokenizer in the metadata.";

impl GraphKind {
    fn about(self) -> &'static str {
        match self {
            GraphKind::Multiset => {
                "TempoNet over distinct tokens with counts. Inputs: tokens, counts; output: q. \
A count of zero marks padding, so batches may mix sizes."
            }
            GraphKind::Dense => "TempoNet with one row per job. Inputs: tokens, cpus; output: q.",
        }
    }
}

/// The bytes of the model's .onnx file.
pub fn write(model: &Model, kind: GraphKind) -> Vec<u8> {
    let json = |value| serde_json::to_string(&value).expect("plain JSON");
    let provenance = model.provenance();
    let metadata = [
        (Key::Format, super::FORMAT.to_owned()),
        (Key::Graph, kind.name().to_owned()),
        (Key::Name, provenance.name.clone()),
        (
            Key::Tokenizer,
            serde_json::to_string(model.tokenizer()).expect("plain JSON"),
        ),
        (
            Key::Shape,
            serde_json::to_string(model.shape()).expect("plain JSON"),
        ),
        (Key::Training, json(&provenance.training)),
        (Key::Compliance, json(&provenance.compliance)),
    ];
    let entries = metadata
        .iter()
        .map(|(key, value)| Message::default().text(1, key.name()).text(2, value));
    Message::default()
        .number(1, IR_VERSION)
        .text(2, env!("CARGO_PKG_NAME"))
        .text(3, env!("CARGO_PKG_VERSION"))
        .text(6, kind.about())
        .message(7, graph(model, kind).into_message("temponet", kind.about()))
        .message(8, Message::default().text(1, "").number(2, OPSET))
        .messages(14, entries)
        .into_bytes()
}

fn graph(model: &Model, kind: GraphKind) -> Graph {
    let shape = model.shape();
    let weights = model.weights();
    let mut g = Graph::default();
    for tensor in Tensor::all(shape) {
        let (rows, columns) = tensor.dims(shape);
        // Rows of a matrix, or a vector; embeddings are always matrices.
        let is_vector = rows == 1 && !tensor.name().starts_with("embed");
        let dims = if is_vector {
            vec![columns]
        } else {
            vec![rows, columns]
        };
        g.floats(&tensor.name(), &dims, weights.get(tensor));
    }
    let tokens = g.input(
        "tokens",
        INT64,
        &[Dim::Named("batch"), Dim::Named("jobs"), Dim::Of(4)],
        ABOUT_TOKENS,
    );
    let (rows, logit_bias) = match kind {
        GraphKind::Multiset => {
            let counts = g.input(
                "counts",
                FLOAT,
                &[Dim::Named("batch"), Dim::Named("actions")],
                "How often each token occurs: first the number of CPUs, which is how often \
the idle token stands, then one count per row of tokens; 0 marks padding.",
            );
            let axes = g.ints("axes.logits", &[1, 2]);
            let logs = g.node("counts.log", "Log", &[&counts], &[]);
            let bias = g.node("counts.bias", "Unsqueeze", &[&logs, &axes], &[]);
            let one = g.ints("one", &[1]);
            (embed(&mut g, model, &tokens, &one), Some(bias))
        }
        GraphKind::Dense => {
            let about = "The number of CPUs, which is how often the idle token stands.";
            let cpus = g.input("cpus", INT64, &[Dim::Of(1)], about);
            (embed(&mut g, model, &tokens, &cpus), None)
        }
    };
    let q = encode(&mut g, model, &rows, logit_bias.as_deref());
    if kind == GraphKind::Dense {
        // All idle rows say the same: keep the last.
        let one = g.ints("one", &[1]);
        let start = g.node("q.start", "Sub", &["cpus", &one], &[]);
        let end = g.ints("q.end", &[i64::MAX]);
        g.node("q", "Slice", &[&q, &start, &end, &one], &[]);
    }
    g.output(
        "q",
        FLOAT,
        &[Dim::Named("batch"), Dim::Named("actions")],
        "The value of each action: first of leaving a CPU idle, then of each row of tokens.",
    );
    g
}

/// Rows of the idle token, then those of the jobs: [batch, rows, width].
fn embed(g: &mut Graph, model: &Model, tokens: &str, idle_rows: &str) -> String {
    let shape = model.shape();
    // One table and one look-up: ONNX Runtime joins the tables at load.
    let tables = ["embed.slack", "embed.work", "embed.class", "embed.doubt"];
    let starts = [
        0,
        shape.slack,
        shape.slack + shape.work,
        shape.slack + shape.work + shape.classes,
    ];
    let table = g.node("embed.tables", "Concat", &tables, &[axis(0)]);
    let starts = g.ints("embed.starts", &starts.map(|start| start as i64));
    let places = g.node("embed.places", "Add", &[tokens, &starts], &[]);
    let parts = g.node("embed.parts", "Gather", &[&table, &places], &[axis(0)]);
    let features = g.ints("axes.features", &[2]);
    let whole = [("keepdims", Attribute::Int(0))];
    let jobs = g.node("embed.jobs", "ReduceSum", &[&parts, &features], &whole);

    let first = [("start", Attribute::Int(0)), ("end", Attribute::Int(1))];
    let batch = g.node("batch", "Shape", &[tokens], &first);
    let width = g.ints("width", &[shape.width as i64]);
    let dims = g.node(
        "idle.dims",
        "Concat",
        &[&batch, idle_rows, &width],
        &[axis(0)],
    );
    let idle = g.node("idle.rows", "Expand", &["embed.idle", &dims], &[]);
    g.node("embed", "Concat", &[&idle, &jobs], &[axis(1)])
}

/// [batch, rows, width] -> [batch, rows].
fn encode(g: &mut Graph, model: &Model, rows: &str, logit_bias: Option<&str>) -> String {
    let shape = model.shape();
    let (heads, head_width) = (shape.heads, shape.width / shape.heads);
    let outer = [("start", Attribute::Int(0)), ("end", Attribute::Int(2))];
    let outer = g.node("outer", "Shape", &[rows], &outer);
    let inner = g.ints("inner", &[heads as i64, head_width as i64]);
    let by_head = g.node("by_head", "Concat", &[&outer, &inner], &[axis(0)]);
    // Matrices see all rows of all batches at once.
    let flat = g.ints("flat", &[-1, shape.width as i64]);
    g.floats("scale", &[], &[1.0 / (head_width as f32).sqrt()]);
    let mut x = g.node("x", "Reshape", &[rows, &flat], &[]);
    for l in 0..shape.layers {
        let at = |name: &str| format!("layer{l}.{name}");
        let linear = |g: &mut Graph, x: &str, matrix: Tensor, bias: Tensor| {
            let (matrix, bias) = (matrix.name(), bias.name());
            g.node(&format!("{matrix}.rows"), "Gemm", &[x, &matrix, &bias], &[])
        };
        let turn = |g: &mut Graph, x: &str, order: [i64; 4]| {
            let split = g.node(&format!("{x}.split"), "Reshape", &[x, &by_head], &[]);
            let order = [("perm", Attribute::Ints(order.to_vec()))];
            g.node(&format!("{x}.turned"), "Transpose", &[&split], &order)
        };
        let queries = linear(g, &x, Tensor::Query(l), Tensor::QueryBias(l));
        let queries = g.node(&at("query.scaled"), "Mul", &[&queries, "scale"], &[]);
        let keys = g.node(
            &at("key.rows"),
            "MatMul",
            &[&x, &Tensor::Key(l).name()],
            &[],
        );
        let values = linear(g, &x, Tensor::Value(l), Tensor::ValueBias(l));
        let queries = turn(g, &queries, [0, 2, 1, 3]);
        let keys = turn(g, &keys, [0, 2, 3, 1]);
        let values = turn(g, &values, [0, 2, 1, 3]);
        let mut logits = g.node(&at("logits"), "MatMul", &[&queries, &keys], &[]);
        if let Some(bias) = logit_bias {
            logits = g.node(&at("logits.counted"), "Add", &[&logits, bias], &[]);
        }
        let attention = g.node(&at("attention"), "Softmax", &[&logits], &[axis(-1)]);
        let mixed = g.node(&at("mixed"), "MatMul", &[&attention, &values], &[]);
        let back = [("perm", Attribute::Ints(vec![0, 2, 1, 3]))];
        let mixed = g.node(&at("mixed.turned"), "Transpose", &[&mixed], &back);
        let mixed = g.node(&at("mixed.rows"), "Reshape", &[&mixed, &flat], &[]);
        let out = linear(g, &mixed, Tensor::Out(l), Tensor::OutBias(l));
        x = add_norm(g, &x, &out, Tensor::Norm1(l), Tensor::Norm1Bias(l));
        let up = linear(g, &x, Tensor::Up(l), Tensor::UpBias(l));
        let hidden = g.node(&at("hidden"), "Relu", &[&up], &[]);
        let down = linear(g, &hidden, Tensor::Down(l), Tensor::DownBias(l));
        x = add_norm(g, &x, &down, Tensor::Norm2(l), Tensor::Norm2Bias(l));
    }
    let q = g.node("q.rows", "Gemm", &[&x, "head", "head.bias"], &[]);
    let name = if logit_bias.is_some() { "q" } else { "q.all" };
    g.node(name, "Reshape", &[&q, &outer], &[])
}

fn add_norm(g: &mut Graph, x: &str, y: &str, gain: Tensor, bias: Tensor) -> String {
    let (gain, bias) = (gain.name(), bias.name());
    let sum = g.node(&format!("{gain}.sum"), "Add", &[x, y], &[]);
    let how = [axis(-1), ("epsilon", Attribute::Float(NORM_EPSILON))];
    let name = format!("{gain}.rows");
    g.node(&name, "LayerNormalization", &[&sum, &gain, &bias], &how)
}

fn axis(axis: i64) -> (&'static str, Attribute) {
    ("axis", Attribute::Int(axis))
}
