//! The KV cache: one pool of blocks per layer, in our own buffers.

use etime_kernels::KvShape;

use crate::config::ModelConfig;
use crate::error::ModelError;

/// Keys and values of every layer in blocks of `block_tok` tokens. A physical block number means the same block in
/// each layer. Layout as [`KvShape`] says.
#[derive(Debug)]
pub struct KvPool {
    shape: KvShape,
    /// Per layer: keys, values.
    pub(crate) layers: Vec<(Vec<f32>, Vec<f32>)>,
}

impl KvPool {
    /// A pool for `config`, all slots unused.
    pub fn new(
        config: &ModelConfig,
        n_blocks: usize,
        block_tok: usize,
    ) -> Result<Self, ModelError> {
        let shape = KvShape {
            n_blocks,
            block_tok,
            n_kv_heads: config.n_kv_heads,
            head_dim: config.head_dim,
        };
        let exact = n_blocks as u128 * block_tok as u128 * config.kv_bytes_per_tok() as u128;
        let refused = || ModelError::KvMemory {
            n_blocks,
            block_tok,
            bytes: exact.to_string(),
        };
        // Slots are numbered in u32, as block tables are.
        let slots = n_blocks
            .checked_mul(block_tok)
            .filter(|&n| u32::try_from(n).is_ok());
        if slots.is_none_or(|n| n == 0) {
            return Err(refused());
        }
        // Ask for it all at once and give it back: a failing `vec!` would end the process.
        let bytes = usize::try_from(exact).map_err(|_| refused())?;
        Vec::<u8>::new()
            .try_reserve_exact(bytes)
            .map_err(|_| refused())?;
        let elements = shape.elements()?;
        let layers = (0..config.n_layers)
            .map(|_| (vec![0.0; elements], vec![0.0; elements]))
            .collect();
        Ok(Self { shape, layers })
    }

    pub fn shape(&self) -> &KvShape {
        &self.shape
    }

    pub fn bytes(&self) -> u64 {
        let elements: usize = self.layers.iter().map(|(k, v)| k.len() + v.len()).sum();
        (elements * size_of::<f32>()) as u64
    }
}
