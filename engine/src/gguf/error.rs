use std::path::PathBuf;

/// What a GGUF file may be refused for.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("{}: {source}", file.display())]
    Read {
        file: PathBuf,
        source: std::io::Error,
    },
    /// Fewer bytes are left than a length in the file asks for.
    #[error(
        "{}: not a whole GGUF file: {what} at byte {at_bytes} needs {wanted_bytes} bytes, {left_bytes} are left: truncated or damaged",
        file.display()
    )]
    Short {
        file: PathBuf,
        what: String,
        at_bytes: u64,
        /// As text: it may exceed 64 bits.
        wanted_bytes: String,
        left_bytes: u64,
    },
    /// A value that the format does not allow.
    #[error("{}: {what} is {seen}, allowed: {allowed}", file.display())]
    Value {
        file: PathBuf,
        /// The header's field, the key or the tensor.
        what: String,
        seen: String,
        allowed: String,
    },
}
