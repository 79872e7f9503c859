//! What the figures compute from their numbers.

/// The `q`-quantile of sorted `values` by linear interpolation between order statistics.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + part * (sorted[high] - sorted[low])
}

/// Median and 5–95 % band at every token index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Band {
    pub low: Vec<f64>,
    pub median: Vec<f64>,
    pub high: Vec<f64>,
}

/// The band of `sequences` over those that reach each index.
pub(super) fn band(sequences: &[Vec<f64>]) -> Band {
    let len = sequences.iter().map(Vec::len).max().unwrap_or(0);
    let mut band = Band::default();
    for i in 0..len {
        let mut column: Vec<f64> = sequences.iter().filter_map(|s| s.get(i).copied()).collect();
        column.sort_by(f64::total_cmp);
        band.low.push(quantile(&column, 0.05));
        band.median.push(quantile(&column, 0.5));
        band.high.push(quantile(&column, 0.95));
    }
    band
}

/// Edges of equal bins over two samples together: Freedman and Diaconis' width, 8 to 60 of them.
pub(super) fn bin_edges(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    let (lo, hi) = (all[0], all[all.len() - 1]);
    if hi - lo <= 1e-9 * lo.abs().max(hi.abs()) {
        let half = if lo.abs() < 1e-100 {
            0.5
        } else {
            0.05 * lo.abs()
        };
        return vec![lo - half, lo + half];
    }
    let spread = quantile(&all, 0.75) - quantile(&all, 0.25);
    let width = 2.0 * spread / (all.len().div_ceil(2) as f64).cbrt();
    let bins = if width > 0.0 {
        ((hi - lo) / width).ceil().clamp(8.0, 60.0) as usize
    } else {
        8
    };
    (0..=bins)
        .map(|i| lo + (hi - lo) * i as f64 / bins as f64)
        .collect()
}

/// Density of `values` in each bin: its sum times the bin width is 1.
pub(super) fn density(values: &[f64], edges: &[f64]) -> Vec<f64> {
    let bins = edges.len() - 1;
    let (lo, hi) = (edges[0], edges[bins]);
    let width = (hi - lo) / bins as f64;
    let mut counts = vec![0usize; bins];
    for v in values {
        let bin = ((v - lo) / width) as usize;
        counts[bin.min(bins - 1)] += 1;
    }
    let total = values.len() as f64 * width;
    counts.iter().map(|&n| n as f64 / total).collect()
}

/// Steps of a distribution function that an eye can tell apart.
const ECDF_STEPS: usize = 300;

/// Corners of the empirical distribution function of `values` over `lo..hi`; of many values a line through quantiles.
pub(super) fn ecdf(values: &[f64], (lo, hi): (f64, f64)) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    if sorted.len() > ECDF_STEPS {
        let at = |i: usize| (sorted.len() - 1) * i / ECDF_STEPS;
        let inner = (0..=ECDF_STEPS).map(|i| (sorted[at(i)], i as f64 / ECDF_STEPS as f64));
        return std::iter::once((lo, 0.0))
            .chain(inner)
            .chain(std::iter::once((hi, 1.0)))
            .collect();
    }
    let mut corners = vec![(lo, 0.0)];
    for (i, &v) in sorted.iter().enumerate() {
        corners.push((v, i as f64 / n));
        corners.push((v, (i + 1) as f64 / n));
    }
    corners.push((hi, 1.0));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_follows_the_sequences_that_are_long_enough() {
        let band = band(&[vec![1.0, 5.0], vec![3.0], vec![2.0, 7.0]]);
        assert_eq!(band.median, [2.0, 6.0]);
        assert_eq!(band.low, [1.1, 5.1]);
        assert!((band.high[1] - 6.9).abs() < 1e-12);
    }

    #[test]
    fn densities_integrate_to_one_whatever_the_values() {
        for (a, b) in [
            (vec![0.0, 1.0, 1.5, 9.0], vec![2.0]),
            (vec![3.0; 5], vec![3.0]),
            (vec![0.0; 2], vec![0.0; 3]),
            (vec![1.0, 1.0, 1.0, 1.0, 50.0], vec![1.0]),
        ] {
            let edges = bin_edges(&a, &b);
            let width = edges[1] - edges[0];
            for sample in [&a, &b] {
                let sum: f64 = density(sample, &edges).iter().sum();
                assert!((sum * width - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_distribution_function_climbs_from_zero_to_one() {
        let corners = ecdf(&[2.0, 1.0], (0.0, 3.0));
        let expected = [
            (0.0, 0.0),
            (1.0, 0.0),
            (1.0, 0.5),
            (2.0, 0.5),
            (2.0, 1.0),
            (3.0, 1.0),
        ];
        assert_eq!(corners, expected);

        let many: Vec<f64> = (0..=3000).map(f64::from).collect();
        let corners = ecdf(&many, (-1.0, 3001.0));
        assert_eq!(corners.len(), ECDF_STEPS + 3);
        assert_eq!((corners[1], corners[151]), ((0.0, 0.0), (1500.0, 0.5)));
        assert_eq!(corners[301], (3000.0, 1.0));
    }
}
