//! Summaries over task sets, confidence intervals and paired tests.

use serde::Serialize;

/// Mean, spread and the 95 % confidence interval of the mean (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub n: usize,
    pub mean: f64,
    pub median: f64,
    pub std: f64,
    pub min: f64,
    pub max: f64,
    pub ci_low: f64,
    pub ci_high: f64,
}

impl Summary {
    /// `None` for no values at all.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / n as f64;
        let std = deviation(values, mean);
        let half = half_width(std, n);
        Some(Summary {
            n,
            mean,
            median: percentile(&sorted, 0.5),
            std,
            min: sorted[0],
            max: sorted[n - 1],
            ci_low: mean - half,
            ci_high: mean + half,
        })
    }
}

fn deviation(values: &[f64], mean: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

fn half_width(std: f64, n: usize) -> f64 {
    if n < 2 {
        return 0.0;
    }
    t_quantile_975((n - 1) as f64) * std / (n as f64).sqrt()
}

/// Linear interpolation between the closest ranks of sorted values.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let at = share * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

/// How one policy differs from another on the same sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    pub difference: f64,
    pub ci_low: f64,
    pub ci_high: f64,
    /// Two-sided paired t-test.
    pub p_t: f64,
    /// Two-sided Wilcoxon signed-rank test (normal approximation with tie correction).
    pub p_wilcoxon: f64,
    pub better: usize,
    pub equal: usize,
    pub worse: usize,
}

/// `a` less `b`, set by set. `None` unless both have the same, positive length.
pub fn paired(a: &[f64], b: &[f64]) -> Option<Paired> {
    if a.len() != b.len() || a.is_empty() {
        return None;
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let n = differences.len();
    let mean = differences.iter().sum::<f64>() / n as f64;
    let std = deviation(&differences, mean);
    let half = half_width(std, n);
    let p_t = if std > 0.0 {
        let t = mean / (std / (n as f64).sqrt());
        two_sided_t(t, (n - 1) as f64)
    } else if mean == 0.0 || n < 2 {
        1.0
    } else {
        0.0
    };
    Some(Paired {
        difference: mean,
        ci_low: mean - half,
        ci_high: mean + half,
        p_t,
        p_wilcoxon: wilcoxon(&differences),
        better: differences.iter().filter(|&&d| d > 0.0).count(),
        equal: differences.iter().filter(|&&d| d == 0.0).count(),
        worse: differences.iter().filter(|&&d| d < 0.0).count(),
    })
}

fn wilcoxon(differences: &[f64]) -> f64 {
    let mut moved: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if moved.is_empty() {
        return 1.0;
    }
    moved.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = moved.len() as f64;
    let (mut plus, mut ties) = (0.0, 0.0);
    let mut i = 0;
    while i < moved.len() {
        let mut j = i;
        while j < moved.len() && moved[j].abs() == moved[i].abs() {
            j += 1;
        }
        let rank = (i + 1 + j) as f64 / 2.0;
        let size = (j - i) as f64;
        ties += size * size * size - size;
        plus += rank * moved[i..j].iter().filter(|d| **d > 0.0).count() as f64;
        i = j;
    }
    let mean = n * (n + 1.0) / 4.0;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((plus - mean).abs() - 0.5).max(0.0) / variance.sqrt();
    // The normal tail is the t tail with very many degrees of freedom.
    two_sided_t(z, 1e7)
}

/// P(|T| > |t|) for Student's t.
pub fn two_sided_t(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

fn t_quantile_975(freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1000.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if two_sided_t(middle, freedom) > 0.05 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Regularised incomplete beta function by its continued fraction (Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..=500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    h
}

/// Lanczos.
fn ln_gamma(x: f64) -> f64 {
    const G: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let series = G
        .iter()
        .enumerate()
        .fold(0.999_999_999_999_809_9, |sum, (i, g)| {
            sum + g / (x + i as f64 + 1.0)
        });
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_quantiles_are_those_of_the_tables() {
        for (freedom, value) in [(1.0, 12.706), (10.0, 2.228), (199.0, 1.972), (1e6, 1.960)] {
            assert!((t_quantile_975(freedom) - value).abs() < 1e-3, "{freedom}");
        }
    }

    #[test]
    fn a_summary_knows_mean_median_and_spread() {
        let s = Summary::of(&[1.0, 2.0, 3.0, 10.0]).unwrap();
        assert_eq!((s.mean, s.median, s.min, s.max), (4.0, 2.5, 1.0, 10.0));
        assert!((s.std - 4.082).abs() < 1e-3);
        assert!(s.ci_low < 4.0 && s.ci_high > 4.0);
        assert!(Summary::of(&[]).is_none());
    }

    #[test]
    fn paired_tests_tell_a_steady_difference_from_noise() {
        let a: Vec<f64> = (0..50).map(|i| f64::from(i % 7)).collect();
        let better: Vec<f64> = a.iter().map(|v| v + 0.1 + 0.001 * (v % 2.0)).collect();
        let p = paired(&better, &a).unwrap();
        assert!(p.p_t < 1e-9 && p.p_wilcoxon < 1e-6 && p.better == 50);
        let noise: Vec<f64> = (0..50)
            .map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let p = paired(&noise, &vec![0.0; 50]).unwrap();
        assert!(p.p_t > 0.9 && p.p_wilcoxon > 0.9);
        assert_eq!(paired(&a, &a).unwrap().p_t, 1.0);
    }
}
