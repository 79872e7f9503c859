//! SmolLM2-135M-Instruct from its GGUF file, where it has been pulled.

mod common;

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::OnceLock;

use candle_core::quantized::gguf_file::Content;
use candle_core::{DType, Device as CandleDevice, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama;
use common::{assert_close, engine_logits, exact, text};
use etime_engine::store::{ModelFiles, Store};
use etime_engine::{KvPool, Model, SeqStep, Wanted};

/// "Gravity is"
const PROMPT: [u32; 3] = [22007, 6463, 314];
const LAYERS: usize = 30;
const HEADS: usize = 9;
const KV_HEADS: usize = 3;
const HIDDEN: usize = 576;

/// The file, or `None` where it was not pulled and nothing demands it.
fn file() -> Option<&'static PathBuf> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || match Store::from_env()
        .resolve("smollm2")
        .map(|source| source.files)
    {
        Ok(ModelFiles::Gguf(file)) => Some(file),
        Ok(other) => panic!("smollm2 is not one GGUF file: {other:?}"),
        Err(error) => {
            let required = std::env::var("ETIME_REQUIRE_SMOLLM2").is_ok_and(|v| v == "1");
            assert!(!required, "smollm2 is required: {error}");
            eprintln!("smollm2 tests skipped: {error}");
            None
        }
    };
    FILE.get_or_init(find).as_ref()
}

/// candle-transformers' llama on the dequantised tensors, rotary rows put in half-split order by tensor operations.
fn oracle(tokens: &[u32]) -> Vec<Vec<f32>> {
    let mut reader = File::open(file().unwrap()).unwrap();
    let content = Content::read(&mut reader).unwrap();
    let mut get = |name: &str| {
        let tensor = content
            .tensor(&mut reader, name, &CandleDevice::Cpu)
            .unwrap();
        tensor.dequantize(&CandleDevice::Cpu).unwrap()
    };
    let mut tensors = HashMap::from([
        (
            "model.embed_tokens.weight".to_string(),
            get("token_embd.weight"),
        ),
        ("model.norm.weight".into(), get("output_norm.weight")),
    ]);
    let half_split = |t: Tensor, heads: usize| {
        let split = t
            .reshape((heads, 32, 2, HIDDEN))
            .unwrap()
            .transpose(1, 2)
            .unwrap();
        split
            .reshape((heads * 64, HIDDEN))
            .unwrap()
            .contiguous()
            .unwrap()
    };
    for layer in 0..LAYERS {
        let names = [
            ("input_layernorm", "attn_norm"),
            ("post_attention_layernorm", "ffn_norm"),
            ("self_attn.v_proj", "attn_v"),
            ("self_attn.o_proj", "attn_output"),
            ("mlp.gate_proj", "ffn_gate"),
            ("mlp.up_proj", "ffn_up"),
            ("mlp.down_proj", "ffn_down"),
        ];
        for (to, from) in names {
            tensors.insert(
                format!("model.layers.{layer}.{to}.weight"),
                get(&format!("blk.{layer}.{from}.weight")),
            );
        }
        let q = half_split(get(&format!("blk.{layer}.attn_q.weight")), HEADS);
        let k = half_split(get(&format!("blk.{layer}.attn_k.weight")), KV_HEADS);
        tensors.insert(format!("model.layers.{layer}.self_attn.q_proj.weight"), q);
        tensors.insert(format!("model.layers.{layer}.self_attn.k_proj.weight"), k);
    }
    let config = llama::Config {
        hidden_size: HIDDEN,
        intermediate_size: 1536,
        vocab_size: 49152,
        num_hidden_layers: LAYERS,
        num_attention_heads: HEADS,
        num_key_value_heads: KV_HEADS,
        use_flash_attn: false,
        rms_norm_eps: 1e-5,
        rope_theta: 1e5,
        bos_token_id: None,
        eos_token_id: None,
        rope_scaling: None,
        max_position_embeddings: 256,
        tie_word_embeddings: true,
    };
    let vb = VarBuilder::from_tensors(tensors, DType::F32, &CandleDevice::Cpu);
    let mut cache = llama::Cache::new(true, DType::F32, &config, &CandleDevice::Cpu).unwrap();
    let model = llama::Llama::load(vb, &config).unwrap();
    let logits = |(i, &t): (usize, &u32)| {
        let input = Tensor::new(&[[t]], &CandleDevice::Cpu).unwrap();
        model
            .forward(&input, i, &mut cache)
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap()
    };
    tokens.iter().enumerate().map(logits).collect()
}

#[test]
fn gravity_is_gives_the_top_five_logits_of_an_f64_evaluation() {
    let Some(file) = file() else { return };
    let mut model = Model::load(file, exact()).unwrap();
    let logits = engine_logits(&mut model, &PROMPT, 3, 16).pop().unwrap();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    // The dequantised weights in f64 arithmetic, by a script that shares no code with the engine.
    let wanted = [
        (253, 23.97502),
        (260, 22.98688),
        (441, 21.75113),
        (1129, 21.65869),
        (4959, 21.48686),
    ];
    for (&seen, (token, logit)) in order.iter().zip(wanted) {
        assert_eq!(seen, token);
        let difference = (logits[seen] - logit).abs();
        assert!(
            difference < 1e-4,
            "{token}: {} is not {logit}",
            logits[seen]
        );
    }
}

#[test]
fn smollm2_matches_the_dense_cache_of_its_dequantised_weights() {
    let Some(file) = file() else { return };
    let mut model = Model::load(file, exact()).unwrap();
    let tokens = [&PROMPT[..], &text(37, 49152, 3)].concat();
    let seen = engine_logits(&mut model, &tokens, 17, 16);
    assert_close(&seen, &oracle(&tokens), 1e-4, "smollm2");
}

#[test]
fn smollm2_in_chunks_and_among_seven_others_is_bit_equal_to_itself_alone() {
    let Some(file) = file() else { return };
    let mut model = Model::load(file, exact()).unwrap();
    let texts: Vec<Vec<u32>> = (0..8).map(|s| text(33, 49152, s)).collect();
    let whole = engine_logits(&mut model, &texts[0], 33, 16);
    for chunk in [1, 3, 15, 16, 17] {
        assert!(
            engine_logits(&mut model, &texts[0], chunk, 16) == whole,
            "chunk {chunk}"
        );
    }
    let mut kv = KvPool::new(model.config(), 24, 16).unwrap();
    let tables: Vec<[u32; 3]> = (0..8).map(|s| [s, s + 8, s + 16]).collect();
    let steps = texts.iter().zip(&tables).map(|(tokens, blocks)| SeqStep {
        tokens,
        start_tok: 0,
        blocks,
        kept: None,
        logits: Wanted::Last,
    });
    let together = model.forward(&mut kv, &steps.collect::<Vec<_>>()).unwrap();
    assert!(together.logits[..49152] == *whole[32]);
}
