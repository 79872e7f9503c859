//! What the k largest of n probabilities say about the entropy of all n.

use super::Bracket;

/// Tight bounds on H, nats, over all distributions on `n` symbols whose k largest probabilities are
/// `head_probs_descending` (so every other symbol has at most the last of them).
///
/// With δ = 1 − Σ head, r_n = n − k and H_head = −Σ p ln p over the head:
/// upper = H_head − δ ln(δ/r_n), a flat tail, never an under-estimate;
/// lower = H_head − m·p_k ln p_k − r ln r with m = ⌊δ/p_k⌋, r = δ − m·p_k, the most concentrated tail.
/// A head of n or more, or one that leaves no mass, gives H_head both ways. δ is rounded at one part in 2^53,
/// which moves a bound by less than k·1e-14 nats.
pub fn bracket_from_head(head_probs_descending: &[f64], n: usize) -> Bracket {
    let h_head: f64 = head_probs_descending.iter().copied().map(plogp).sum();
    let tail_symbols = n.saturating_sub(head_probs_descending.len());
    let delta = 1.0 - head_probs_descending.iter().sum::<f64>();
    let least = head_probs_descending.last().copied().unwrap_or(1.0);
    if tail_symbols == 0 || delta <= 0.0 || least <= 0.0 {
        return Bracket {
            lower_nats: h_head,
            upper_nats: h_head,
        };
    }
    let tail_symbols = tail_symbols as f64;
    let whole = (delta / least).floor().min(tail_symbols);
    let rest = (delta - whole * least).max(0.0);
    Bracket {
        lower_nats: h_head + whole * plogp(least) + plogp(rest),
        upper_nats: h_head + tail_symbols * plogp(delta / tail_symbols),
    }
}

/// −p ln p, nats, and 0 at p = 0.
fn plogp(p: f64) -> f64 {
    if p > 0.0 { -p * p.ln() } else { 0.0 }
}

/// The `k` largest of `values` in descending order, all of them if there are fewer. NaN is not allowed.
///
/// One pass keeps candidates above a rising threshold and halves them when 2k are held: O(n + k log k).
pub fn largest_descending(values: &[f32], k: usize) -> Vec<f32> {
    let k = k.min(values.len());
    if k == 0 {
        return Vec::new();
    }
    let mut held: Vec<f32> = Vec::with_capacity(2 * k);
    let mut threshold = f32::NEG_INFINITY;
    for (seen, &value) in values.iter().enumerate() {
        if seen >= k && value <= threshold {
            continue;
        }
        held.push(value);
        if held.len() == 2 * k {
            threshold = keep_largest(&mut held, k);
        }
    }
    keep_largest(&mut held, k);
    held.sort_unstable_by(|a, b| b.total_cmp(a));
    held
}

/// Truncates `held` to its `k` largest and returns the least of them; `held` has at least `k` ≥ 1 values.
fn keep_largest(held: &mut Vec<f32>, k: usize) -> f32 {
    let (_, least, _) = held.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    let least = *least;
    held.truncate(k);
    least
}
