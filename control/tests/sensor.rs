//! Entropy, varentropy and the top-k bracket against references that share no code with them.

use etime_control::sensor::{
    Bracket, SensorError, bracket_from_head, largest_descending, n_bound, thermal,
};
use proptest::prelude::*;

/// Compensated sum.
fn kahan(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0, 0.0);
    for term in terms {
        let term = term - lost;
        let next: f64 = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    sum
}

struct Reference {
    h_nats: f64,
    v: f64,
    ln_z: f64,
    probs: Vec<f64>,
}

/// Two passes with the standard exponential, compensated sums and a centred second moment.
fn reference(logits: &[f32], u: f64) -> Reference {
    let t = u.exp();
    let scaled: Vec<f64> = logits.iter().map(|&z| f64::from(z) / t).collect();
    let max = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let z = kahan(scaled.iter().map(|y| (y - max).exp()));
    let probs: Vec<f64> = scaled.iter().map(|y| (y - max).exp() / z).collect();
    let surprisal = |y: f64| z.ln() - (y - max);
    let live = || probs.iter().zip(&scaled).filter(|(p, _)| **p > 0.0);
    let h_nats = kahan(live().map(|(p, y)| p * surprisal(*y)));
    let v = kahan(live().map(|(p, y)| p * (surprisal(*y) - h_nats).powi(2)));
    Reference {
        h_nats,
        v,
        ln_z: max + z.ln(),
        probs,
    }
}

fn close(a: f64, b: f64, tol: f64) -> bool {
    (a - b).abs() <= tol * (1.0 + a.abs().max(b.abs()))
}

fn logits_of(probs: &[f64]) -> Vec<f32> {
    probs.iter().map(|p| p.ln() as f32).collect()
}

