//! k-means in one dimension, without chance: the same samples in any order
//! give the same bins.

use super::quantiser::QuantiserError;

const MAX_ROUNDS: usize = 200;

/// The `k`−1 borders between `k` clusters of the samples, strictly ascending.
/// A value equal to a border belongs to the upper cluster.
pub(super) fn borders(samples: &[i64], k: usize) -> Result<Vec<i64>, QuantiserError> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let mut distinct = sorted.clone();
    distinct.dedup();
    if distinct.len() < k {
        return Err(QuantiserError::TooFewSamples {
            distinct: distinct.len(),
            levels: k,
        });
    }

    // Lloyd's rounds from the quantiles of the distinct values. Clusters are
    // intervals of the sorted samples, so prefix sums give their means.
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(sorted.iter().scan(0.0, |sum, &sample| {
            *sum += sample as f64;
            Some(*sum)
        }))
        .collect();
    let mut centres: Vec<f64> = (0..k)
        .map(|i| distinct[(2 * i + 1) * distinct.len() / (2 * k)] as f64)
        .collect();
    for _ in 0..MAX_ROUNDS {
        let mut moved = false;
        let mut from = 0;
        let old = centres.clone();
        for i in 0..k {
            let to = match old.get(i + 1) {
                Some(next) => {
                    let border = (old[i] + next) / 2.0;
                    sorted.partition_point(|&sample| (sample as f64) < border)
                }
                None => sorted.len(),
            };
            if to > from {
                centres[i] = (sums[to] - sums[from]) / (to - from) as f64;
                moved |= centres[i] != old[i];
            }
            from = to;
        }
        if !moved {
            break;
        }
    }

    let mut borders: Vec<i64> = centres
        .windows(2)
        .map(|pair| ((pair[0] + pair[1]) / 2.0).ceil() as i64)
        .collect();
    // Centres less than a nanosecond apart would share a border.
    for i in 1..borders.len() {
        borders[i] = borders[i].max(borders[i - 1].saturating_add(1));
    }
    Ok(borders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_that_are_far_apart_are_told_apart() {
        let samples: Vec<i64> = (0..100)
            .flat_map(|i| [i, 10_000 + i, 500_000 + i])
            .collect();
        let borders = borders(&samples, 3).unwrap();
        assert!((100..=10_000).contains(&borders[0]), "{borders:?}");
        assert!((10_100..=500_000).contains(&borders[1]), "{borders:?}");
    }

    #[test]
    fn the_order_of_the_samples_does_not_matter() {
        let mut samples: Vec<i64> = (0..1000).map(|i| i * i * 37 % 100_003).collect();
        let forward = borders(&samples, 32).unwrap();
        samples.reverse();
        assert_eq!(forward, borders(&samples, 32).unwrap());
    }

    #[test]
    fn fewer_values_than_bins_is_an_error_not_a_guess() {
        let error = borders(&[5, 5, 7], 8).unwrap_err();
        assert_eq!(
            error,
            QuantiserError::TooFewSamples {
                distinct: 2,
                levels: 8
            }
        );
    }
}
