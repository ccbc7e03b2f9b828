//! Contexts side by side: the distinct tokens of each with their counts.

use crate::policy::TokenSet;

/// A multiset of tokens, as the network sees a situation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Places in the vocabulary; idle first.
    pub indices: Vec<u32>,
    /// Jobs per token; CPUs for idle.
    pub counts: Vec<u32>,
}

impl Tokens {
    pub fn of(set: &TokenSet, cpus: usize) -> Tokens {
        let mut counts = set.counts().to_vec();
        counts[0] = cpus as u32;
        Tokens {
            indices: set.indices().to_vec(),
            counts,
        }
    }

    pub fn len(&self) -> usize {
        self.indices.len()
    }

    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

/// Several contexts as one block of rows.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub indices: Vec<u32>,
    pub ln_counts: Vec<f32>,
    /// First row of every context, and the end.
    starts: Vec<usize>,
}

impl Batch {
    pub fn clear(&mut self) {
        self.indices.clear();
        self.ln_counts.clear();
        self.starts.clear();
    }

    /// Adds a context; its rows are those of its tokens, in their order.
    pub fn push(&mut self, tokens: &Tokens) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.indices.extend_from_slice(&tokens.indices);
        let counts = tokens.counts.iter();
        self.ln_counts.extend(counts.map(|&n| (n as f32).ln()));
        self.starts.push(self.indices.len());
    }

    pub fn rows(&self) -> usize {
        self.indices.len()
    }

    pub fn contexts(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.starts.windows(2).map(|ends| ends[0]..ends[1])
    }
}
