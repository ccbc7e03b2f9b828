//! Sets of CPUs: those that a task may use, and those that are online.

use std::fmt;
use std::io;

use super::abi;

const WORDS: usize = abi::temponet_consts_TN_MAX_CPUS as usize / 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSet([u64; WORDS]);

impl CpuSet {
    pub const ALL: CpuSet = CpuSet([u64::MAX; WORDS]);

    /// The first `n`.
    pub fn first(n: usize) -> CpuSet {
        (0..n as u32).collect()
    }

    /// Those that a thread may use.
    pub fn of_task(tid: i32) -> io::Result<CpuSet> {
        // Room for 8192 CPUs, the most x86 kernels are built for.
        let mut mask = [0u64; 128];
        // SAFETY: the kernel writes at most the length given.
        let bytes = unsafe {
            libc::syscall(
                libc::SYS_sched_getaffinity,
                tid,
                std::mem::size_of_val(&mask),
                mask.as_mut_ptr(),
            )
        };
        if bytes < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut set = CpuSet([0; WORDS]);
        set.0.copy_from_slice(&mask[..WORDS]);
        Ok(set)
    }

    /// Those that are online now.
    pub fn online() -> CpuSet {
        let listed = std::fs::read_to_string("/sys/devices/system/cpu/online");
        let parsed = listed.ok().and_then(|text| CpuSet::parse(text.trim()));
        parsed.unwrap_or_else(|| {
            // SAFETY: sysconf has no pointers.
            let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
            CpuSet::first(usize::try_from(count).unwrap_or(1))
        })
    }

    /// As the kernel lists them: `0-3,8`.
    fn parse(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet([0; WORDS]);
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            (first..=last.min(WORDS as u32 * 64)).for_each(|cpu| set.insert(cpu));
        }
        Some(set)
    }

    fn insert(&mut self, cpu: u32) {
        if let Some(word) = self.0.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub fn is_within(&self, other: &CpuSet) -> bool {
        self.and(other) == *self
    }

    pub fn and(&self, other: &CpuSet) -> CpuSet {
        CpuSet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    pub fn or(&self, other: &CpuSet) -> CpuSet {
        CpuSet(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..WORDS as u32 * 64).filter(|&cpu| self.0[cpu as usize / 64] >> (cpu % 64) & 1 == 1)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> CpuSet {
        let mut set = CpuSet([0; WORDS]);
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        for (i, (first, last)) in ranges.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_read_and_written_as_the_kernel_does() {
        for list in ["0", "0-3", "1,3-5,9", "0-1023"] {
            assert_eq!(CpuSet::parse(list).unwrap().to_string(), list);
        }
        assert_eq!(CpuSet::parse("0-4294967295"), Some(CpuSet::ALL));
        assert_eq!(CpuSet::parse("a"), None);
        assert_eq!(CpuSet::first(3).len(), 3);
        assert!(!CpuSet::online().is_empty());
    }

    #[test]
    fn sets_are_compared_and_joined() {
        let (low, high) = (CpuSet::first(2), CpuSet::parse("1-70").unwrap());
        assert_eq!(low.and(&high), CpuSet::parse("1").unwrap());
        assert_eq!(low.or(&high).to_string(), "0-70");
        assert!(low.is_within(&CpuSet::ALL) && !low.is_within(&high));
        assert!(low.and(&CpuSet::parse("9").unwrap()).is_empty());
    }
}
