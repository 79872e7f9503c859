//! GGUF files, written here with candle and read by the engine.

mod common;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use common::gguf::{Metadata, write};
use common::{Shape, Tensors, assert_close, engine_logits, exact, oracle, text};
use etime_engine::store::Store;
use etime_engine::{LoadOptions, Model, RopeScaling};

#[test]
fn an_f32_gguf_file_gives_the_logits_of_its_safetensors_twin_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    for tied in [true, false] {
        let shape = Shape::llama(6, 2, 16, tied);
        write(&file, &shape, &shape.tensors(1), |_| GgmlDType::F32, |_| {});
        let mut model = Model::load(&file, exact()).unwrap();
        assert_eq!((model.config().tied, model.config().vocab), (tied, 97));
        assert_eq!(model.config().eos, [2]);
        let tokens = text(20, 97, 2);
        let wanted = engine_logits(&mut shape.model(1), &tokens, 20, 16);
        assert_eq!(engine_logits(&mut model, &tokens, 20, 16), wanted);
    }
}

#[test]
fn qwen2_and_qwen3_files_match_the_dense_cache_in_every_storage_that_keeps_its_bits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    for (architecture, head_dim, tied) in [("qwen2", 16, true), ("qwen3", 32, false)] {
        let mut shape = Shape::llama(4, 2, 16, tied);
        (shape.architecture, shape.head_dim, shape.ffn) = (architecture, head_dim, 96);
        let tokens = text(30, 97, 5);
        for stored in [GgmlDType::F32, GgmlDType::F16, GgmlDType::Q8_0] {
            let mut tensors = shape.tensors(9);
            write(&file, &shape, &tensors, |_| stored, |_| {});
            common::round(&mut tensors, stored);
            let mut model = Model::load(&file, LoadOptions::default()).unwrap();
            let seen = engine_logits(&mut model, &tokens, 7, 16);
            let wanted = oracle(&shape.config_json(), &tensors, &tokens);
            assert_close(&seen, &wanted, 1e-4, &format!("{architecture}, {stored:?}"));
            let mut dense = Model::load(&file, exact()).unwrap();
            assert_eq!(
                seen,
                engine_logits(&mut dense, &tokens, 7, 16),
                "{stored:?}"
            );
            assert!(model.weight_bytes() <= dense.weight_bytes());
        }
    }
}

#[test]
fn projections_of_different_storage_are_held_as_f32_and_others_as_q8_0() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let mut shape = Shape::llama(4, 2, 16, true);
    shape.ffn = 96;
    // Rows of 96 are `down` alone.
    let stored = |n_in| match n_in {
        96 => GgmlDType::Q4_1,
        _ => GgmlDType::F16,
    };
    write(&file, &shape, &shape.tensors(1), stored, |_| {});
    let model = Model::load(&file, LoadOptions::default()).unwrap();
    let held: Vec<String> = model
        .holdings()
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    assert_eq!(held, ["19 F16", "7 F32", "3 Q4_1 → Q8_0"]);
}

#[test]
fn quantised_blocks_are_read_as_their_dequantised_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let mut shape = Shape::llama(4, 2, 16, true);
    shape.ffn = 96;
    let mut tensors = shape.tensors(1);
    write(&file, &shape, &tensors, |_| GgmlDType::Q8_0, |_| {});
    common::round(&mut tensors, GgmlDType::Q8_0);
    let json = shape.config_json().to_string();
    let bytes = common::safetensors_bytes(&tensors);
    let mut twin = Model::from_bytes("twin", json.as_bytes(), &bytes, exact()).unwrap();
    let tokens = text(20, 97, 2);
    let seen = engine_logits(&mut Model::load(&file, exact()).unwrap(), &tokens, 20, 16);
    assert_eq!(seen, engine_logits(&mut twin, &tokens, 20, 16));
}

