//! Every stored type against candle's reading of the same bytes.

mod common;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{DType, Device, Tensor};
use common::Random;
use etime_engine::gguf::TensorType;
use etime_engine::quant::{dequantise, quantise_q8_0, repack_q8_0};
use etime_kernels::cpu::{Q8_BLOCK_BYTES, f16_to_f32, f32_to_f16};

const TYPES: [(TensorType, GgmlDType); 11] = [
    (TensorType::F32, GgmlDType::F32),
    (TensorType::F16, GgmlDType::F16),
    (TensorType::BF16, GgmlDType::BF16),
    (TensorType::Q4_0, GgmlDType::Q4_0),
    (TensorType::Q4_1, GgmlDType::Q4_1),
    (TensorType::Q5_0, GgmlDType::Q5_0),
    (TensorType::Q5_1, GgmlDType::Q5_1),
    (TensorType::Q8_0, GgmlDType::Q8_0),
    (TensorType::Q4_K, GgmlDType::Q4K),
    (TensorType::Q5_K, GgmlDType::Q5K),
    (TensorType::Q6_K, GgmlDType::Q6K),
];
const ELEMENTS: usize = 64 * 256;

fn candle(bytes: &[u8], stored: GgmlDType) -> Vec<f32> {
    let storage = QStorage::from_data(bytes.into(), &Device::Cpu, stored).unwrap();
    let tensor = QTensor::new(storage, (ELEMENTS,)).unwrap();
    tensor.dequantize(&Device::Cpu).unwrap().to_vec1().unwrap()
}

#[test]
fn every_type_is_read_as_candle_reads_it_to_the_bit() {
    for (ours, theirs) in TYPES {
        let block = ours.block();
        assert_eq!(block.elements, theirs.block_size(), "{ours:?}");
        assert_eq!(block.bytes, theirs.type_size(), "{ours:?}");
        // Random bytes reach every bit pattern of scales and quants, also those that no quantiser writes.
        let mut random = Random(11);
        let n_bytes = ELEMENTS / block.elements * block.bytes;
        let bytes: Vec<u8> = (0..n_bytes).map(|_| random.next() as u8).collect();
        let seen = dequantise(ours, &bytes).unwrap();
        let wanted = candle(&bytes, theirs);
        assert_eq!(seen.len(), ELEMENTS);
        let mut finite = 0;
        for (i, (a, b)) in seen.iter().zip(&wanted).enumerate() {
            let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            assert!(same, "{ours:?}, element {i}: {a} is not {b}");
            finite += usize::from(a.is_finite());
        }
        assert!(finite > ELEMENTS / 2, "{ours:?}: only {finite} numbers");
    }
}

#[test]
fn half_precision_is_rounded_as_the_half_crate_rounds_it() {
    let mut random = Random(3);
    let bits: Vec<f32> = (0..200_000)
        .map(|_| f32::from_bits(random.next() as u32))
        .filter(|x| !x.is_nan())
        .collect();
    let tensor = Tensor::from_slice(&bits, bits.len(), &Device::Cpu).unwrap();
    let there = tensor.to_dtype(DType::F16).unwrap();
    let wanted: Vec<f32> = there.to_dtype(DType::F32).unwrap().to_vec1().unwrap();
    for (x, wanted) in bits.iter().zip(wanted) {
        assert_eq!(
            f16_to_f32(f32_to_f16(*x)).to_bits(),
            wanted.to_bits(),
            "{x}"
        );
    }
}

#[test]
fn repacking_moves_no_element_by_more_than_half_a_step() {
    for gain in [1e-3_f32, 0.05, 1.0, 300.0] {
        let values: Vec<f32> = Random(7)
            .vector(ELEMENTS)
            .iter()
            .map(|x| gain * x)
            .collect();
        let packed = quantise_q8_0(&values);
        let read = dequantise(TensorType::Q8_0, &packed).unwrap();
        let blocks = packed
            .chunks(Q8_BLOCK_BYTES)
            .zip(values.chunks(32))
            .zip(read.chunks(32));
        for ((block, values), read) in blocks {
            let scale = f16_to_f32(u16::from_le_bytes([block[0], block[1]]));
            // 127 · 2^−25 where the scale is a subnormal f16.
            let bound = 0.5 * scale * 1.001 + 3.8e-6;
            for (x, y) in values.iter().zip(read) {
                assert!((x - y).abs() <= bound, "{x} became {y}, step {scale}");
            }
        }
    }
}

#[test]
fn every_quantised_type_repacks_to_the_q8_0_of_its_elements() {
    for (stored, _) in TYPES {
        let block = stored.block();
        let mut bytes = vec![0; 4 * block.bytes];
        let mut random = Random(5);
        bytes.fill_with(|| random.next() as u8 & 0x3f);
        let packed = repack_q8_0(stored, &bytes);
        if block.elements == 1 {
            assert_eq!(packed, None, "{stored:?}");
            continue;
        }
        let elements = dequantise(stored, &bytes).unwrap();
        assert_eq!(packed, Some(quantise_q8_0(&elements)), "{stored:?}");
    }
    assert_eq!(dequantise(TensorType::Q2_K, &[0; 84]), None);
    assert_eq!(repack_q8_0(TensorType::Q2_K, &[0; 84]), None);
}
