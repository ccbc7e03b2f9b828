//! A model as ONNX: plain operators of opset 17, everything else about it in
//! `metadata_props`.

use super::graph::{Attribute, Dim, Graph, FLOAT, INT64};
use super::sparse::SparseRows;
use super::wire::Message;
use super::{GraphKind, Key};
use crate::policy::network::model::Model;
use crate::policy::network::{Shape, Tensor, NORM_EPSILON};

/// What the operators mean; since ONNX 1.12 of 2022.
const OPSET: i64 = 17;
/// The IR version that came with it.
const IR_VERSION: i64 = 8;

const ABOUT_TOKENS: &str = "The token of each row, as its place in the vocabulary: idle has the \
level of load, 0 for unknown, and a job has loads + ((slack * works + work) * classes + class) * \
doubts + doubt, where slack is 0 for a late job and else 1 + its slack bin. temponet.tokenizer in \
the metadata has the bins, temponet.shape the numbers of them.";

impl GraphKind {
    fn about(self) -> &'static str {
        match self {
            GraphKind::Multiset => {
                "TempoNet over distinct tokens with counts. Inputs: tokens, counts; output: q. \
A row with count 0 is padding, so batches may mix sizes."
            }
            GraphKind::Dense => {
                "TempoNet with one row per job and one idle row per CPU. Input: tokens; output: q."
            }
            GraphKind::Sparse => {
                "TempoNet with one row for idle, then one per job in order of deadline, and sparse \
attention. Inputs: tokens, counts, plan; output: q."
            }
        }
    }
}

/// The bytes of the model's .onnx file.
pub fn write(model: &Model, kind: GraphKind) -> Vec<u8> {
    let json = |value| serde_json::to_string(&value).expect("plain JSON");
    let provenance = model.provenance();
    let mut metadata = vec![
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
    if let Some(table) = model.distilled() {
        let table = serde_json::to_string(table).expect("plain JSON");
        // Not last: a file that lost its end would pass for one without a table.
        metadata.insert(0, (Key::Distilled, table));
    }
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
    let rows = || [Dim("batch"), Dim("rows")];
    let tokens = g.input("tokens", INT64, &rows(), ABOUT_TOKENS);
    let logit_bias = (kind != GraphKind::Dense).then(|| {
        let about = "How many jobs have each token; for idle, the number of CPUs; 0 for padding.";
        let counts = g.input("counts", FLOAT, &rows(), about);
        let logs = g.node("counts.log", "Log", &[&counts], &[]);
        let axes = g.ints("axes.logits", &[1, 2]);
        g.node("logits.bias", "Unsqueeze", &[&logs, &axes], &[])
    });
    let sparse = (kind == GraphKind::Sparse).then(|| SparseRows::new(&mut g, &tokens));
    let how = Logits {
        bias: logit_bias.as_deref(),
        sparse: sparse.as_ref(),
    };
    let q = encode(&mut g, model, &tokens, &how);
    let dims = g.node("dims", "Shape", &[&tokens], &[]);
    g.node("q", "Reshape", &[&q, &dims], &[]);
    let about = "The value of each row: of running such a job, or of leaving a CPU idle.";
    g.output("q", FLOAT, &rows(), about);
    g
}

/// The row of every token there is: idle, then the sums of embeddings. ONNX
/// Runtime computes it once, at load.
fn vocabulary(g: &mut Graph, shape: &Shape) -> String {
    let d = shape.width as i64;
    let parts = [
        (Tensor::Slack, [shape.slack as i64, 1, 1, 1, d]),
        (Tensor::Work, [1, shape.work as i64, 1, 1, d]),
        (Tensor::Class, [1, 1, shape.classes as i64, 1, d]),
        (Tensor::Doubt, [1, 1, 1, shape.doubts as i64, d]),
    ];
    let [slack, work, class, doubt] = parts.map(|(tensor, dims)| {
        let name = tensor.name();
        let dims = g.ints(&format!("{name}.dims"), &dims);
        g.node(&format!("{name}.spread"), "Reshape", &[&name, &dims], &[])
    });
    let mut times = g.node("embed.times", "Add", &[&slack, &work], &[]);
    if shape.pairs {
        let name = Tensor::Pair.name();
        let dims = [shape.slack as i64, shape.work as i64, 1, 1, d];
        let dims = g.ints(&format!("{name}.dims"), &dims);
        let pairs = g.node(&format!("{name}.spread"), "Reshape", &[&name, &dims], &[]);
        times = g.node("embed.pairs", "Add", &[&times, &pairs], &[]);
    }
    let others = g.node("embed.others", "Add", &[&class, &doubt], &[]);
    let sums = g.node("embed.sums", "Add", &[&times, &others], &[]);
    let jobs = g.node("embed.jobs", "Reshape", &[&sums, "flat"], &[]);
    g.node("vocabulary", "Concat", &["embed.idle", &jobs], &[axis(0)])
}

/// What is done to the logits of attention.
struct Logits<'a> {
    bias: Option<&'a str>,
    sparse: Option<&'a SparseRows>,
}

