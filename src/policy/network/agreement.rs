//! Do two networks pick the same jobs?

/// How many of the m jobs that `expected` scores highest `found` has among its
/// m highest too, as a share; 1 where there is nothing to pick. Scores are one
/// per job, without idle; equal ones go in the order of the jobs.
pub fn top_m_agreement(expected: &[f32], found: &[f32], m: usize) -> f64 {
    assert_eq!(expected.len(), found.len());
    let m = m.min(expected.len());
    if m == 0 {
        return 1.0;
    }
    let top = |scores: &[f32]| {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        order.truncate(m);
        order
    };
    let (expected, found) = (top(expected), top(found));
    let shared = expected.iter().filter(|job| found.contains(job)).count();
    shared as f64 / m as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_counts_shared_picks_in_any_order() {
        let scores = [4.0, 3.0, 2.0, 1.0];
        assert_eq!(top_m_agreement(&scores, &[3.0, 4.0, 2.0, 1.0], 2), 1.0);
        assert_eq!(top_m_agreement(&scores, &[4.0, 1.0, 3.0, 2.0], 2), 0.5);
        assert_eq!(top_m_agreement(&scores, &[1.0, 2.0, 3.0, 4.0], 9), 1.0);
        assert_eq!(top_m_agreement(&[1.0, 1.0], &[1.0, 1.0], 1), 1.0);
        assert_eq!(top_m_agreement(&[], &[], 8), 1.0);
    }
}
