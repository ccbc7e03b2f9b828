//! A set of CPUs of fixed size, so that a job is a plain value.

/// Number of a CPU, as the kernel counts them.
pub type CpuId = u16;

/// CPUs a mask can name: one cache line. CPUs beyond this are never in any mask;
/// the scheduler refuses to run the network on a machine that has them.
pub const MAX_CPUS: usize = 512;

const WORDS: usize = MAX_CPUS / 64;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuMask {
    words: [u64; WORDS],
}

impl CpuMask {
    pub const EMPTY: CpuMask = CpuMask { words: [0; WORDS] };
    pub const ALL: CpuMask = CpuMask {
        words: [u64::MAX; WORDS],
    };

    /// The CPUs 0 to `count`−1.
    pub fn first(count: usize) -> CpuMask {
        (0..count.min(MAX_CPUS)).map(|cpu| cpu as CpuId).collect()
    }

    pub fn only(cpu: CpuId) -> CpuMask {
        std::iter::once(cpu).collect()
    }

    /// As the kernel writes it, 64 CPUs to a word; those that do not fit are left out.
    pub fn of_words(from: &[u64]) -> CpuMask {
        let mut words = [0; WORDS];
        for (to, &from) in words.iter_mut().zip(from) {
            *to = from;
        }
        CpuMask { words }
    }

    /// CPUs that do not fit ([`MAX_CPUS`]) are left out.
    pub fn insert(&mut self, cpu: CpuId) {
        if let Some(word) = self.words.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    pub fn remove(&mut self, cpu: CpuId) {
        if let Some(word) = self.words.get_mut(cpu as usize / 64) {
            *word &= !(1 << (cpu % 64));
        }
    }

    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words
            .get(cpu as usize / 64)
            .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// The lowest CPU of the set.
    #[inline]
    pub fn lowest(&self) -> Option<CpuId> {
        let at = self.words.iter().position(|&word| word != 0)?;
        Some((at * 64) as CpuId + self.words[at].trailing_zeros() as CpuId)
    }

    pub fn highest(&self) -> Option<CpuId> {
        let at = self.words.iter().rposition(|&word| word != 0)?;
        Some((at * 64) as CpuId + self.words[at].ilog2() as CpuId)
    }

    /// The CPU, if there is exactly one.
    #[inline]
    pub fn single(&self) -> Option<CpuId> {
        let lowest = self.lowest()?;
        let word = lowest as usize / 64;
        let alone = self.words[word].is_power_of_two()
            && self.words[word + 1..].iter().all(|&later| later == 0);
        alone.then_some(lowest)
    }

    #[inline]
    #[must_use]
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        let mut both = *self;
        for i in 0..WORDS {
            both.words[i] &= other.words[i];
        }
        both
    }

    #[inline]
    #[must_use]
    pub fn without(&self, other: &CpuMask) -> CpuMask {
        let mut rest = *self;
        for i in 0..WORDS {
            rest.words[i] &= !other.words[i];
        }
        rest
    }

    #[inline]
    pub fn intersects(&self, other: &CpuMask) -> bool {
        // No early way out: eight words fit two vector registers.
        (0..WORDS).fold(0, |both, i| both | self.words[i] & other.words[i]) != 0
    }

    #[inline]
    pub fn is_subset(&self, other: &CpuMask) -> bool {
        (0..WORDS).fold(0, |rest, i| rest | self.words[i] & !other.words[i]) == 0
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
                .take_while(|&rest| rest != 0)
                .map(move |rest| (i * 64) as CpuId + rest.trailing_zeros() as CpuId)
        })
    }
}

impl FromIterator<CpuId> for CpuMask {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        cpus.into_iter().for_each(|cpu| mask.insert(cpu));
        mask
    }
}

impl std::fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == CpuMask::ALL {
            return f.write_str("{all}");
        }
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_holds_what_was_put_in_and_nothing_else() {
        let cpus = [0, 5, 63, 64, 130, 511];
        let mask: CpuMask = cpus.into_iter().collect();
        assert_eq!(mask.iter().collect::<Vec<_>>(), cpus);
        assert_eq!(mask.count(), cpus.len());
        assert!(!mask.contains(6) && !mask.contains(512) && !mask.contains(u16::MAX));
        assert_eq!(mask.single(), None);
        assert_eq!((mask.lowest(), mask.highest()), (Some(0), Some(511)));
        assert_eq!(CpuMask::only(511).single(), Some(511));
        assert_eq!(CpuMask::EMPTY.single(), None);
        assert_eq!(CpuMask::only(900), CpuMask::EMPTY);
        assert_eq!(CpuMask::first(9999), CpuMask::ALL);
    }

    #[test]
    fn words_are_taken_as_they_are_and_cut_off_at_the_end() {
        let mask = CpuMask::of_words(&[0b101, 1 << 63]);
        assert_eq!(mask.iter().collect::<Vec<_>>(), [0, 2, 127]);
        assert_eq!(CpuMask::of_words(&[u64::MAX; WORDS + 1]), CpuMask::ALL);
    }
}