/// [batch, rows] of tokens -> [batch · rows, 1] of Q.
fn encode(g: &mut Graph, model: &Model, tokens: &str, how: &Logits<'_>) -> String {
    let shape = model.shape();
    let (heads, head_width) = (shape.heads, shape.width / shape.heads);
    // Matrices see all rows of the batch at once.
    let flat = g.ints("flat", &[-1, shape.width as i64]);
    let table = vocabulary(g, shape);
    let all = g.ints("all", &[-1]);
    let places = g.node("places", "Reshape", &[tokens, &all], &[]);
    let mut x = g.node("x", "Gather", &[&table, &places], &[axis(0)]);
    let dims = g.node("tokens.dims", "Shape", &[tokens], &[]);
    let inner = g.ints("inner", &[3 * heads as i64, head_width as i64]);
    let by_head = g.node("by_head", "Concat", &[&dims, &inner], &[axis(0)]);
    g.floats("scale", &[], &[1.0 / (head_width as f32).sqrt()]);
    g.floats("key.bias", &[shape.width], &vec![0.0; shape.width]);
    for l in 0..shape.layers {
        let at = |name: &str| format!("layer{l}.{name}");
        let linear = |g: &mut Graph, x: &str, matrix: Tensor, bias: Tensor| {
            let (matrix, bias) = (matrix.name(), bias.name());
            g.node(&format!("{matrix}.rows"), "Gemm", &[x, &matrix, &bias], &[])
        };
        // Queries, keys and values in one product; joined and scaled at load.
        let scaled = |g: &mut Graph, tensor: Tensor| {
            let name = tensor.name();
            g.node(&format!("{name}.scaled"), "Mul", &[&name, "scale"], &[])
        };
        let query = scaled(g, Tensor::Query(l));
        let query_bias = scaled(g, Tensor::QueryBias(l));
        let matrices = [&query, &Tensor::Key(l).name(), &Tensor::Value(l).name()];
        let matrices = matrices.map(String::as_str);
        let biases = [&query_bias, "key.bias", &Tensor::ValueBias(l).name()];
        let matrix = g.node(&at("project"), "Concat", &matrices, &[axis(1)]);
        let bias = g.node(&at("project.bias"), "Concat", &biases, &[axis(0)]);
        let rows = g.node(&at("project.rows"), "Gemm", &[&x, &matrix, &bias], &[]);
        let split = g.node(&at("project.split"), "Reshape", &[&rows, &by_head], &[]);
        let turned = turn(g, &at("project.turned"), &split, [0, 2, 1, 3]);
        let parts = ["query.rows", "key.rows", "value.rows"].map(at);
        g.nodes(
            parts.each_ref().map(String::as_str),
            "Split",
            &[&turned],
            &[axis(1)],
        );
        let [queries, keys, values] = parts;
        let keys = turn(g, &at("key.turned"), &keys, [0, 1, 3, 2]);
        let mut logits = g.node(&at("logits"), "MatMul", &[&queries, &keys], &[]);
        if let Some(bias) = how.bias {
            logits = g.node(&at("logits.counted"), "Add", &[&logits, bias], &[]);
        }
        if let Some(sparse) = how.sparse {
            logits = sparse.drop_small(g, l, &logits);
        }
        let attention = g.node(&at("attention"), "Softmax", &[&logits], &[axis(-1)]);
        let mixed = g.node(&at("mixed"), "MatMul", &[&attention, &values], &[]);
        let mixed = turn(g, &at("mixed.turned"), &mixed, [0, 2, 1, 3]);
        let mixed = g.node(&at("mixed.rows"), "Reshape", &[&mixed, &flat], &[]);
        let out = linear(g, &mixed, Tensor::Out(l), Tensor::OutBias(l));
        x = add_norm(g, &x, &out, Tensor::Norm1(l), Tensor::Norm1Bias(l));
        let up = linear(g, &x, Tensor::Up(l), Tensor::UpBias(l));
        let hidden = g.node(&at("hidden"), "Relu", &[&up], &[]);
        let down = linear(g, &hidden, Tensor::Down(l), Tensor::DownBias(l));
        x = add_norm(g, &x, &down, Tensor::Norm2(l), Tensor::Norm2Bias(l));
    }
    g.node("q.rows", "Gemm", &[&x, "head", "head.bias"], &[])
}

fn turn(g: &mut Graph, name: &str, x: &str, order: [i64; 4]) -> String {
    let order = [("perm", Attribute::Ints(order.to_vec()))];
    g.node(name, "Transpose", &[x], &order)
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
