//! Muon: momentum whose update is orthogonalised, for weight matrices; it needs far fewer steps than AdamW.
//!
//! Update of W (r × c): W ← (1 − rate · decay) W − rate · √max(1, r/c) · O, with O ≈ U Vᵀ of the Nesterov momentum U Σ Vᵀ.
//! Source: K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024), quintic Newton–Schulz.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};

const MOMENTUM: f64 = 0.95;
const QUINTIC: [f64; 3] = [3.4445, -4.7750, 2.0315];
const ITERATIONS: usize = 5;

pub struct Muon {
    slots: Vec<(Var, Tensor)>,
    weight_decay: f64,
}

impl Muon {
    /// All of `matrices` must have two dimensions.
    pub fn new(matrices: Vec<Var>, weight_decay: f64) -> Result<Self> {
        let slots = matrices
            .into_iter()
            .map(|var| Ok((var.clone(), var.zeros_like()?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            slots,
            weight_decay,
        })
    }

    /// One step on every matrix that has a gradient, shared out over `workers` threads.
    pub fn step(&mut self, grads: &GradStore, rate: f64, workers: usize) -> Result<()> {
        let decay = 1.0 - rate * self.weight_decay;
        let share = self.slots.len().div_ceil(workers).max(1);
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .slots
                .chunks_mut(share)
                .map(|slots| scope.spawn(move || update(slots, grads, rate, decay)))
                .collect();
            threads.into_iter().try_for_each(crate::fit::join)
        })
    }
}

fn update(slots: &mut [(Var, Tensor)], grads: &GradStore, rate: f64, decay: f64) -> Result<()> {
    for (var, momentum) in slots {
        let Some(grad) = grads.get(var) else { continue };
        // The gradient holds no graph, but the variable would start one: work on detached values.
        *momentum = ((&*momentum * MOMENTUM)? + grad)?.detach();
        let nesterov = (grad + (&*momentum * MOMENTUM)?)?.detach();
        let (rows, columns) = nesterov.dims2()?;
        let scale = rate * (rows as f64 / columns as f64).max(1.0).sqrt();
        let kept = (var.as_detached_tensor() * decay)?;
        var.set(&(kept - (orthogonalise(&nesterov)? * scale)?)?)?;
    }
    Ok(())
}

/// U S Vᵀ of m = U Σ Vᵀ with the nonzero singular values S near 1 (about 0.7 to 1.2).
fn orthogonalise(m: &Tensor) -> Result<Tensor> {
    let (rows, columns) = m.dims2()?;
    let wide = if rows > columns {
        m.t()?.contiguous()?
    } else {
        m.clone()
    };
    let norm = f64::from(wide.sqr()?.sum_all()?.to_scalar::<f32>()?).sqrt();
    let [a, b, c] = QUINTIC;
    let mut x = (wide / (norm + 1e-12))?;
    for _ in 0..ITERATIONS {
        let gram = x.matmul(&x.t()?)?;
        let poly = ((&gram * b)? + (gram.matmul(&gram)? * c)?)?;
        x = ((&x * a)? + poly.matmul(&x)?)?;
    }
    if rows > columns {
        x.t()?.contiguous()
    } else {
        Ok(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    #[test]
    fn rows_of_an_orthogonalised_matrix_are_nearly_orthonormal() {
        for (rows, columns) in [(8, 24), (24, 8)] {
            let values: Vec<f32> = (1..=192u64)
                .map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f32 / 8e6 - 1.0)
                .collect();
            let m = Tensor::from_vec(values, (rows, columns), &Device::Cpu).unwrap();
            let o = orthogonalise(&m).unwrap();
            let o = if rows > columns { o.t().unwrap() } else { o };
            let gram = o.matmul(&o.t().unwrap()).unwrap().to_vec2::<f32>().unwrap();
            for (i, row) in gram.iter().enumerate() {
                for (j, &g) in row.iter().enumerate() {
                    let target = if i == j { 1.0 } else { 0.0 };
                    assert!((g - target).abs() < 0.6, "({i}, {j}): {g}");
                }
            }
        }
    }

    #[test]
    fn a_least_squares_problem_is_solved() {
        let target = Tensor::arange(0f32, 12.0, &Device::Cpu).unwrap();
        let target = (target.reshape((3, 4)).unwrap() / 12.0).unwrap();
        let w = Var::zeros((3, 4), candle_core::DType::F32, &Device::Cpu).unwrap();
        let mut muon = Muon::new(vec![w.clone()], 0.0).unwrap();
        let loss = || {
            (w.as_tensor() - &target)
                .unwrap()
                .sqr()
                .unwrap()
                .sum_all()
                .unwrap()
        };
        for step in 0..300 {
            let grads = loss().backward().unwrap();
            let rate = 0.05 * (1.0 - f64::from(step) / 300.0);
            muon.step(&grads, rate, 2).unwrap();
        }
        let left = loss().to_scalar::<f32>().unwrap();
        assert!(left < 1e-3, "{left}");
    }
}
