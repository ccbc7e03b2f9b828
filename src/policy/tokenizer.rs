//! The Urgency Tokenizer: jobs -> discrete tokens -> a multiset of tokens.
//!
//! Tasks with the same token get the same answer from the network, so it is
//! asked once per distinct token, with a count.

use super::job::{Job, Situation, Upcoming};
use super::quantiser::{Quantiser, QuantiserError};
use serde::{Deserialize, Serialize};

/// Q in the paper's ablation goes from 8 to 256.
pub const SLACK_LEVELS: (usize, usize) = (8, 256);
/// Work bins are coarse on purpose: every one multiplies the distinct tokens,
/// and with them the cost of an inference.
pub const WORK_LEVELS: (usize, usize) = (1, 64);
/// Spread of the work in hundredths of what is left, where doubt rises by a
/// level. A job that outlived its estimate is as doubtful as it gets.
const DOUBT_EDGES: [i64; 3] = [5, 25, 75];
/// 1 for none.
pub const DOUBT_LEVELS: (usize, usize) = (1, 1 + DOUBT_EDGES.len());
/// Demand of the known tasks over capacity, where the load rises by a level. A
/// core that is exactly full counts as one that is not overloaded.
const LOAD_EDGES: [f64; 3] = [0.85, 1.001, 1.25];
/// 1 for not told; else one for unknown and one for each stretch of the edges.
pub const LOAD_LEVELS: (usize, usize) = (1, 2 + LOAD_EDGES.len());

/// What the network sees of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// The learned idle token, x_0 of the paper. Everybody sees it, so it is the
    /// one to say how much the known tasks ask for: U = 0.95 and U = 1.1 show
    /// the same jobs, and want different ones to run.
    Idle {
        /// 0 for unknown.
        load: u8,
    },
    Job {
        /// 0 for negative slack, else 1 + the paper's s̃.
        slack: u16,
        work: u8,
        /// Criticality, capped at the highest class the model knows.
        class: u8,
        /// How little is known of the work: 0 for known.
        doubt: u8,
    },
}

impl Token {
    /// The paper's s̃, for which late is as urgent as it gets; none for idle.
    pub fn slack_level(self) -> Option<usize> {
        match self {
            Token::Idle { .. } => None,
            Token::Job { slack, .. } => Some(slack.saturating_sub(1) as usize),
        }
    }
}

/// Bins for slack and remaining work; lives in a model's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Tokenizer {
    slack: Quantiser,
    work: Quantiser,
    classes: u8,
    doubts: u8,
    loads: u8,
}

impl Tokenizer {
    /// `classes` is the number of criticality classes told apart and `doubts`
    /// the levels of doubt about the work, 1 for none.
    pub fn new(
        slack: Quantiser,
        work: Quantiser,
        classes: u8,
        doubts: u8,
    ) -> Result<Tokenizer, QuantiserError> {
        slack.require_levels(SLACK_LEVELS.0, SLACK_LEVELS.1)?;
        work.require_levels(WORK_LEVELS.0, WORK_LEVELS.1)?;
        Ok(Tokenizer {
            slack,
            work,
            classes: classes.max(1),
            doubts: doubts.clamp(DOUBT_LEVELS.0 as u8, DOUBT_LEVELS.1 as u8),
            loads: 1,
        })
    }

    /// Tells this many levels of load apart; 1, the default, for none.
    pub fn with_loads(self, loads: u8) -> Tokenizer {
        Tokenizer {
            loads: loads.clamp(LOAD_LEVELS.0 as u8, LOAD_LEVELS.1 as u8),
            ..self
        }
    }

    pub fn slack(&self) -> &Quantiser {
        &self.slack
    }

    pub fn work(&self) -> &Quantiser {
        &self.work
    }

    pub fn classes(&self) -> usize {
        self.classes as usize
    }

    pub fn doubts(&self) -> usize {
        self.doubts as usize
    }

    /// Levels of load, unknown included: so many idle tokens there are.
    pub fn loads(&self) -> usize {
        self.loads as usize
    }

