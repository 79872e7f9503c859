//! Many runs of the same experiment, in parallel.

use rayon::prelude::*;

/// Runs `run` once per seed on the current rayon pool and returns the results in the order of `seeds`.
///
/// The result does not depend on the number of threads as long as `run` depends on its seed alone.
///
/// # Errors
/// The error of the first seed, in order, that failed.
pub fn ensemble<T, E>(seeds: &[u64], run: impl Fn(u64) -> Result<T, E> + Sync) -> Result<Vec<T>, E>
where
    T: Send,
    E: Send,
{
    // Collected whole, so that the reported error does not depend on which thread was first.
    let all: Vec<Result<T, E>> = seeds.par_iter().map(|&seed| run(seed)).collect();
    all.into_iter().collect()
}
