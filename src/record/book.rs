//! Every task's jobs while they come in, in bounded memory.
//!
//! A task keeps at most [`MOST_PIECES`]; when they are used up, neighbours become
//! one, and from then on every second comes with its neighbour, and so on. Run time
//! is never lost by that, only the moments in between.

use std::collections::HashMap;

use super::recorder::{RecordKind, TaskRecord};
use crate::sim::time::Ns;

/// Per task; at a job every 20 ms this is 10 minutes.
const MOST_PIECES: usize = 1 << 15;
/// More tasks than this are one, called "others".
const MOST_TASKS: usize = 8192;

/// A job, or a part of one; times since the recording began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub release: Ns,
    pub end: Ns,
    pub run: Ns,
    /// It goes on from the piece before.
    pub goes_on: bool,
}

#[derive(Clone, Debug)]
pub struct Diary {
    pub comm: String,
    pub tid: u32,
    pub pieces: Vec<Piece>,
    /// Jobs seen, also those that are one piece with others.
    pub jobs: u64,
    /// How many records make one piece; above 1 moments were given up.
    pub coarseness: u32,
    waiting: u32,
    open: bool,
}

impl Diary {
    fn new(tid: u32, comm: &str) -> Diary {
        Diary {
            comm: comm.into(),
            tid,
            pieces: Vec::new(),
            jobs: 0,
            coarseness: 1,
            waiting: 0,
            open: false,
        }
    }

    fn add(&mut self, piece: Piece, jobs: u32, open: bool) {
        self.jobs += u64::from(jobs);
        self.open = open;
        match self.pieces.last_mut().filter(|_| self.waiting > 0) {
            Some(last) => last.join(&piece),
            None => self.pieces.push(piece),
        }
        self.waiting = (self.waiting + 1) % self.coarseness;
        if self.pieces.len() > MOST_PIECES {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let joined = self.pieces.chunks(2).map(|pair| {
            let mut piece = pair[0];
            pair[1..].iter().for_each(|next| piece.join(next));
            piece
        });
        self.pieces = joined.collect();
        self.coarseness *= 2;
        self.waiting = 0;
    }

    pub fn run(&self) -> Ns {
        self.pieces.iter().map(|piece| piece.run).sum()
    }
}

impl Piece {
    fn join(&mut self, next: &Piece) {
        self.end = self.end.max(next.end);
        self.run += next.run;
    }
}

/// All tasks of a recording.
pub struct Book {
    start: Ns,
    diaries: HashMap<(u32, String), Diary>,
}

impl Book {
    /// From this moment of the clock that records have.
    pub fn new(start: Ns) -> Book {
        Book {
            start,
            diaries: HashMap::new(),
        }
    }

    pub fn add(&mut self, record: &TaskRecord) {
        let goes_on = match record.kind {
            RecordKind::Job => false,
            RecordKind::Part => true,
            RecordKind::Stretch => return,
        };
        if record.run_ns == 0 {
            return;
        }
        // A program that becomes another one by execve is another task from there.
        let mut key = (record.tid, record.comm.clone());
        if self.diaries.len() >= MOST_TASKS && !self.diaries.contains_key(&key) {
            key = (0, "others".into());
        }
        let diary = self
            .diaries
            .entry(key)
            .or_insert_with_key(|(tid, comm)| Diary::new(*tid, comm));
        let since = |time: Ns| time.saturating_sub(self.start);
        let piece = Piece {
            release: since(record.release_ns),
            end: since(record.end_ns),
            run: record.run_ns,
            goes_on: diary.open,
        };
        diary.add(piece, record.jobs, goes_on);
    }

    /// In the order of names and numbers.
    pub fn into_diaries(self) -> Vec<Diary> {
        let mut diaries: Vec<Diary> = self.diaries.into_values().collect();
        for diary in &mut diaries {
            // Another CPU's record may have come first.
            diary.pieces.sort_by_key(|piece| piece.release);
        }
        diaries.sort_by(|a, b| (&a.comm, a.tid).cmp(&(&b.comm, b.tid)));
        diaries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tid: u32, release_ns: Ns, run_ns: Ns, kind: RecordKind) -> TaskRecord {
        TaskRecord {
            kind,
            tid,
            tgid: tid,
            cpu: 0,
            comm: "a".into(),
            release_ns,
            end_ns: release_ns + run_ns,
            run_ns,
            jobs: u32::from(kind == RecordKind::Job),
        }
    }

    #[test]
    fn a_task_that_never_rests_takes_bounded_memory_and_loses_no_run_time() {
        let mut book = Book::new(0);
        let count = 10 * MOST_PIECES as u64 + 3;
        for i in 0..count {
            book.add(&record(1, 1000 * i, 7, RecordKind::Job));
        }
        let diaries = book.into_diaries();
        assert!(diaries[0].pieces.len() <= MOST_PIECES);
        assert_eq!(diaries[0].run(), 7 * count);
        assert_eq!(diaries[0].jobs, count);
        assert_eq!(diaries[0].coarseness, 16);
        assert_eq!(diaries[0].pieces[1].release, 16_000);
    }

    #[test]
    fn a_crowd_of_tasks_takes_bounded_memory_and_loses_no_run_time() {
        let mut book = Book::new(0);
        let count = MOST_TASKS as u32 + 500;
        for tid in 0..count {
            book.add(&record(tid + 1, u64::from(tid), 5, RecordKind::Job));
        }
        let diaries = book.into_diaries();
        assert_eq!(diaries.len(), MOST_TASKS + 1);
        let total: Ns = diaries.iter().map(Diary::run).sum();
        assert_eq!(total, 5 * Ns::from(count));
    }

    #[test]
    fn a_part_is_followed_by_a_piece_that_goes_on() {
        let mut book = Book::new(100);
        book.add(&record(1, 100, 50, RecordKind::Part));
        book.add(&record(1, 150, 20, RecordKind::Job));
        book.add(&record(1, 300, 20, RecordKind::Job));
        let diaries = book.into_diaries();
        let on: Vec<bool> = diaries[0].pieces.iter().map(|p| p.goes_on).collect();
        assert_eq!(on, [false, true, false]);
        assert_eq!(diaries[0].pieces[0].release, 0);
    }
}
