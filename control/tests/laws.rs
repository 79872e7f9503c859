//! Each law against its difference equation and its theorem.

use etime_control::law::{
    Fault, InStep, Integral, LawState, Measure, Normalised, Observation, SolveStatus,
    TemperatureLaw,
};
use etime_control::sensor::{n_bound, thermal};
use proptest::prelude::*;

fn integral(eta: f64, target: f64) -> Integral {
    Integral {
        eta_per_nat: eta,
        target_nats: target,
        t_min: 0.05,
        t_max: 20.0,
        t_start: 1.0,
        measure: Measure::Tempered,
        ema: 0.0,
        delay_tok: 0,
    }
}

fn seen(h_nats: f64) -> Observation {
    Observation {
        h_nats,
        h_raw_nats: h_nats,
        v: 1.0,
        ..Observation::default()
    }
}

fn at(u: f64, law: &TemperatureLaw) -> LawState {
    LawState { u, ..law.start() }
}

/// One step of `law` from `u` on fixed logits.
fn step_on(law: &TemperatureLaw, state: LawState, logits: &[f32]) -> LawState {
    let now = thermal(logits, state.u, None).unwrap();
    let raw = thermal(logits, 0.0, None).unwrap();
    let observation = Observation {
        h_nats: now.h_nats,
        h_raw_nats: raw.h_nats,
        v: now.v,
        ..Observation::default()
    };
    law.observe(state, observation).0
}

fn iterate(law: &TemperatureLaw, u: f64, logits: &[f32], steps: usize) -> f64 {
    (0..steps)
        .fold(at(u, law), |state, _| step_on(law, state, logits))
        .u
}

/// The log-temperature at which `logits` have entropy `target`, by bisection.
fn u_star(logits: &[f32], target: f64) -> f64 {
    let (mut lo, mut hi) = (-6.0, 6.0);
    for _ in 0..200 {
        let mid = 0.5 * (lo + hi);
        if thermal(logits, mid, None).unwrap().h_nats > target {
            hi = mid;
        } else {
            lo = mid;
        }
    }
    0.5 * (lo + hi)
}

fn gaussian_like(n: usize) -> Vec<f32> {
    // Sum of incommensurate waves: irregular, and the same on every machine.
    (0..n)
        .map(|i| {
            let x = i as f32;
            3.0 * ((x * 0.737).sin() + (x * 1.913).cos() + (x * 0.211).sin())
        })
        .collect()
}

fn logits(max_len: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-12.0f32..12.0, 3..max_len)
}