    /// Slack bins as tokens count them: the paper's Q and one for slack < 0.
    pub fn slack_bins(&self) -> usize {
        self.slack.levels() + 1
    }

    /// How many different tokens there are, idle included.
    pub fn vocabulary(&self) -> usize {
        self.loads() + self.slack_bins() * self.work.levels() * self.classes() * self.doubts()
    }

    pub fn token(&self, job: &Job, now_ns: i64) -> Token {
        self.token_at(self.index(job, now_ns))
    }

    /// Place of a token in the vocabulary; idle ones come first.
    pub fn index_of(&self, token: Token) -> usize {
        match token {
            Token::Idle { load } => load.into(),
            Token::Job {
                slack,
                work,
                class,
                doubt,
            } => self.place(slack.into(), work.into(), class.into(), doubt.into()),
        }
    }

    pub fn token_at(&self, index: usize) -> Token {
        let Some(place) = index.checked_sub(self.loads()) else {
            return Token::Idle { load: index as u8 };
        };
        let (rest, doubt) = (place / self.doubts(), place % self.doubts());
        let (row, class) = (rest / self.classes(), rest % self.classes());
        Token::Job {
            slack: (row / self.work.levels()) as u16,
            work: (row % self.work.levels()) as u8,
            class: class as u8,
            doubt: doubt as u8,
        }
    }

    #[inline]
    fn place(&self, slack: usize, work: usize, class: usize, doubt: usize) -> usize {
        let row = slack * self.work.levels() + work;
        self.loads() + (row * self.classes() + class) * self.doubts() + doubt
    }

    #[inline]
    fn doubt(&self, job: &Job) -> usize {
        if self.doubts == 1 || job.spread_ns <= 0 && job.remaining_ns > 0 {
            return 0;
        }
        let spread = job.spread_ns.saturating_mul(100);
        let over = |&&edge: &&i64| spread >= job.remaining_ns.saturating_mul(edge);
        DOUBT_EDGES[..self.doubts() - 1]
            .iter()
            .take_while(over)
            .count()
    }

    #[inline]
    fn index(&self, job: &Job, now_ns: i64) -> usize {
        let slack = job.slack(now_ns);
        let bin = if slack.is_hopeless() {
            0
        } else {
            1 + self.slack.bin(slack.0)
        };
        let class = job.criticality.min(self.classes - 1) as usize;
        self.place(bin, self.work.bin(job.work_ns()), class, self.doubt(job))
    }

    /// Level of load in a situation, by what its known tasks ask for.
    fn load(&self, situation: &Situation<'_>) -> u8 {
        if self.loads == 1 || situation.upcoming.is_empty() {
            return 0;
        }
        let demand: f64 = situation.upcoming.iter().map(Upcoming::utilisation).sum();
        let load = demand / situation.cpus.count().max(1) as f64;
        let edges = &LOAD_EDGES[..self.loads() - 2];
        1 + edges.iter().take_while(|&&edge| load > edge).count() as u8
    }

    /// Tokens of all jobs, gathered into `set`, and what is known of the load.
    pub fn tokenize_situation(&self, situation: &Situation<'_>, set: &mut TokenSet) {
        let load = self.load(situation);
        self.tokenize_at(situation.jobs, situation.now_ns, load, set);
    }

    /// The same where nothing is known of the load.
    pub fn tokenize(&self, jobs: &[Job], now_ns: i64, set: &mut TokenSet) {
        self.tokenize_at(jobs, now_ns, 0, set);
    }

    fn tokenize_at(&self, jobs: &[Job], now_ns: i64, load: u8, set: &mut TokenSet) {
        set.clear(self.vocabulary());
        for job in jobs {
            let index = self.index(job, now_ns);
            set.count_of[index] += 1;
            set.present[index / 64] |= 1 << (index % 64);
            set.slot_of_job.push(index as u32);
        }
        set.gather(self, load);
    }
}

