//! Ensembles do not depend on the number of threads.

mod common;

use common::{corrected, requests, synthetic, try_drive};
use etime_control::driver::RunError;
use etime_control::trajectory::Trajectory;
use etime_sim::{Process, ensemble};
use std::sync::atomic::{AtomicUsize, Ordering};

fn on_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a pool").install(run)
}

#[test]
fn results_are_the_same_bytes_at_any_number_of_threads_and_in_seed_order() {
    let seeds: Vec<u64> = (0..12).rev().collect();
    let one = |seed| -> Result<Trajectory, RunError> {
        let mut plant = synthetic(Process::Ar1 { phi: 0.7, sd: 0.3 }, 0.05, seed);
        try_drive(&mut plant, corrected(0.1, 2.0), &requests(0..2, 30), seed)
    };
    let single = on_threads(1, || ensemble(&seeds, one)).expect("runs");
    for (seed, run) in seeds.iter().zip(&single) {
        assert_eq!(&one(*seed).expect("a run"), run);
    }
    for threads in [2, 7] {
        let many = on_threads(threads, || ensemble(&seeds, one)).expect("runs");
        assert_eq!(format!("{single:?}"), format!("{many:?}"));
    }
}

#[test]
fn the_first_failing_seed_is_reported_whichever_thread_was_first() {
    let started = AtomicUsize::new(0);
    let run = |seed: u64| {
        started.fetch_add(1, Ordering::Relaxed);
        if seed % 10 == 3 { Err(seed) } else { Ok(seed) }
    };
    let seeds: Vec<u64> = (0..100).collect();
    for threads in [1, 2, 7] {
        assert_eq!(on_threads(threads, || ensemble(&seeds, run)), Err(3));
    }
    assert_eq!(started.load(Ordering::Relaxed), 300);
}
