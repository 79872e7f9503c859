//! The largest varentropy that any distribution on n symbols has.

/// N_n = max_s (s + ln(n−1))² / (2 + e^s + e^−s), nats²: V ≤ N_n on n symbols, so H is N_n-Lipschitz in ln T.
///
/// Attained by one symbol of mass 1 − r beside n − 1 of mass r/(n − 1), s = ln((1−r)/r).
/// The maximum is the root of the increasing function (s + ln(n−1))·tanh(s/2) − 2, found by bisection.
/// Zero for n < 2. Source: Reeb & Wolf 2015, arXiv 1304.0036, Theorem 8.
pub fn n_bound(n: usize) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let ln_rest = ((n - 1) as f64).ln();
    let (mut low, mut high) = (0.0_f64, 3.0_f64);
    for _ in 0..64 {
        let mid = 0.5 * (low + high);
        if (mid + ln_rest) * (0.5 * mid).tanh() < 2.0 {
            low = mid;
        } else {
            high = mid;
        }
    }
    let s = 0.5 * (low + high);
    (s + ln_rest).powi(2) / (2.0 + 2.0 * s.cosh())
}
