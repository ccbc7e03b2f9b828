//! The counters of the BPF half, as one.

use crate::agent::bpf::types::{temponet_class_stats, temponet_cpu_stats};

pub(super) fn ran_ns(cpu: &temponet_cpu_stats) -> u64 {
    cpu.class.iter().map(|class| class.run_ns).sum()
}

/// All of them are counts, and add up; of the longest times the longest counts.
pub(super) fn add(total: &mut temponet_cpu_stats, cpu: &temponet_cpu_stats) {
    let longest = total.class.map(|class| longest_of(&class));
    for (sum, more) in words(total).iter_mut().zip(words(&mut cpu.clone())) {
        *sum += *more;
    }
    for ((sum, class), before) in total.class.iter_mut().zip(&cpu.class).zip(longest) {
        let here = longest_of(class);
        set_longest(sum, std::array::from_fn(|i| here[i].max(before[i])));
    }
}

/// What was counted from `then` to `now`. The longest times are those since load.
pub(super) fn counted_since(
    now: &temponet_cpu_stats,
    then: &temponet_cpu_stats,
) -> temponet_cpu_stats {
    let mut counted = *now;
    for (count, before) in words(&mut counted).iter_mut().zip(words(&mut then.clone())) {
        *count -= (*before).min(*count);
    }
    for (counted, now) in counted.class.iter_mut().zip(&now.class) {
        set_longest(counted, longest_of(now));
    }
    counted
}

fn longest_of(class: &temponet_class_stats) -> [u64; 3] {
    [
        class.response_max_ns,
        class.lateness_max_ns,
        class.wait_max_ns,
    ]
}

fn set_longest(class: &mut temponet_class_stats, [response, lateness, wait]: [u64; 3]) {
    class.response_max_ns = response;
    class.lateness_max_ns = lateness;
    class.wait_max_ns = wait;
}

/// The counters as what they are, so that a new one cannot be forgotten.
pub(super) fn words(stats: &mut temponet_cpu_stats) -> &mut [u64] {
    const WORDS: usize = std::mem::size_of::<temponet_cpu_stats>() / 8;
    const _: () = assert!(std::mem::size_of::<temponet_cpu_stats>() == WORDS * 8);
    const _: () = assert!(std::mem::align_of::<temponet_cpu_stats>() == 8);
    // SAFETY: the struct holds nothing but `u64` (bpf/intf.h), so it is as many of them, with
    // the same alignment, and borrowed for as long as the slice.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(stats).cast(), WORDS) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::stats::CLASSES;
    use crate::intf;

    #[test]
    fn counters_of_cpus_add_up_and_the_longest_times_do_not() {
        let mut one = temponet_cpu_stats::default();
        words(&mut one).fill(3);
        let mut other = temponet_cpu_stats::default();
        words(&mut other).fill(4);
        add(&mut one, &other);
        for class in &one.class {
            assert_eq!(longest_of(class), [4; 3]);
            assert_eq!((class.released, class.wait_ns), (7, 7));
        }
        assert_eq!(one.age, [7; intf::temponet_consts_TN_AGE_BUCKETS as usize]);
        let (sum, maxima) = (words(&mut one), 3 * CLASSES.len() as u64);
        assert_eq!(
            sum.iter().sum::<u64>(),
            7 * (sum.len() as u64 - maxima) + 4 * maxima
        );
    }
}
