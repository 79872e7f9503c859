//! Reading checkpoints: what is accepted, and what is refused with which words.

mod common;

use std::fs;
use std::path::Path;

use common::{Shape, Tensors, engine_logits, safetensors_bytes, text};
use etime_engine::{Device, LoadOptions, Model, ModelConfig, RopeScaling};
use serde_json::{Value, json};

fn shape() -> Shape {
    Shape::llama(4, 2, 16, false)
}

fn load(config: &Value, weights: &[u8]) -> Result<Model, String> {
    Model::from_bytes(
        "test",
        config.to_string().as_bytes(),
        weights,
        LoadOptions::default(),
    )
    .map_err(|e| e.to_string())
}

fn config_error(change: impl Fn(&mut Value)) -> String {
    let mut config = shape().config_json();
    change(&mut config);
    let parsed = ModelConfig::from_hf_json(config.to_string().as_bytes(), Path::new("config.json"));
    parsed.unwrap_err().to_string()
}

fn weights_error(change: impl Fn(&mut Tensors)) -> String {
    let mut tensors = shape().tensors(1);
    change(&mut tensors);
    load(&shape().config_json(), &safetensors_bytes(&tensors)).unwrap_err()
}

fn write_directory(directory: &Path, config: &Value) {
    fs::write(directory.join("config.json"), config.to_string()).unwrap();
}

#[test]
fn a_directory_whole_or_sharded_gives_the_logits_of_the_bytes() {
    let tokens = text(10, 97, 1);
    let wanted = engine_logits(&mut shape().model(1), &tokens, 10, 16);
    let whole = tempfile::tempdir().unwrap();
    write_directory(whole.path(), &shape().config_json());
    fs::write(
        whole.path().join("model.safetensors"),
        safetensors_bytes(&shape().tensors(1)),
    )
    .unwrap();
    let mut model = Model::load(whole.path(), LoadOptions::default()).unwrap();
    assert_eq!(engine_logits(&mut model, &tokens, 10, 16), wanted);

    let sharded = tempfile::tempdir().unwrap();
    write_directory(sharded.path(), &shape().config_json());
    let (mut shards, mut map) = ([Tensors::new(), Tensors::new()], serde_json::Map::new());
    for (i, (name, tensor)) in shape().tensors(1).into_iter().enumerate() {
        map.insert(name.clone(), json!(format!("shard-{}.safetensors", i % 2)));
        shards[i % 2].insert(name, tensor);
    }
    for (i, shard) in shards.iter().enumerate() {
        fs::write(
            sharded.path().join(format!("shard-{i}.safetensors")),
            safetensors_bytes(shard),
        )
        .unwrap();
    }
    let index = json!({ "metadata": {}, "weight_map": map });
    fs::write(
        sharded.path().join("model.safetensors.index.json"),
        index.to_string(),
    )
    .unwrap();
    let mut model = Model::load(sharded.path(), LoadOptions::default()).unwrap();
    assert_eq!(engine_logits(&mut model, &tokens, 10, 16), wanted);

    fs::remove_file(sharded.path().join("shard-1.safetensors")).unwrap();
    let error = Model::load(sharded.path(), LoadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("shard-1.safetensors"), "{error}");
}

#[test]
fn half_precision_weights_load_as_their_exact_f32_values() {
    let shape = shape();
    let exact = |x: f32| f32::from_bits(x.to_bits() & 0xffff_0000);
    let mut tensors = shape.tensors(1);
    tensors
        .values_mut()
        .for_each(|(_, values)| values.iter_mut().for_each(|x| *x = exact(*x)));
    let wide = safetensors_bytes(&tensors);
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, (shape, values))| {
            let narrow = values
                .iter()
                .flat_map(|x| ((x.to_bits() >> 16) as u16).to_le_bytes())
                .collect();
            (name.clone(), shape.clone(), narrow)
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, data)| {
        let view =
            safetensors::tensor::TensorView::new(safetensors::Dtype::BF16, shape.clone(), data);
        (name.clone(), view.unwrap())
    });
    let narrow = safetensors::serialize(views, None).unwrap();
    let tokens = text(6, 97, 1);
    let run = |weights: &[u8]| {
        engine_logits(
            &mut load(&shape.config_json(), weights).unwrap(),
            &tokens,
            6,
            16,
        )
    };
    assert_eq!(run(&narrow), run(&wide));
}

