//! The entropic clock against its closed form and against noise.

use etime_control::clock::{EntropicClock, surrogate_tau};
use proptest::prelude::*;

fn clock(series: &[f64]) -> EntropicClock {
    let mut clock = EntropicClock::default();
    series.iter().for_each(|&h| clock.push(h));
    clock
}

fn series() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.0_f64..10.0, 0..200)
}

proptest! {
    #[test]
    fn tau_is_half_of_total_variation_plus_net_drop(series in series()) {
        let clock = clock(&series);
        let variation: f64 = series.windows(2).map(|w| (w[1] - w[0]).abs()).sum();
        let drop = series.first().zip(series.last()).map_or(0.0, |(a, b)| a - b);
        prop_assert!((clock.tau() - 0.5 * (variation + drop)).abs() < 1e-9);
        prop_assert!((clock.total_variation() - variation).abs() < 1e-9);
        prop_assert_eq!(clock.net_drop(), drop);
        prop_assert_eq!(clock.len(), series.len() as u64);
    }

    #[test]
    fn the_surrogate_of_a_constant_or_single_entropy_is_zero(h in 0.0_f64..10.0, n in 0_usize..20) {
        prop_assert_eq!(surrogate_tau(&vec![h; n], 1, 5), 0.0);
    }

    #[test]
    fn a_falling_path_has_a_larger_surrogate_than_its_own_tau(n in 20_usize..100) {
        let series: Vec<f64> = (0..n).map(|i| -(i as f64)).collect();
        prop_assert!(surrogate_tau(&series, 3, 10) > 2.0 * clock(&series).tau());
    }
}

#[test]
fn the_surrogate_is_the_mean_over_all_orders() {
    // Each ordered pair of neighbours of {0, 1, 3} is equally likely: E τ = 2·(1 + 2 + 3)/6 = 2.
    let tau = surrogate_tau(&[0.0, 1.0, 3.0], 5, 40_000);
    assert!((tau - 2.0).abs() < 0.02, "{tau}");
}

#[test]
fn the_surrogate_is_reproducible_and_moves_with_its_seed() {
    let series: Vec<f64> = (0..50).map(|i| f64::from(i * i % 17)).collect();
    assert_eq!(surrogate_tau(&series, 1, 3), surrogate_tau(&series, 1, 3));
    assert_ne!(surrogate_tau(&series, 1, 3), surrogate_tau(&series, 2, 3));
}

#[test]
fn a_two_cycle_gains_tau_without_any_net_drop() {
    let cycle: Vec<f64> = (0..=1200).map(|t| f64::from(1 + t % 2)).collect();
    let clock = clock(&cycle);
    assert_eq!((clock.tau(), clock.net_drop()), (600.0, 0.0));
}

#[test]
fn a_clock_survives_serialisation_in_the_middle_of_a_path() {
    let mut half = clock(&[3.0, 1.0, 2.0]);
    let text = serde_json::to_string(&half).expect("plain numbers");
    let mut restored: EntropicClock = serde_json::from_str(&text).expect("plain numbers");
    half.push(0.5);
    restored.push(0.5);
    assert_eq!(half, restored);
    assert_eq!(half.tau(), 3.5);
}