proptest! {
    #[test]
    fn the_slope_of_the_map_is_one_plus_eta_v_as_published_and_one_minus_eta_v_corrected(
        z in logits(60), u in -1.0f64..1.5, eta in 0.001f64..0.5,
    ) {
        let d = 1e-5;
        let v = thermal(&z, u, None).unwrap().v;
        for (law, sign) in [
            (TemperatureLaw::Published(integral(eta, 1.0)), 1.0),
            (TemperatureLaw::Corrected(integral(eta, 1.0)), -1.0),
        ] {
            let map = |u| step_on(&law, at(u, &law), &z).u;
            // Far from the clip, else the slope is the clip's.
            prop_assume!(map(u).abs() < 2.9);
            let slope = (map(u + d) - map(u - d)) / (2.0 * d);
            prop_assert!((slope - (1.0 + sign * eta * v)).abs() < 1e-4 * (1.0 + eta * v), "{slope}");
        }
    }

    #[test]
    fn the_mean_error_identity_holds_for_any_entropies_with_clipping(
        h in prop::collection::vec(0.0f64..10.0, 1..400), eta in 0.001f64..2.0, target in 0.1f64..8.0,
    ) {
        let mut settings = integral(eta, target);
        (settings.t_min, settings.t_max) = (0.5, 1.6);
        let law = TemperatureLaw::Corrected(settings.clone());
        let mut state = law.start();
        let (u_0, mut clips, mut errors) = (state.u, 0.0, 0.0);
        let mut clipped = false;
        for &h_nats in &h {
            let (next, action) = law.observe(state, seen(h_nats));
            state = next;
            clips += action.clip_u;
            clipped |= action.clip_u != 0.0;
            errors += h_nats - target;
        }
        prop_assert!((errors - (u_0 - state.u + clips) / eta).abs() <= 1e-9 * (1.0 + errors.abs()));
        if !clipped {
            let bound = (settings.t_max / settings.t_min).ln() / (eta * h.len() as f64);
            prop_assert!((errors / h.len() as f64).abs() <= bound * (1.0 + 1e-12));
        }
    }

    #[test]
    fn two_trajectories_under_the_same_logits_contract_by_one_minus_eta_v_bar(
        rows in prop::collection::vec(prop::collection::vec(-8.0f32..8.0, 24), 1..40),
        a in -2.0f64..2.0, b in -2.0f64..2.0, share in 0.05f64..1.0,
    ) {
        let eta = share * 2.0 / n_bound(24);
        let law = TemperatureLaw::Corrected(integral(eta, 1.2));
        let (mut x, mut y) = (at(a, &law), at(b, &law));
        for z in &rows {
            let gap = x.u - y.u;
            let rise = thermal(z, x.u, None).unwrap().h_nats - thermal(z, y.u, None).unwrap().h_nats;
            let factor = if gap == 0.0 { 1.0 } else { (1.0 - eta * rise / gap).abs() };
            x = step_on(&law, x, z);
            y = step_on(&law, y, z);
            prop_assert!((x.u - y.u).abs() <= factor * gap.abs() + 1e-12);
            prop_assert!((x.u - y.u).abs() <= gap.abs() + 1e-12, "eta below 2/N_n never expands");
        }
    }

    #[test]
    fn the_published_law_leaves_for_the_clip_bound_on_its_side(
        z in logits(60), offset in 0.05f64..0.8, up in any::<bool>(),
    ) {
        let settings = integral(0.2, 1.0);
        let law = TemperatureLaw::Published(settings.clone());
        let star = u_star(&z, 1.0);
        let band = settings.band();
        prop_assume!(star > band.u_min + 0.9 && star < band.u_max - 0.9);
        let start = if up { star + offset } else { star - offset };
        // A start where H = H* to rounding would not move: flat response, V = 0.
        prop_assume!((thermal(&z, start, None).unwrap().h_nats - 1.0).abs() > 1e-3);
        let end = iterate(&law, start, &z, 60_000);
        prop_assert_eq!(end, if up { band.u_max } else { band.u_min });
    }

    #[test]
    fn the_corrected_law_converges_without_overshoot_when_eta_times_the_supremum_of_v_is_at_most_one(
        z in logits(40), start in -2.0f64..2.0,
    ) {
        let eta = 1.0 / n_bound(z.len());
        let law = TemperatureLaw::Corrected(integral(eta, 0.7));
        let star = u_star(&z, 0.7);
        let band = law.band().unwrap();
        prop_assume!(star > band.u_min && star < band.u_max);
        let side = (start - star).signum();
        let mut state = at(start, &law);
        let mut gap = (start - star).abs();
        for _ in 0..200 {
            state = step_on(&law, state, &z);
            let now = (state.u - star) * side;
            prop_assert!(now >= -1e-9, "overshoot by {now}");
            prop_assert!(now <= gap + 1e-12);
            gap = now;
        }
    }

    #[test]
    fn the_in_step_solver_meets_its_tolerance_wherever_the_setpoint_is_reachable(
        z in logits(300), target in 0.05f64..5.0, guess in -3.0f64..3.0,
    ) {
        let settings = InStep { target_nats: target, t_min: 0.05, t_max: 20.0, tol_nats: 1e-9 };
        let band = settings.band();
        let law = TemperatureLaw::InStep(settings);
        let mut solver = law.solver(&at(guess, &law)).unwrap();
        let mut asks = 0;
        let solution = loop {
            let now = thermal(&z, solver.ask(), None).unwrap();
            asks += 1;
            if let Some(solution) = solver.tell(now.h_nats, now.v) {
                break solution;
            }
        };
        let h = |u| thermal(&z, u, None).unwrap().h_nats;
        prop_assert!(asks <= 64, "{asks} evaluations");
        match solution.status {
            SolveStatus::Converged => prop_assert!((h(solution.u) - target).abs() <= 1e-9),
            SolveStatus::BelowBand => {
                prop_assert_eq!(solution.u, band.u_min);
                prop_assert!(h(band.u_min) > target);
            }
            SolveStatus::AboveBand => {
                prop_assert_eq!(solution.u, band.u_max);
                prop_assert!(h(band.u_max) < target);
            }
            SolveStatus::RoundingLimited => prop_assert!(false, "not met: {}", h(solution.u) - target),
        }
    }

    #[test]
    fn interleaving_two_sequences_changes_neither(
        h in prop::collection::vec((0.0f64..6.0, 0.0f64..6.0), 1..60), delay_tok in 0usize..4, ema in 0.0f64..0.9,
    ) {
        let law = TemperatureLaw::Corrected(Integral { delay_tok, ema, ..integral(0.1, 2.0) });
        let alone = |pick: fn(&(f64, f64)) -> f64| {
            h.iter().fold(law.start(), |state, pair| law.observe(state, seen(pick(pair))).0)
        };
        let (mut a, mut b) = (law.start(), law.start());
        for &(left, right) in &h {
            a = law.observe(a, seen(left)).0;
            b = law.observe(b, seen(right)).0;
        }
        prop_assert_eq!(&a, &alone(|p| p.0));
        prop_assert_eq!(&b, &alone(|p| p.1));
        let text = serde_json::to_string(&a).unwrap();
        let back: LawState = serde_json::from_str(&text).unwrap();
        prop_assert!((back.u - a.u).abs() < 1e-15);
    }
}

