//! How the numbers of a tensor are stored.

/// The types of ggml. Those that [`crate::quant`] can read are among them.
#[allow(non_camel_case_types)] // The names under which the formats are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TensorType {
    F32,
    F16,
    BF16,
    F64,
    I8,
    I16,
    I32,
    I64,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q8_1,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    Q8_K,
    IQ1_S,
    IQ1_M,
    IQ2_XXS,
    IQ2_XS,
    IQ2_S,
    IQ3_XXS,
    IQ3_S,
    IQ4_NL,
    IQ4_XS,
    TQ1_0,
    TQ2_0,
    MXFP4,
}

/// Elements that are stored together, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub elements: usize,
    pub bytes: usize,
}

impl TensorType {
    /// The type of a number in a file; the numbers that are missing belong to types that ggml has dropped.
    pub(super) fn of(id: u32) -> Option<Self> {
        use TensorType::*;
        Some(match id {
            0 => F32,
            1 => F16,
            2 => Q4_0,
            3 => Q4_1,
            6 => Q5_0,
            7 => Q5_1,
            8 => Q8_0,
            9 => Q8_1,
            10 => Q2_K,
            11 => Q3_K,
            12 => Q4_K,
            13 => Q5_K,
            14 => Q6_K,
            15 => Q8_K,
            16 => IQ2_XXS,
            17 => IQ2_XS,
            18 => IQ3_XXS,
            19 => IQ1_S,
            20 => IQ4_NL,
            21 => IQ3_S,
            22 => IQ2_S,
            23 => IQ4_XS,
            24 => I8,
            25 => I16,
            26 => I32,
            27 => I64,
            28 => F64,
            29 => IQ1_M,
            30 => BF16,
            34 => TQ1_0,
            35 => TQ2_0,
            39 => MXFP4,
            _ => return None,
        })
    }

    pub fn block(self) -> Block {
        use TensorType::*;
        let (elements, bytes) = match self {
            I8 => (1, 1),
            F16 | BF16 | I16 => (1, 2),
            F32 | I32 => (1, 4),
            F64 | I64 => (1, 8),
            MXFP4 => (32, 17),
            Q4_0 | IQ4_NL => (32, 18),
            Q4_1 => (32, 20),
            Q5_0 => (32, 22),
            Q5_1 => (32, 24),
            Q8_0 => (32, 34),
            Q8_1 => (32, 36),
            IQ1_S => (256, 50),
            TQ1_0 => (256, 54),
            IQ1_M => (256, 56),
            IQ2_XXS | TQ2_0 => (256, 66),
            IQ2_XS => (256, 74),
            IQ2_S => (256, 82),
            Q2_K => (256, 84),
            IQ3_XXS => (256, 98),
            Q3_K | IQ3_S => (256, 110),
            IQ4_XS => (256, 136),
            Q4_K => (256, 144),
            Q5_K => (256, 176),
            Q6_K => (256, 210),
            Q8_K => (256, 292),
        };
        Block { elements, bytes }
    }
}
