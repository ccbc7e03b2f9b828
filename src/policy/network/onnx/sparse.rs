//! The paper's sparse attention in plain operators: rows in order of deadline,
//! all of the own chunk, and of every block of the others the logits that reach
//! the k-th largest. As in the native backend, idle (row 0) sees all and is seen
//! by all, and logits that tie are kept.

use super::graph::{Attribute, Dim, Graph, INT64};

/// A logit that weighs nothing after the softmax.
const NOTHING: f32 = f32::MIN;

/// Values that all layers share, by name.
pub struct SparseRows {
    /// [rows, rows]: seen whatever its logit.
    near: String,
    /// Columns block by block, the gaps filled with one behind the last.
    columns: String,
    /// Block of every column.
    block_of: String,
    block_dims: String,
    keep: String,
}

impl SparseRows {
    /// `tokens` is [batch, rows]. Adds the input `plan`.
    pub fn new(g: &mut Graph, tokens: &str) -> SparseRows {
        let about = "Jobs per chunk, keys per block, logits kept per block.";
        let plan = g.input("plan", INT64, &[Dim("three")], about);
        for (name, value) in [("zero", 0), ("one", 1), ("two", 2)] {
            g.ints(name, &[value]);
        }
        let part = |g: &mut Graph, name: &str, at: &str| {
            g.node(name, "Gather", &[&plan, at], &[("axis", Attribute::Int(0))])
        };
        let chunk = part(g, "plan.chunk", "zero");
        let block = part(g, "plan.block", "one");
        let keep = part(g, "plan.keep", "two");
        let keep = g.node("keep", "Min", &[&keep, &block], &[]);

        let dims = g.node("rows.dims", "Shape", &[tokens], &[]);
        let first = [("axis", Attribute::Int(0))];
        let rows = g.node("rows", "Gather", &[&dims, "one"], &first);
        let jobs = g.node("jobs", "Sub", &[&rows, "one"], &[]);
        // Chunks, one at least, and the room of one in whole blocks.
        let chunks = divide_up(g, "chunks", &jobs, &chunk);
        let chunks = g.node("chunks.some", "Max", &[&chunks, "one"], &[]);
        let blocks = divide_up(g, "blocks", &chunk, &block);
        let room = g.node("room", "Mul", &[&blocks, &block], &[]);
        let places = g.node("places.count", "Mul", &[&chunks, &room], &[]);

        let place = count_to(g, "place", &places);
        let of_chunk = g.node("place.chunk", "Div", &[&place, &room], &[]);
        let within = g.node("place.within", "Mod", &[&place, &room], &[]);
        let start = g.node("place.start", "Mul", &[&of_chunk, &chunk], &[]);
        let column = g.node("place.job", "Add", &[&start, &within], &[]);
        let column = g.node("place.column", "Add", &[&column, "one"], &[]);
        let inside = g.node("place.inside", "Less", &[&within, &chunk], &[]);
        let there = g.node("place.there", "Less", &[&column, &rows], &[]);
        let real = g.node("place.real", "And", &[&inside, &there], &[]);
        let columns = g.node("columns", "Where", &[&real, &column, &rows], &[]);

        let row = count_to(g, "row", &rows);
        let is_idle = g.node("row.idle", "Equal", &[&row, "zero"], &[]);
        let before = g.node("row.before", "Sub", &[&row, "one"], &[]);
        // Idle is in no chunk; where it lands makes no difference.
        let job = g.node("row.job", "Max", &[&before, "zero"], &[]);
        let own = g.node("row.chunk", "Div", &[&job, &chunk], &[]);
        let within = g.node("row.within", "Mod", &[&job, &chunk], &[]);
        let start = g.node("row.start", "Mul", &[&own, &room], &[]);
        let place = g.node("row.place", "Add", &[&start, &within], &[]);
        let block_of = g.node("row.block", "Div", &[&place, &block], &[]);
        let down = |g: &mut Graph, name: &str| {
            g.node(&format!("{name}.down"), "Unsqueeze", &[name, "one"], &[])
        };
        let own_down = down(g, &own);
        let same = g.node("near.same", "Equal", &[&own_down, &own], &[]);
        let idle_down = down(g, &is_idle);
        let idle = g.node("near.idle", "Or", &[&idle_down, &is_idle], &[]);
        let near = g.node("near", "Or", &[&same, &idle], &[]);

        g.ints("blocks.front", &[0, 0, 0, -1]);
        let block_dims = g.node("blocks.dims", "Concat", &["blocks.front", &block], &first);
        g.ints("behind", &[0, 0, 0, 0, 0, 0, 0, 1]);
        g.floats("nothing", &[], &[NOTHING]);
        SparseRows {
            near,
            columns,
            block_of,
            block_dims,
            keep,
        }
    }

    /// The logits [batch, heads, rows, rows] of a layer, those dropped at nothing.
    pub fn drop_small(&self, g: &mut Graph, layer: usize, logits: &str) -> String {
        let at = |name: &str| format!("layer{layer}.sparse.{name}");
        let last = |axis| [("axis", Attribute::Int(axis))];
        let wide = [logits, "behind", "nothing"];
        let wide = g.node(&at("wide"), "Pad", &wide, &[]);
        let by_block = g.node(&at("places"), "Gather", &[&wide, &self.columns], &last(3));
        let by_block = [by_block.as_str(), &self.block_dims];
        let by_block = g.node(&at("blocks"), "Reshape", &by_block, &[]);
        let (top, which) = (at("top"), at("which"));
        let ranked = [by_block.as_str(), &self.keep];
        g.nodes([&top, &which], "TopK", &ranked, &last(-1));
        let of_blocks = [
            ("axes", Attribute::Ints(vec![-1])),
            ("keepdims", Attribute::Int(0)),
        ];
        let least = g.node(&at("least"), "ReduceMin", &[&top], &of_blocks);
        let least = g.node(
            &at("threshold"),
            "Gather",
            &[&least, &self.block_of],
            &last(3),
        );
        let large = g.node(&at("large"), "GreaterOrEqual", &[logits, &least], &[]);
        let kept = g.node(&at("kept"), "Or", &[&large, &self.near], &[]);
        g.node(&at("logits"), "Where", &[&kept, logits, "nothing"], &[])
    }
}

/// ⌈a / b⌉ of whole numbers that are not negative.
fn divide_up(g: &mut Graph, name: &str, a: &str, b: &str) -> String {
    let sum = g.node(&format!("{name}.sum"), "Add", &[a, b], &[]);
    let sum = g.node(&format!("{name}.less"), "Sub", &[&sum, "one"], &[]);
    g.node(name, "Div", &[&sum, b], &[])
}

/// 0, 1, … up to a number that stands in a vector of one.
fn count_to(g: &mut Graph, name: &str, count: &str) -> String {
    let scalar = |g: &mut Graph, from: &str, part: &str| {
        g.node(&format!("{name}.{part}"), "Squeeze", &[from, "zero"], &[])
    };
    let limits = [
        scalar(g, "zero", "first"),
        scalar(g, count, "last"),
        scalar(g, "one", "step"),
    ];
    g.node(name, "Range", &limits.each_ref().map(String::as_str), &[])
}