#[test]
fn stored_rope_divisors_and_linear_scaling_are_applied() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let shape = Shape::llama(4, 2, 16, true);
    let linear = |m: &mut Metadata| {
        m.push((
            "llama.rope.scaling.type".into(),
            Value::String("linear".into()),
        ));
        m.push(("llama.rope.scaling.factor".into(), Value::F32(4.0)));
    };
    write(&file, &shape, &shape.tensors(1), |_| GgmlDType::F32, linear);
    let mut model = Model::load(&file, exact()).unwrap();
    assert_eq!(
        model.config().rope_scaling,
        RopeScaling::Linear { factor: 4.0 }
    );
    let tokens = text(20, 97, 2);
    let scaled = engine_logits(&mut model, &tokens, 20, 16);
    assert_ne!(scaled, engine_logits(&mut shape.model(1), &tokens, 20, 16));

    let mut tensors = shape.tensors(1);
    tensors.insert("rope_freqs.weight".into(), (vec![8], vec![4.0; 8]));
    write(&file, &shape, &tensors, |_| GgmlDType::F32, |_| {});
    let mut model = Model::load(&file, exact()).unwrap();
    assert_eq!(engine_logits(&mut model, &tokens, 20, 16), scaled);
}

#[test]
fn a_gguf_file_that_cannot_be_served_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let shape = Shape::llama(4, 2, 16, true);
    let error = |change: fn(&mut Metadata), damage: fn(&mut Tensors), cut: fn(&mut Vec<u8>)| {
        let mut tensors = shape.tensors(1);
        damage(&mut tensors);
        write(&file, &shape, &tensors, |_| GgmlDType::F32, change);
        let mut bytes = std::fs::read(&file).unwrap();
        cut(&mut bytes);
        std::fs::write(&file, bytes).unwrap();
        Model::load(&file, exact()).unwrap_err().to_string()
    };
    let e = error(|m| m[0].1 = Value::String("falcon".into()), |_| (), |_| ());
    assert!(
        e.contains("\"falcon\" is not supported; supported: llama (mistral too), qwen2, qwen3"),
        "{e}"
    );
    let e = error(|m| m[1].1 = Value::String("wide".into()), |_| (), |_| ());
    assert!(e.contains("llama.embedding_length"), "{e}");
    let e = error(|m| drop(m.remove(7)), |_| (), |_| ());
    assert!(e.contains("llama.context_length is missing"), "{e}");
    let e = error(|m| m[2].1 = Value::U32(81), |_| (), |_| ());
    assert!(
        e.contains("blk.0.ffn_gate.weight has shape [80, 64], wanted [81, 64]"),
        "{e}"
    );
    let e = error(|_| (), |t| drop(t.remove("model.norm.weight")), |_| ());
    assert!(e.contains("output_norm.weight is missing"), "{e}");
    let e = error(|_| (), |_| (), |b| b.truncate(b.len() - 64));
    assert!(
        e.contains("tensor \"") && e.contains("truncated or damaged"),
        "{e}"
    );
    let e = error(|_| (), |_| (), |b| b.truncate(200));
    assert!(e.contains("not a whole GGUF file"), "{e}");
    let e = error(|_| (), |_| (), |b| b[0] = b'X');
    assert!(e.contains("not a GGUF file"), "{e}");
    let e = error(|_| (), |_| (), |b| b[8..16].fill(0xff));
    assert!(e.contains("the list of tensors"), "{e}");
}

#[test]
fn a_file_is_inspected_with_what_its_tensors_would_be_held_as() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let shape = Shape::llama(4, 2, 64, true);
    let stored = |n_in| match n_in {
        256 => GgmlDType::Q4K,
        _ => GgmlDType::F16,
    };
    let store = Store::at(folder.path());
    let inspect = || store.inspect(file.to_str().unwrap()).unwrap();
    write(&file, &shape, &shape.tensors(1), stored, |_| {});
    let seen = inspect();
    assert_eq!(seen.dtypes["Q4_K"], 19);
    assert_eq!(seen.held["Q4_K → Q8_0"], 19);
    assert_eq!(seen.unsupported, None);
    let model = Model::load(&file, LoadOptions::default()).unwrap();
    assert_eq!(&seen.held, model.holdings());

    let falcon = |m: &mut Metadata| m[0].1 = Value::String("falcon".into());
    write(&file, &shape, &shape.tensors(1), stored, falcon);
    let seen = inspect();
    assert!(seen.held.is_empty() && seen.tensors == 29);
    assert!(seen.unsupported.unwrap().contains("falcon"));
}
