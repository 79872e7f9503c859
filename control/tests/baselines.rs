//! The baseline laws and their draws against their equations, written out here in plain f64.

use etime_control::draw::{DrawKey, LogitShape, Pick, draw, uniform};
use etime_control::law::{
    AdaptiveP, Dynatemp, Edt, LawState, MirostatV2, Observation, SurprisalOf, TemperatureLaw,
};
use etime_control::sensor::thermal;
use proptest::prelude::*;
use std::f64::consts::LN_2;

fn softmax(logits: &[f32], t: f64) -> Vec<f64> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let e: Vec<f64> = logits
        .iter()
        .map(|&z| ((f64::from(z) - f64::from(top)) / t).exp())
        .collect();
    let sum: f64 = e.iter().sum();
    e.into_iter().map(|x| x / sum).collect()
}

fn entropy_nats(p: &[f64]) -> f64 {
    p.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum()
}

fn key(seed: u64, token: u64) -> DrawKey {
    DrawKey {
        seed,
        request: 1,
        token,
    }
}

/// The first token whose cumulative probability exceeds the uniform number of `key`.
fn inverse_cdf(p: &[f64], key: DrawKey) -> usize {
    let target = uniform(key);
    let mut sum = 0.0;
    let found = p.iter().position(|p| {
        sum += p;
        sum > target
    });
    found.unwrap_or(p.len() - 1)
}

/// p over the tokens with −ln p at most `cutoff_nats`, or over the likeliest alone.
fn cut(p: &[f64], cutoff_nats: f64) -> Vec<f64> {
    let top = p.iter().copied().fold(0.0, f64::max);
    let kept: Vec<f64> = p
        .iter()
        .map(|&p| {
            if -p.ln() <= cutoff_nats || p == top {
                p
            } else {
                0.0
            }
        })
        .collect();
    let sum: f64 = kept.iter().sum();
    kept.iter().map(|p| p / sum).collect()
}

fn reshaped(p: &[f64], target_p: f64) -> Vec<f64> {
    let z: Vec<f32> = p
        .iter()
        .map(|p| {
            let d = (p - target_p).abs() / 0.3;
            (5.0 - 10.0 * d * d / (1.0 + d)) as f32
        })
        .collect();
    softmax(&z, 1.0)
}

fn logits() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-8.0f32..8.0, 2..300)
}

fn mirostat(surprisal_of: SurprisalOf) -> MirostatV2 {
    MirostatV2 {
        tau_bits: 3.0,
        eta: 0.1,
        t: 1.0,
        surprisal_of,
    }
}

