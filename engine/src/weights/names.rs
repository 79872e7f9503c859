//! What each tensor is called in the two file formats.

use crate::config::ModelConfig;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerPart {
    AttnNorm,
    Q,
    K,
    V,
    QBias,
    KBias,
    VBias,
    QNorm,
    KNorm,
    AttnOut,
    FfnNorm,
    Gate,
    Up,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Embed,
    Norm,
    Head,
    Layer(usize, LayerPart),
}

impl Part {
    /// The matrices that are stacked with this one, itself among them; none for a vector.
    pub(crate) fn stack(self) -> Vec<Part> {
        use LayerPart::*;
        let (layer, parts): (usize, &[LayerPart]) = match self {
            Part::Norm => return vec![],
            Part::Embed | Part::Head => return vec![self],
            Part::Layer(layer, Q | K | V) => (layer, &[Q, K, V]),
            Part::Layer(layer, Gate | Up) => (layer, &[Gate, Up]),
            Part::Layer(_, AttnOut | Down) => return vec![self],
            Part::Layer(..) => return vec![],
        };
        let in_layer = |&part| Part::Layer(layer, part);
        parts.iter().map(in_layer).collect()
    }

    /// Name in Hugging Face checkpoints.
    pub(crate) fn hf_name(self) -> String {
        use LayerPart::*;
        let (layer, part) = match self {
            Part::Embed => return "model.embed_tokens.weight".into(),
            Part::Norm => return "model.norm.weight".into(),
            Part::Head => return "lm_head.weight".into(),
            Part::Layer(layer, part) => (layer, part),
        };
        let part = match part {
            AttnNorm => "input_layernorm.weight",
            Q => "self_attn.q_proj.weight",
            K => "self_attn.k_proj.weight",
            V => "self_attn.v_proj.weight",
            QBias => "self_attn.q_proj.bias",
            KBias => "self_attn.k_proj.bias",
            VBias => "self_attn.v_proj.bias",
            QNorm => "self_attn.q_norm.weight",
            KNorm => "self_attn.k_norm.weight",
            AttnOut => "self_attn.o_proj.weight",
            FfnNorm => "post_attention_layernorm.weight",
            Gate => "mlp.gate_proj.weight",
            Up => "mlp.up_proj.weight",
            Down => "mlp.down_proj.weight",
        };
        format!("model.layers.{layer}.{part}")
    }

    /// Name in GGUF files.
    pub(crate) fn gguf_name(self) -> String {
        use LayerPart::*;
        let (layer, part) = match self {
            Part::Embed => return "token_embd.weight".into(),
            Part::Norm => return "output_norm.weight".into(),
            Part::Head => return "output.weight".into(),
            Part::Layer(layer, part) => (layer, part),
        };
        let part = match part {
            AttnNorm => "attn_norm.weight",
            Q => "attn_q.weight",
            K => "attn_k.weight",
            V => "attn_v.weight",
            QBias => "attn_q.bias",
            KBias => "attn_k.bias",
            VBias => "attn_v.bias",
            QNorm => "attn_q_norm.weight",
            KNorm => "attn_k_norm.weight",
            AttnOut => "attn_output.weight",
            FfnNorm => "ffn_norm.weight",
            Gate => "ffn_gate.weight",
            Up => "ffn_up.weight",
            Down => "ffn_down.weight",
        };
        format!("blk.{layer}.{part}")
    }
}

/// Every tensor of a model with this configuration.
pub(crate) fn parts(config: &ModelConfig) -> impl Iterator<Item = Part> {
    use LayerPart::*;
    let mut in_layer = vec![AttnNorm, Q, K, V, AttnOut, FfnNorm, Gate, Up, Down];
    if config.qkv_bias {
        in_layer.extend([QBias, KBias, VBias]);
    }
    if config.qk_norm {
        in_layer.extend([QNorm, KNorm]);
    }
    let head = (!config.tied).then_some(Part::Head);
    let whole = [Part::Embed, Part::Norm].into_iter().chain(head);
    let layers = (0..config.n_layers).flat_map(move |layer| {
        let in_layer = in_layer.clone();
        in_layer
            .into_iter()
            .map(move |part| Part::Layer(layer, part))
    });
    whole.chain(layers)
}