/// Rows of the kinds that break sensors: spread, spiked, tied, flat, one-hot, with holes.
fn row(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f32>> {
    (sizes, 0..6_u8, any::<u64>(), 0.1_f32..12.0).prop_map(|(n, kind, seed, scale)| {
        let noise = |i: usize| {
            let key = etime_control::draw::DrawKey {
                seed,
                request: 0,
                token: i as u64,
            };
            etime_control::draw::uniform(key) as f32
        };
        (0..n)
            .map(|i| match kind {
                0 => scale * (noise(i) + noise(i + n) - 1.0) * 3.0,
                1 if i % 97 == 3 => 2.0 * scale,
                1 => noise(i) * 0.01,
                2 => (noise(i) * 3.0).floor() * scale,
                3 => scale,
                4 if i == n / 2 => scale * 40.0,
                4 => -scale,
                _ if i > 0 && noise(i) < 0.5 => f32::NEG_INFINITY,
                _ => scale * noise(i),
            })
            .collect()
    })
}

fn assert_agrees(logits: &[f32], u: f64) -> Result<(), TestCaseError> {
    let seen = thermal(logits, u, None)?;
    let want = reference(logits, u);
    let p_max = want.probs.iter().copied().fold(0.0, f64::max);
    for (name, a, b) in [
        ("H", seen.h_nats, want.h_nats),
        ("V", seen.v, want.v),
        ("ln Z", seen.ln_z, want.ln_z),
        ("p_max", seen.p_max, p_max),
    ] {
        prop_assert!(close(a, b, 1e-12), "{name}: {a:e} against {b:e}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn entropy_and_varentropy_agree_with_a_compensated_reference(
        logits in row(1..3000), u in 0.05_f64.ln()..20.0_f64.ln()
    ) {
        assert_agrees(&logits, u)?;
    }

    #[test]
    fn varentropy_is_the_slope_of_entropy_in_log_temperature(
        logits in row(2..400), u in -1.5_f64..2.5
    ) {
        let step = 1e-4;
        let h = |u: f64| thermal(&logits, u, None).map(|seen| seen.h_nats);
        let slope = (h(u + step)? - h(u - step)?) / (2.0 * step);
        let v = thermal(&logits, u, None)?.v;
        prop_assert!(close(slope, v, 1e-5), "slope {slope}, V {v}");
    }

    #[test]
    fn varentropy_never_exceeds_its_bound_on_n_symbols(
        logits in row(1..3000), u in -3.0_f64..3.0
    ) {
        let v = thermal(&logits, u, None)?.v;
        let bound = n_bound(logits.len());
        prop_assert!(v <= bound + 1e-12, "V {v}, bound {bound}");
    }

    #[test]
    fn entropy_lies_in_zero_to_ln_n(logits in row(1..3000), u in -3.0_f64..3.0) {
        let h = thermal(&logits, u, None)?.h_nats;
        prop_assert!((0.0..=(logits.len() as f64).ln() + 1e-12).contains(&h), "H {h}");
    }

    #[test]
    fn the_bracket_holds_the_entropy_for_every_head_size(
        logits in row(1..600), u in -1.5_f64..2.0, k in 1_usize..700
    ) {
        let seen = thermal(&logits, u, Some(k))?;
        let Bracket { lower_nats, upper_nats } = seen.bracket.expect("a head was asked for");
        prop_assert!(lower_nats <= seen.h_nats + 1e-11 && seen.h_nats <= upper_nats + 1e-11,
            "{lower_nats} {} {upper_nats}", seen.h_nats);
        if k >= logits.len() {
            prop_assert_eq!((lower_nats, upper_nats), (seen.h_nats, seen.h_nats));
        }
    }

    #[test]
    fn the_bracket_is_attained_by_the_extremal_tails(
        head in prop::collection::vec(0.05_f64..1.0, 1..8), tail in 8_usize..200, share in 0.01_f64..0.9
    ) {
        let mut head = head;
        head.sort_by(|a, b| b.total_cmp(a));
        let least = *head.last().expect("not empty");
        let mass = share * least * tail as f64;
        let total: f64 = head.iter().sum::<f64>() + mass;
        let n = head.len() + tail;
        head.iter_mut().for_each(|p| *p /= total);
        let (least, mass) = (least / total, mass / total);
        let seen = bracket_from_head(&head, n);

        let mut flat = head.clone();
        flat.extend(std::iter::repeat_n(mass / tail as f64, tail));
        let mut peaked = head.clone();
        let mut left = mass;
        while left > 0.0 {
            peaked.push(left.min(least));
            left -= least;
        }
        prop_assert!(peaked.len() <= n);
        let entropy = |p: &[f64]| kahan(p.iter().map(|p| -p * p.ln()));
        prop_assert!(close(seen.upper_nats, entropy(&flat), 1e-12));
        prop_assert!(close(seen.lower_nats, entropy(&peaked), 1e-12));
    }

    #[test]
    fn selection_returns_what_a_full_sort_returns(
        values in prop::collection::vec(prop_oneof![-3.0_f32..3.0, Just(1.0_f32), Just(f32::NEG_INFINITY)], 0..300),
        k in 0_usize..320
    ) {
        let mut sorted = values.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        sorted.truncate(k);
        prop_assert_eq!(largest_descending(&values, k), sorted);
    }

    #[test]
    fn a_symbol_of_minus_infinity_adds_exactly_nothing(
        logits in row(1..200), u in -1.0_f64..1.0
    ) {
        let mut padded = logits.clone();
        padded.resize(logits.len() + 1, f32::NEG_INFINITY);
        let n = logits.len();
        let padded = thermal(&padded, u, None)?;
        prop_assert_eq!(padded.n, n + 1);
        prop_assert_eq!(etime_control::sensor::Thermal { n, ..padded }, thermal(&logits, u, None)?);
    }
}

#[test]
fn whole_vocabularies_agree_with_the_reference_at_every_temperature() {
    for n in [49_152, 150_000] {
        for scale in [0.0, 0.1, 3.0, 40.0] {
            let logits: Vec<f32> = (0..n)
                .map(|i| scale * ((i as f32 * 0.618_034).fract() - 0.5))
                .collect();
            for t in [0.05_f64, 0.7, 20.0] {
                assert_agrees(&logits, t.ln()).expect("agreement");
            }
        }
    }
}

#[test]
fn the_bound_has_the_published_constants() {
    for (n, bound) in [
        (512, 10.692),
        (2048, 15.511),
        (32_000, 27.890),
        (49_152, 30.163),
        (50_257, 30.284),
        (128_256, 35.576),
        (151_936, 36.579),
    ] {
        assert!((n_bound(n) - bound).abs() < 5.1e-4, "{n}: {}", n_bound(n));
    }
    for (n, upper) in [
        (2, 0.43923),
        (64, 5.22994),
        (1024, 12.98265),
        (32_000, 27.89031),
        (128_256, 35.57553),
        (262_144, 39.90836),
    ] {
        let gap = upper - n_bound(n);
        assert!((0.0..=1.0e-5).contains(&gap), "{n}: {}", n_bound(n));
    }
    assert_eq!(n_bound(1), 0.0);
}

#[test]
fn the_bound_is_attained_by_one_symbol_beside_a_flat_rest() {
    for n in [2_usize, 3, 64, 1024, 49_152] {
        let best = (0..4000)
            .map(|i| {
                let s = f64::from(i) * 1e-3;
                let gap = s + ((n - 1) as f64).ln();
                let mut logits = vec![0.0_f32; n];
                logits[n / 3] = gap as f32;
                if n > 4000 && i % 100 != 0 {
                    return 0.0;
                }
                thermal(&logits, 0.0, None).expect("a valid row").v
            })
            .fold(0.0, f64::max);
        let bound = n_bound(n);
        assert!(
            best <= bound + 1e-12 && best > bound * 0.999,
            "{n}: {best} {bound}"
        );
    }
}

#[test]
fn cold_and_hot_limits_are_the_logarithms_of_the_multiplicities() {
    let logits = [1.0_f32, 3.0, 3.0, 2.0, f32::NEG_INFINITY];
    let cold = thermal(&logits, 1e-3_f64.ln(), None).expect("cold");
    assert_eq!(cold.h_nats, 2.0_f64.ln());
    assert_eq!(cold.p_max, 0.5);
    let hot = thermal(&logits, 1e6_f64.ln(), None).expect("hot");
    assert!((hot.h_nats - 4.0_f64.ln()).abs() < 1e-6);
}

#[test]
fn a_renormalised_head_is_no_bound_but_the_flat_tail_is() {
    let mut probs = vec![0.01; 50];
    probs.extend(vec![0.5 / 5000.0; 5000]);
    let logits = logits_of(&probs);
    let seen = thermal(&logits, 0.0, Some(50)).expect("a valid row");
    let renormalised = 50.0_f64.ln();
    let bracket = seen.bracket.expect("a head was asked for");
    assert!(renormalised < seen.h_nats - 2.0);
    assert!((bracket.upper_nats - seen.h_nats).abs() < 1e-6);
}

#[test]
fn rows_and_temperatures_without_an_answer_are_errors_with_the_place() {
    let ask = |logits: &[f32], u: f64| thermal(logits, u, None).expect_err("no answer");
    let mut long = vec![0.5_f32; 100];
    long[70] = f32::NAN;
    assert_eq!(ask(&[], 0.0), SensorError::Empty);
    assert_eq!(ask(&long, 0.0), SensorError::Nan { index: 70 });
    assert_eq!(ask(&[0.0, f32::NAN], 0.0), SensorError::Nan { index: 1 });
    let inf = f32::INFINITY;
    assert_eq!(
        ask(&[0.0, -1.0, inf], 0.0),
        SensorError::PosInf { index: 2 }
    );
    assert_eq!(ask(&[-inf; 40], 0.0), SensorError::AllNegInf);
    for u in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 800.0, -800.0] {
        let SensorError::NonFiniteTemperature { u: text } = ask(&[0.0], u) else {
            panic!("u = {u} was accepted");
        };
        assert_eq!(text, u.to_string());
    }
    let head = thermal(&[0.0, 1.0], 0.0, Some(0));
    assert_eq!(head, Err(SensorError::BadHead { k: 0, n: 2 }));
}
