//! Three fused operations with their backward passes, for F32 on the CPU.
//!
//! candle's own fused `rms_norm`, `rope` and `softmax_last_dim` have no backward: gradients stop there in silence.
//! Single-threaded: the training loop gives each thread a batch of its own.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Error, Layout, Result, Shape, Tensor, bail};

fn rows<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => Err(Error::RequiresContiguous { op: "fused row op" }),
    }
}

fn last_dim(layout: &Layout) -> Result<usize> {
    match layout.dims().last() {
        Some(&n) if n > 0 => Ok(n),
        _ => bail!("rows are empty in shape {:?}", layout.shape()),
    }
}

/// y = softmax(scale · x) over the positions a row may see; zero elsewhere.
///
/// x: (.., queries, keys). Row r sees keys 0..=(r mod keys): queries are whole stacks of `keys` positions.
#[derive(Clone, Copy)]
pub struct CausalSoftmax {
    pub scale: f32,
}

impl CustomOp1 for CausalSoftmax {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, s: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, keys) = (rows(s, l)?, last_dim(l)?);
        let mut y = vec![0f32; x.len()];
        y.chunks_mut(keys)
            .zip(x.chunks(keys))
            .enumerate()
            .for_each(|(r, (y, x))| {
                let seen = r % keys + 1;
                let max = x[..seen].iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v));
                let mut sum = 0f32;
                for (y, &x) in y[..seen].iter_mut().zip(x) {
                    *y = ((x - max) * self.scale).exp();
                    sum += *y;
                }
                y[..seen].iter_mut().for_each(|y| *y /= sum);
            });
        Ok((CpuStorage::F32(y), l.shape().clone()))
    }

    fn bwd(&self, _x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        y.apply_op2_no_bwd(&grad.contiguous()?, &CausalSoftmaxBackward(*self))
            .map(Some)
    }
}

struct CausalSoftmaxBackward(CausalSoftmax);

impl CustomOp2 for CausalSoftmaxBackward {
    fn name(&self) -> &'static str {
        "causal-softmax-backward"
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (y, g, keys) = (rows(s1, l1)?, rows(s2, l2)?, last_dim(l1)?);
        let mut dx = vec![0f32; y.len()];
        dx.chunks_mut(keys)
            .zip(y.chunks(keys).zip(g.chunks(keys)))
            .enumerate()
            .for_each(|(r, (dx, (y, g)))| {
                let seen = r % keys + 1;
                let mean: f32 = y[..seen].iter().zip(g).map(|(y, g)| y * g).sum();
                for ((dx, y), g) in dx[..seen].iter_mut().zip(y).zip(g) {
                    *dx = self.0.scale * y * (g - mean);
                }
            });
        Ok((CpuStorage::F32(dx), l1.shape().clone()))
    }
}

/// y = w ⊙ x / √(mean(x²) + eps) over the last dimension. x: (.., n), w: (n).
#[derive(Clone, Copy)]
pub struct RmsNorm {
    pub eps: f32,
}

impl RmsNorm {
    fn inverse_rms(self, x: &[f32]) -> f32 {
        let mean = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
        1.0 / (mean + self.eps).sqrt()
    }
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, w, n) = (rows(s1, l1)?, rows(s2, l2)?, last_dim(l1)?);
        let mut y = vec![0f32; x.len()];
        y.chunks_mut(n).zip(x.chunks(n)).for_each(|(y, x)| {
            let inverse = self.inverse_rms(x);
            for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
                *y = x * inverse * w;
            }
        });
        Ok((CpuStorage::F32(y), l1.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _y: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let n = w.dim(0)?;
        let wg = grad.broadcast_mul(w)?;
        let dx = x.apply_op2_no_bwd(&wg, &RmsNormBackward(*self))?;
        let unscaled = x.apply_op2_no_bwd(&w.ones_like()?, self)?;
        let dw = (unscaled * grad)?.reshape(((), n))?.sum(0)?;
        Ok((Some(dx), Some(dw)))
    }
}

/// dx = (h − x̂ · mean(h ⊙ x̂)) / rms with h = w ⊙ grad and x̂ = x / rms.
struct RmsNormBackward(RmsNorm);

impl CustomOp2 for RmsNormBackward {
    fn name(&self) -> &'static str {
        "rms-norm-backward"
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, h, n) = (rows(s1, l1)?, rows(s2, l2)?, last_dim(l1)?);
        let mut dx = vec![0f32; x.len()];
        dx.chunks_mut(n)
            .zip(x.chunks(n).zip(h.chunks(n)))
            .for_each(|(dx, (x, h))| {
                let inverse = self.0.inverse_rms(x);
                let dot: f32 = x.iter().zip(h).map(|(x, h)| x * h).sum();
                let mean = dot * inverse * inverse / n as f32;
                for ((dx, x), h) in dx.iter_mut().zip(x).zip(h) {
                    *dx = (h - x * mean) * inverse;
                }
            });
        Ok((CpuStorage::F32(dx), l1.shape().clone()))
    }
}

/// Rotary position embedding in half-split order: pairs (i, i + d/2) turn by position · theta^(−2i/d).
///
/// x: (.., positions, d), position = row mod positions. The backward pass turns the other way.
#[derive(Clone)]
pub struct Rope {
    /// (cos, sin) per position and pair: positions × d/2.
    turns: Arc<Vec<(f32, f32)>>,
    half: usize,
    sign: f32,
}