#[test]
fn a_configuration_is_read_with_its_defaults_and_both_spellings_of_rope() {
    let mut config = shape().config_json();
    config["rope_scaling"] = json!({ "type": "linear", "factor": 2.0 });
    let parse =
        |c: &Value| ModelConfig::from_hf_json(c.to_string().as_bytes(), Path::new("c")).unwrap();
    let parsed = parse(&config);
    assert_eq!(parsed.rope_scaling, RopeScaling::Linear { factor: 2.0 });
    assert_eq!((parsed.bos, parsed.eos.as_slice()), (Some(1), &[2, 3][..]));
    assert!((parsed.inv_freq()[1] - 0.5 * 10_000f32.powf(-2.0 / 16.0)).abs() < 1e-7);
    let fields = config.as_object_mut().unwrap();
    for absent in [
        "rope_scaling",
        "rope_theta",
        "num_key_value_heads",
        "head_dim",
        "tie_word_embeddings",
    ] {
        fields.remove(absent);
    }
    fields.insert(
        "rope_parameters".into(),
        json!({ "rope_type": "default", "rope_theta": 5e5 }),
    );
    fields.insert("eos_token_id".into(), json!(7));
    let parsed = parse(&config);
    assert_eq!(
        (
            parsed.rope_theta,
            parsed.n_kv_heads,
            parsed.head_dim,
            parsed.tied
        ),
        (5e5, 4, 16, false)
    );
    assert_eq!(
        (parsed.rope_scaling, parsed.eos),
        (RopeScaling::None, vec![7])
    );
}

#[test]
fn a_configuration_that_cannot_be_served_names_the_field_the_value_and_what_is_allowed() {
    let error = config_error(|c| c["model_type"] = json!("gpt_neox"));
    assert!(
        error.contains("\"gpt_neox\"") && error.contains("llama, mistral, qwen2, qwen3"),
        "{error}"
    );
    let error = config_error(|c| c["rope_scaling"] = json!({ "rope_type": "yarn", "factor": 2.0 }));
    assert!(
        error.contains("rope_type is yarn") && error.contains("llama3"),
        "{error}"
    );
    let error = config_error(|c| {
        c["use_sliding_window"] = json!(true);
        c["sliding_window"] = json!(64);
    });
    assert!(
        error.contains("sliding_window is 64") && error.contains("128"),
        "{error}"
    );
    let error = config_error(|c| c["num_key_value_heads"] = json!(3));
    assert!(error.contains("key-value head count is 3"), "{error}");
    let error = config_error(|c| c["head_dim"] = json!(15));
    assert!(error.contains("head size is 15"), "{error}");
    let error = config_error(|c| c["hidden_act"] = json!("gelu"));
    assert!(error.contains("hidden_act is gelu"), "{error}");
    let error = config_error(|c| c["vocab_size"] = Value::Null);
    assert!(error.contains("vocab_size is missing"), "{error}");
    let error = config_error(|c| c["hidden_size"] = json!("wide"));
    assert!(
        error.contains("config.json: hidden_size: invalid type"),
        "{error}"
    );
    let error = config_error(|c| c["attention_bias"] = json!(true));
    assert!(error.contains("attention_bias is true"), "{error}");
    let error = config_error(|c| c["eos_token_id"] = json!("end"));
    assert!(error.contains("eos_token_id"), "{error}");
}

#[test]
fn weights_that_do_not_fit_the_configuration_name_file_tensor_and_shapes() {
    let name = "model.layers.1.mlp.up_proj.weight";
    let error = weights_error(|t| drop(t.remove(name)));
    assert!(
        error.contains("test/model.safetensors")
            && error.contains(name)
            && error.contains("missing"),
        "{error}"
    );
    let error = weights_error(|t| t.get_mut(name).unwrap().0 = vec![64, 80]);
    assert!(
        error.contains("has shape [64, 80], wanted [80, 64]"),
        "{error}"
    );
    let error = weights_error(|t| {
        t.insert(
            "model.layers.0.self_attn.q_proj.bias".into(),
            (vec![2], vec![0.0; 2]),
        );
    });
    assert!(error.contains("q_proj.bias has no place"), "{error}");
}

#[test]
fn damaged_files_are_refused_before_anything_is_allocated() {
    let config = shape().config_json();
    let good = safetensors_bytes(&shape().tensors(1));
    let error = load(&config, &good[..good.len() - 4]).unwrap_err();
    assert!(error.contains("truncated or damaged"), "{error}");
    let error = load(&config, &good[..100]).unwrap_err();
    assert!(error.contains("header of"), "{error}");
    let error = load(&config, &[]).unwrap_err();
    assert!(error.contains("too short"), "{error}");
    let mut huge = good.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(
        load(&config, &huge)
            .unwrap_err()
            .contains("not a safetensors file")
    );
    let mut scrambled = good.clone();
    scrambled[8..40].fill(b'x');
    assert!(
        load(&config, &scrambled)
            .unwrap_err()
            .contains("header cannot be read")
    );
    let mut vast = config.clone();
    vast["vocab_size"] = json!(4_000_000_000u64);
    assert!(
        load(&vast, &good)
            .unwrap_err()
            .contains("wanted [4000000000, 64]")
    );
}

#[test]
fn a_device_that_is_not_in_the_build_is_an_error() {
    let cuda = LoadOptions {
        device: Device::Cuda,
        ..LoadOptions::default()
    };
    let error = Model::load(Path::new("nowhere"), cuda)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("device cuda is not in this build"),
        "{error}"
    );
    let error = Model::load(Path::new("nowhere"), LoadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("nowhere"), "{error}");
}
