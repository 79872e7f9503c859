//! The random number of a draw, a function of its key alone.

/// Names one draw: the run's seed, the request, and the index of the token within the request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawKey {
    pub seed: u64,
    pub request: u64,
    pub token: u64,
}

/// A number in \[0, 1) with 53 random bits, from Philox4x32-10 keyed by `key.seed` at the counter
/// (`key.token`, `key.request`), low words first.
pub fn uniform(key: DrawKey) -> f64 {
    let counter = [
        low(key.token),
        high(key.token),
        low(key.request),
        high(key.request),
    ];
    let out = philox4x32(counter, [low(key.seed), high(key.seed)]);
    let bits = u64::from(out[0]) | u64::from(out[1]) << 32;
    (bits >> 11) as f64 * 2.0_f64.powi(-53)
}

fn low(x: u64) -> u32 {
    x as u32
}

fn high(x: u64) -> u32 {
    (x >> 32) as u32
}

/// Philox4x32 with ten rounds (Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3").
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    const ROUNDS: u32 = 10;
    let mut c = counter;
    for round in 0..ROUNDS {
        let k0 = key[0].wrapping_add(0x9E37_79B9_u32.wrapping_mul(round));
        let k1 = key[1].wrapping_add(0xBB67_AE85_u32.wrapping_mul(round));
        let p0 = 0xD251_1F53_u64 * u64::from(c[0]);
        let p1 = 0xCD9E_8D57_u64 * u64::from(c[2]);
        c = [high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)];
    }
    c
}