/// Largest |u − u*| over the last 200 of 6000 steps after a small push from u*.
fn residual(law: &TemperatureLaw, logits: &[f32], star: f64) -> f64 {
    let mut state = at(star + 1e-4, law);
    let mut worst: f64 = 0.0;
    for step in 0..6000 {
        state = step_on(law, state, logits);
        if step >= 5800 {
            worst = worst.max((state.u - star).abs());
        }
    }
    worst
}

#[test]
fn the_gain_limit_is_two_without_delay_and_two_sin_pi_over_4q_plus_2_with_q_extra_tokens() {
    let z = gaussian_like(200);
    let star = u_star(&z, 2.0);
    let v = thermal(&z, star, None).unwrap().v;
    for delay_tok in 0..=4 {
        let limit = 2.0 * (std::f64::consts::PI / (4.0 * delay_tok as f64 + 2.0)).sin();
        let law = |share: f64| {
            TemperatureLaw::Corrected(Integral {
                delay_tok,
                ..integral(share * limit / v, 2.0)
            })
        };
        assert!(residual(&law(0.95), &z, star) < 1e-9, "q = {delay_tok}");
        assert!(residual(&law(1.05), &z, star) > 1e-3, "q = {delay_tok}");
    }
}

#[test]
fn an_average_raises_the_gain_limit_to_two_times_one_plus_b_over_one_minus_b() {
    let z = gaussian_like(200);
    let star = u_star(&z, 2.0);
    let v = thermal(&z, star, None).unwrap().v;
    for ema in [0.2, 0.5] {
        let limit = 2.0 * (1.0 + ema) / (1.0 - ema);
        let law = |share: f64| {
            TemperatureLaw::Corrected(Integral {
                ema,
                ..integral(share * limit / v, 2.0)
            })
        };
        assert!(residual(&law(0.95), &z, star) < 1e-9, "b = {ema}");
        assert!(residual(&law(1.05), &z, star) > 1e-3, "b = {ema}");
    }
}

#[test]
fn the_normalised_law_is_stable_below_kappa_two_and_dead_beat_near_one() {
    let z = gaussian_like(200);
    let star = u_star(&z, 2.0);
    let law = |kappa| {
        TemperatureLaw::Normalised(Normalised {
            kappa,
            target_nats: 2.0,
            v_floor: 0.05,
            max_step: None,
            t_min: 0.05,
            t_max: 20.0,
            t_start: 1.0,
            ema: 0.0,
            delay_tok: 0,
        })
    };
    assert!(residual(&law(1.9), &z, star) < 1e-9);
    assert!(residual(&law(2.1), &z, star) > 1e-3);
    assert!((iterate(&law(1.0), star + 0.1, &z, 4) - star).abs() < 1e-6);
}

#[test]
fn every_fault_changes_the_law_and_a_double_fault_of_sign_restores_it() {
    let law = TemperatureLaw::Corrected(integral(0.1, 2.0));
    for fault in Fault::ALL {
        assert_ne!(fault.inject(&law).unwrap(), law, "{fault:?}");
    }
    let twice = Fault::WrongSign
        .inject(&Fault::WrongSign.inject(&law).unwrap())
        .unwrap();
    assert_eq!(twice, law);
    assert!(
        Fault::DoubleEta
            .inject(&TemperatureLaw::Fixed { t: 1.0 })
            .is_err()
    );
}

#[test]
fn bits_measured_is_the_law_that_a_sensor_in_bits_would_drive() {
    let law = TemperatureLaw::Corrected(integral(0.1, 2.0));
    let faulty = Fault::BitsMeasured.inject(&law).unwrap();
    for h_nats in [0.3, 1.4, 2.0, 5.0] {
        let in_bits = law
            .observe(law.start(), seen(h_nats / std::f64::consts::LN_2))
            .0
            .u;
        let by_parameters = faulty.observe(faulty.start(), seen(h_nats)).0.u;
        assert!((in_bits - by_parameters).abs() < 1e-14);
    }
}

#[test]
fn a_raw_measure_ignores_what_the_temperature_does_to_the_entropy() {
    let law = TemperatureLaw::Corrected(Integral {
        measure: Measure::Raw,
        ..integral(0.1, 2.0)
    });
    let observation = Observation {
        h_nats: 0.0,
        h_raw_nats: 2.0,
        v: 1.0,
        ..Observation::default()
    };
    assert_eq!(law.observe(law.start(), observation).0.u, law.start().u);
}
