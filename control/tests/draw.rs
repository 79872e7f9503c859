//! The draw: published random numbers, frequencies, and independence of everything but key and logits.

use etime_control::draw::{DrawKey, Drawn, LogitShape, Pick, draw, philox4x32, uniform};
use etime_control::sensor::{SensorError, thermal};
use proptest::prelude::*;

fn key(seed: u64, request: u64, token: u64) -> DrawKey {
    DrawKey {
        seed,
        request,
        token,
    }
}

fn drawn(logits: &[f32], u: f64, key: DrawKey) -> Drawn {
    draw(logits, LogitShape::Temperature { u }, Pick::Key(key)).expect("a valid row")
}

fn probs(logits: &[f32], u: f64) -> Vec<f64> {
    let weights: Vec<f64> = logits
        .iter()
        .map(|&z| (f64::from(z) / u.exp()).exp())
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

#[test]
fn philox_gives_the_published_known_answers() {
    let ones = u32::MAX;
    for (counter, key, answer) in [
        (
            [0; 4],
            [0; 2],
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
        ),
        (
            [ones; 4],
            [ones; 2],
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        ),
        (
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ] {
        assert_eq!(philox4x32(counter, key), answer);
    }
}

#[test]
fn every_word_of_the_key_moves_the_number() {
    let base = uniform(key(0, 0, 0));
    for shift in [0, 31, 32, 63] {
        let bit = 1_u64 << shift;
        for other in [key(bit, 0, 0), key(0, bit, 0), key(0, 0, bit)] {
            assert_ne!(uniform(other), base, "{other:?}");
        }
    }
}

#[test]
fn draw_frequencies_match_the_probabilities() {
    // 0.999 quantile of chi-square with 299 degrees of freedom, Wilson and Hilferty's approximation.
    const LIMIT: f64 = 380.3;
    let logits: Vec<f32> = (0..300).map(|i| ((i * 7) % 300) as f32 * 0.008).collect();
    let draws = 200_000_u64;
    for u in [-0.5_f64, 0.0, 0.7] {
        let mut counts = vec![0_u32; logits.len()];
        for token in 0..draws {
            counts[drawn(&logits, u, key(11, 3, token)).token as usize] += 1;
        }
        let chi_square: f64 = probs(&logits, u)
            .into_iter()
            .zip(counts)
            .map(|(p, seen)| {
                let want = p * draws as f64;
                (f64::from(seen) - want).powi(2) / want
            })
            .sum();
        assert!(chi_square < LIMIT, "u = {u}: {chi_square}");
    }
}

#[test]
fn a_cold_draw_is_the_argmax_and_splits_ties() {
    let mut logits: Vec<f32> = (0..1000).map(|i| ((i * 31) % 997) as f32 * 0.01).collect();
    let cold = 1e-3_f64.ln();
    let best = (0..1000)
        .max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
        .expect("not empty");
    assert!((0..200).all(|t| drawn(&logits, cold, key(1, 0, t)).token as usize == best));
    logits[700] = logits[best];
    let ties = (0..1000)
        .map(|t| drawn(&logits, cold, key(1, 0, t)).token as usize)
        .inspect(|&token| assert!(token == best || token == 700))
        .filter(|&token| token == 700)
        .count();
    assert!((400..600).contains(&ties), "{ties}");
}

proptest! {
    #[test]
    fn a_draw_depends_on_its_key_and_logits_alone(
        seed in any::<u64>(),
        rows in prop::collection::vec(prop::collection::vec(-4.0_f32..4.0, 1..700), 2..6),
        u in -1.0_f64..1.0
    ) {
        let ask = |i: usize| drawn(&rows[i], u, key(seed, i as u64, 5));
        let forward: Vec<Drawn> = (0..rows.len()).map(ask).collect();
        let mut backward: Vec<Drawn> = (0..rows.len()).rev().map(ask).collect();
        backward.reverse();
        prop_assert_eq!(&forward, &backward);
        let on_threads: Vec<Drawn> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..rows.len()).map(|i| scope.spawn(move || ask(i))).collect();
            handles.into_iter().map(|h| h.join().expect("no panic")).collect()
        });
        prop_assert_eq!(&forward, &on_threads);
    }

    #[test]
    fn the_drawn_token_inverts_the_cumulative_distribution(
        logits in prop::collection::vec(-5.0_f32..5.0, 1..1500), seed in any::<u64>(), u in -1.0_f64..1.5
    ) {
        let key = key(seed, 1, 2);
        let token = drawn(&logits, u, key).token as usize;
        let p = probs(&logits, u);
        let below: f64 = p[..token].iter().sum();
        let at = uniform(key);
        prop_assert!(below - 1e-12 <= at && at <= below + p[token] + 1e-12, "{below} {at} {}", p[token]);
    }

    #[test]
    fn tokens_of_minus_infinity_are_never_drawn(
        live in 0_usize..900, n in 900_usize..1200, seed in any::<u64>()
    ) {
        let mut logits = vec![f32::NEG_INFINITY; n];
        logits[live] = 1.0;
        logits[(live + 300) % n] = 1.5;
        for token in 0..50 {
            let seen = drawn(&logits, 0.2, key(seed, 9, token)).token as usize;
            prop_assert!(seen == live || seen == (live + 300) % n);
        }
    }

    #[test]
    fn mean_surprisal_over_tokens_is_the_entropy(
        logits in prop::collection::vec(-3.0_f32..3.0, 1..300), u in -1.0_f64..1.0
    ) {
        let score = |token: u32| draw(&logits, LogitShape::Temperature { u }, Pick::Token(token));
        let (mut h, mut h_raw) = (0.0, 0.0);
        for token in 0..logits.len() as u32 {
            let seen = score(token)?;
            h += seen.surprisal_nats * (-seen.surprisal_nats).exp();
            h_raw += seen.raw_surprisal_nats * (-seen.raw_surprisal_nats).exp();
        }
        prop_assert!((h - thermal(&logits, u, None)?.h_nats).abs() < 1e-11);
        prop_assert!((h_raw - thermal(&logits, 0.0, None)?.h_nats).abs() < 1e-11);
    }

    #[test]
    fn a_drawn_token_scores_what_the_draw_reported(
        logits in prop::collection::vec(-3.0_f32..3.0, 1..300), seed in any::<u64>(), u in -1.0_f64..1.0
    ) {
        let seen = drawn(&logits, u, key(seed, 0, 0));
        let scored = draw(&logits, LogitShape::Temperature { u }, Pick::Token(seen.token))?;
        prop_assert_eq!(seen, scored);
    }
}

#[test]
fn scoring_refuses_tokens_outside_the_vocabulary_and_gives_impossible_ones_infinity() {
    let logits = [0.0, f32::NEG_INFINITY];
    let score = |token| {
        draw(
            &logits,
            LogitShape::Temperature { u: 0.0 },
            Pick::Token(token),
        )
    };
    assert_eq!(
        score(2),
        Err(SensorError::TokenOutOfRange { token: 2, vocab: 2 })
    );
    let impossible = score(1).expect("in range");
    assert_eq!(impossible.surprisal_nats, f64::INFINITY);
    assert_eq!(score(0).expect("in range").surprisal_nats, 0.0);
}