impl Rope {
    pub fn new(head_dim: usize, positions: usize, theta: f64) -> Self {
        let half = head_dim / 2;
        let turns = (0..positions * half)
            .map(|i| {
                let (position, pair) = ((i / half) as f64, (i % half) as f64);
                let angle = position * theta.powf(-pair / half as f64);
                (angle.cos() as f32, angle.sin() as f32)
            })
            .collect();
        Self {
            turns: Arc::new(turns),
            half,
            sign: 1.0,
        }
    }
}

impl CustomOp1 for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn cpu_fwd(&self, s: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, d) = (rows(s, l)?, last_dim(l)?);
        let positions = l.dims()[l.dims().len().saturating_sub(2)];
        if d != 2 * self.half || positions * self.half > self.turns.len() {
            bail!(
                "rope was built for head size {} and {} positions, asked for {d} and {positions}",
                2 * self.half,
                self.turns.len() / self.half
            );
        }
        let mut y = vec![0f32; x.len()];
        y.chunks_mut(d)
            .zip(x.chunks(d))
            .enumerate()
            .for_each(|(r, (y, x))| {
                let turns = &self.turns[r % positions * self.half..][..self.half];
                let (x0, x1) = x.split_at(self.half);
                let (y0, y1) = y.split_at_mut(self.half);
                for (i, &(cos, sin)) in turns.iter().enumerate() {
                    let sin = sin * self.sign;
                    y0[i] = x0[i] * cos - x1[i] * sin;
                    y1[i] = x1[i] * cos + x0[i] * sin;
                }
            });
        Ok((CpuStorage::F32(y), l.shape().clone()))
    }

    fn bwd(&self, _x: &Tensor, _y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let back = Self {
            sign: -self.sign,
            ..self.clone()
        };
        grad.contiguous()?.apply_op1_no_bwd(&back).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{D, Device, Var};
    use candle_nn::{ops, rotary_emb};

    fn var(dims: &[usize], seed: u64) -> Var {
        let n: usize = dims.iter().product();
        let values: Vec<f32> = (1..=n as u64)
            .map(|i| {
                let bits = (i + (seed << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                bits as f32 / (1 << 23) as f32 - 1.0
            })
            .collect();
        Var::from_vec(values, dims, &Device::Cpu).unwrap()
    }

    fn assert_close(a: &Tensor, b: &Tensor, tol: f32, label: &str) {
        let diff = (a - b).unwrap().abs().unwrap().flatten_all().unwrap();
        let diff = diff.max(0).unwrap().to_scalar::<f32>().unwrap();
        assert!(diff <= tol, "{label}: {diff} > {tol}");
    }

    /// Same values and same gradients of a random linear functional.
    fn assert_same(fused: &Tensor, slow: &Tensor, vars: &[&Var], label: &str) {
        assert_close(fused, slow, 1e-5, label);
        let probe = var(fused.dims(), 99);
        let grads = |y: &Tensor| {
            let loss = (y * probe.as_tensor()).unwrap().sum_all().unwrap();
            loss.backward().unwrap()
        };
        let (a, b) = (grads(fused), grads(slow));
        for v in vars {
            assert_close(a.get(v).unwrap(), b.get(v).unwrap(), 1e-4, label);
        }
    }

    #[test]
    fn causal_softmax_and_its_gradient_equal_the_composed_form() {
        let (t, scale) = (5, 0.3);
        let x = var(&[2, 2 * t, t], 1);
        let fused = x
            .apply_op1(CausalSoftmax {
                scale: scale as f32,
            })
            .unwrap();
        let mask: Vec<f32> = (0..2 * t * t)
            .map(|i| if i % t > i / t % t { -1e9 } else { 0.0 })
            .collect();
        let mask = Tensor::from_vec(mask, (2 * t, t), &Device::Cpu).unwrap();
        let scores = (x.as_tensor() * scale).unwrap().broadcast_add(&mask);
        let slow = ops::softmax(&scores.unwrap(), D::Minus1).unwrap();
        assert_same(&fused, &slow, &[&x], "causal softmax");
    }

    #[test]
    fn rms_norm_and_its_gradients_equal_the_composed_form() {
        let (x, w) = (var(&[3, 4, 8], 2), var(&[8], 3));
        let fused = x.apply_op2(&w, RmsNorm { eps: 1e-5 }).unwrap();
        let slow = ops::rms_norm_slow(&x, &w, 1e-5).unwrap();
        assert_same(&fused, &slow, &[&x, &w], "rms norm");
    }

    #[test]
    fn rope_and_its_gradient_equal_the_composed_form() {
        let (t, d) = (7, 8);
        let x = var(&[2, 3, t, d], 4);
        let rope = Rope::new(d, 16, 1e4);
        let table = |f: fn(&(f32, f32)) -> f32| {
            let values: Vec<f32> = rope.turns[..t * d / 2].iter().map(f).collect();
            Tensor::from_vec(values, (t, d / 2), &Device::Cpu).unwrap()
        };
        let slow = rotary_emb::rope_slow(&x, &table(|p| p.0), &table(|p| p.1)).unwrap();
        assert_same(&x.apply_op1(rope).unwrap(), &slow, &[&x], "rope");
    }
}