impl Default for Tokenizer {
    /// 64 slack bins from 50 µs to 2 s, 8 work bins from 100 µs to 100 ms,
    /// two criticality classes and all levels of doubt. A model brings its own.
    fn default() -> Tokenizer {
        let slack = Quantiser::log(50_000, 2_000_000_000, 64).expect("ascending edges");
        let work = Quantiser::log(100_000, 100_000_000, 8).expect("ascending edges");
        Tokenizer::new(slack, work, 2, DOUBT_LEVELS.1 as u8).expect("levels within limits")
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    slack: Quantiser,
    work: Quantiser,
    classes: u8,
    doubts: u8,
    /// Files from before there were any say nothing of them.
    #[serde(default = "not_told")]
    loads: u8,
}

fn not_told() -> u8 {
    1
}

impl TryFrom<Stored> for Tokenizer {
    type Error = QuantiserError;

    fn try_from(stored: Stored) -> Result<Tokenizer, QuantiserError> {
        let tokenizer = Tokenizer::new(stored.slack, stored.work, stored.classes, stored.doubts)?;
        Ok(tokenizer.with_loads(stored.loads))
    }
}

impl From<Tokenizer> for Stored {
    fn from(tokenizer: Tokenizer) -> Stored {
        Stored {
            slack: tokenizer.slack,
            work: tokenizer.work,
            classes: tokenizer.classes,
            doubts: tokenizer.doubts,
            loads: tokenizer.loads,
        }
    }
}

/// The distinct tokens of a situation with their counts; slot 0 is idle.
/// Slots are in vocabulary order, so the network's sums do not depend on the
/// order of the jobs, not even in their last bit.
#[derive(Debug, Clone, Default)]
pub struct TokenSet {
    tokens: Vec<Token>,
    indices: Vec<u32>,
    counts: Vec<u32>,
    slot_of_job: Vec<u32>,
    // By vocabulary index: counts, then slots; which of them occur.
    count_of: Vec<u32>,
    present: Vec<u64>,
}

impl TokenSet {
    /// Number of distinct tokens, idle included.
    pub fn distinct(&self) -> usize {
        self.tokens.len()
    }

    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Vocabulary index of every distinct token.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// How many jobs have each token; 1 for idle.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Slot of every job's token.
    pub fn slots(&self) -> &[u32] {
        &self.slot_of_job
    }

    pub fn token_of_job(&self, job: usize) -> Token {
        self.tokens[self.slot_of_job[job] as usize]
    }

    /// One score per distinct token -> one per action: `scores[0]` is idle,
    /// `scores[1 + i]` is job i.
    pub fn spread(&self, by_token: &[f32], scores: &mut [f32]) {
        scores[0] = by_token[0];
        for (score, &slot) in scores[1..].iter_mut().zip(&self.slot_of_job) {
            *score = by_token[slot as usize];
        }
    }

    fn clear(&mut self, vocabulary: usize) {
        self.tokens.clear();
        self.indices.clear();
        self.counts.clear();
        self.slot_of_job.clear();
        // How many tokens differ varies; there is room for as many as there are.
        self.tokens.reserve(vocabulary);
        self.indices.reserve(vocabulary);
        self.counts.reserve(vocabulary);
        self.count_of.resize(vocabulary, 0);
        self.present.resize(vocabulary.div_ceil(64), 0);
    }

    fn gather(&mut self, tokenizer: &Tokenizer, load: u8) {
        self.push(Token::Idle { load }, load.into(), 1);
        for word in 0..self.present.len() {
            let mut rest = std::mem::take(&mut self.present[word]);
            while rest != 0 {
                let index = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let slot = self.tokens.len() as u32;
                let count = std::mem::replace(&mut self.count_of[index], slot);
                self.push(tokenizer.token_at(index), index as u32, count);
            }
        }
        for slot in &mut self.slot_of_job {
            *slot = self.count_of[*slot as usize];
        }
        // Leave the table as it was found: all zeros.
        for &index in &self.indices {
            self.count_of[index as usize] = 0;
        }
    }

    fn push(&mut self, token: Token, index: u32, count: u32) {
        self.tokens.push(token);
        self.indices.push(index);
        self.counts.push(count);
    }
}