proptest! {
    #[test]
    fn a_cutoff_draws_from_the_renormalised_head_and_reports_its_entropy(
        z in logits(), t in 0.3f64..3.0, cutoff_nats in 0.1f64..8.0, seed in any::<u64>(),
    ) {
        let p = softmax(&z, t);
        // A token at the very edge may fall to either side by rounding.
        prop_assume!(p.iter().all(|p| (-p.ln() - cutoff_nats).abs() > 1e-9));
        let kept = cut(&p, cutoff_nats);
        let shape = LogitShape::SurprisalCutoff { u: t.ln(), cutoff_nats };
        for token in 0..4 {
            let drawn = draw(&z, shape, Pick::Key(key(seed, token))).unwrap();
            let index = drawn.token as usize;
            prop_assert_eq!(index, inverse_cdf(&kept, key(seed, token)));
            prop_assert!((drawn.surprisal_nats + kept[index].ln()).abs() < 1e-9);
            prop_assert!((drawn.tempered_surprisal_nats + p[index].ln()).abs() < 1e-9);
            prop_assert!((drawn.h_nats.unwrap() - entropy_nats(&kept)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_reshaped_draw_has_the_probabilities_of_its_formula(
        z in logits(), t in 0.3f64..3.0, target_p in 0.0f64..1.0, seed in any::<u64>(),
    ) {
        let q = reshaped(&softmax(&z, t), target_p);
        let shape = LogitShape::Reshape { u: t.ln(), target_p };
        for token in 0..q.len() as u32 {
            let scored = draw(&z, shape, Pick::Token(token)).unwrap();
            // z' is an F32: half a step at 100 is 4e-6.
            prop_assert!((scored.surprisal_nats + q[token as usize].ln()).abs() < 1e-5);
            prop_assert!((scored.h_nats.unwrap() - entropy_nats(&q)).abs() < 1e-5);
        }
        let drawn = draw(&z, shape, Pick::Key(key(seed, 0))).unwrap();
        prop_assert!(q[drawn.token as usize] > 0.0);
    }

    #[test]
    fn mirostat_moves_its_cutoff_by_eta_times_the_error_in_bits(
        surprisals in prop::collection::vec((0.0f64..12.0, 0.0f64..12.0), 1..100),
    ) {
        for surprisal_of in [SurprisalOf::Vocabulary, SurprisalOf::Kept] {
            let law = TemperatureLaw::MirostatV2(mirostat(surprisal_of));
            let (mut state, mut mu) = (law.start(), 6.0);
            for &(before_nats, after_nats) in &surprisals {
                let seen = Observation {
                    tempered_surprisal_nats: before_nats,
                    surprisal_nats: after_nats,
                    ..Observation::default()
                };
                state = law.observe(state, seen).0;
                let nats = if surprisal_of == SurprisalOf::Vocabulary { before_nats } else { after_nats };
                mu -= 0.1 * (nats / LN_2 - 3.0);
            }
            let LogitShape::SurprisalCutoff { cutoff_nats, u } = law.shape(&state, state.u) else {
                return Err(TestCaseError::fail("not a cutoff"));
            };
            prop_assert!((cutoff_nats - mu * LN_2).abs() < 1e-9);
            prop_assert_eq!(u, 0.0);
        }
    }

    #[test]
    fn dynatemp_and_edt_follow_their_formulas_and_rise_with_the_entropy(z in logits()) {
        let h = thermal(&z, 0.0, None).unwrap().h_nats;
        let ln_n = (z.len() as f64).ln();
        let dynatemp = Dynatemp { t_min: 0.3, t_max: 1.8, exponent: 1.5 };
        let law = TemperatureLaw::Dynatemp(dynatemp);
        let t = 0.3 + 1.5 * (h / ln_n).clamp(0.0, 1.0).powf(1.5);
        prop_assert!((law.feed_forward(9.0, h, ln_n).exp() - t).abs() < 1e-9);
        prop_assert!(law.feed_forward(0.0, 0.9 * h, ln_n) <= law.feed_forward(0.0, h, ln_n));

        let edt = Edt { t_0: 1.2, theta_nats: 0.8, base: 0.8, t_min: 0.1 };
        let law = TemperatureLaw::Edt(edt);
        let t = (1.2 * 0.8f64.powf(0.8 / h)).clamp(0.1, 1.2);
        prop_assert!((law.feed_forward(9.0, h, ln_n).exp() - t).abs() < 1e-9);
        prop_assert!(law.feed_forward(0.0, 0.9 * h, ln_n) <= law.feed_forward(0.0, h, ln_n));
        prop_assert!((law.feed_forward(0.0, 0.0, ln_n).exp() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn adaptive_p_leans_against_the_average_of_what_it_drew(
        drawn in prop::collection::vec(0.001f64..1.0, 1..100), target_p in 0.05f64..0.95,
    ) {
        let law = TemperatureLaw::AdaptiveP(AdaptiveP { target_p, ema: 0.9, t: 1.0 });
        let (mut state, mut average) = (law.start(), target_p);
        for &p in &drawn {
            let seen = Observation { tempered_surprisal_nats: -p.ln(), ..Observation::default() };
            state = law.observe(state, seen).0;
            average = 0.9 * average + 0.1 * p;
            let wanted = (2.0 * target_p - average).clamp(0.0, 1.0);
            let LogitShape::Reshape { target_p: seen, .. } = law.shape(&state, state.u) else {
                return Err(TestCaseError::fail("not a reshaping"));
            };
            prop_assert!((seen - wanted).abs() < 1e-12);
        }
    }
}

/// Mean drawn surprisal, bits, before and after the cutoff, on rows that change from token to token.
fn mean_surprisal_bits(law: &MirostatV2, steps: u64) -> (f64, f64) {
    let law = TemperatureLaw::MirostatV2(law.clone());
    let mut state: LawState = law.start();
    let (mut before, mut after) = (0.0, 0.0);
    for step in 0..steps {
        let row: Vec<f32> = (0..500u64)
            .map(|i| -((i + 1) as f32).ln() * (1.1 + 0.2 * ((step * 7 + i) % 5) as f32 / 5.0))
            .collect();
        let drawn = draw(&row, law.shape(&state, state.u), Pick::Key(key(5, step))).unwrap();
        before += drawn.tempered_surprisal_nats / LN_2;
        after += drawn.surprisal_nats / LN_2;
        let seen = Observation {
            surprisal_nats: drawn.surprisal_nats,
            tempered_surprisal_nats: drawn.tempered_surprisal_nats,
            ..Observation::default()
        };
        state = law.observe(state, seen).0;
    }
    (before / steps as f64, after / steps as f64)
}

#[test]
fn mirostat_meets_its_surprisal_in_the_variant_that_it_measures() {
    let steps = 4000;
    let (before, _) = mean_surprisal_bits(&mirostat(SurprisalOf::Vocabulary), steps);
    assert!((before - 3.0).abs() < 0.05, "{before}");
    let (_, after) = mean_surprisal_bits(&mirostat(SurprisalOf::Kept), steps);
    assert!((after - 3.0).abs() < 0.05, "{after}");
    let (_, other) = mean_surprisal_bits(&mirostat(SurprisalOf::Vocabulary), steps);
    assert!(
        (other - after).abs() > 0.2,
        "the variants differ where the cutoff bites: {other} {after}"
    );
}
