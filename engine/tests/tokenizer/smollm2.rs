use etime_engine::gguf::Gguf;
use etime_engine::store::{ModelFiles, Store, StoreError};
use etime_engine::tokenizer::Tokenizer;

use crate::strings::STRINGS;

/// Ids by an independent pipeline: the `tokenizers` package for Python 0.23.3, with
/// `Digits(individual_digits=True)`, then `ByteLevel(add_prefix_space=False)`.
const IDS: [(&str, &[u32]); 5] = [
    ("Gravity is", &[22007, 6463, 314]),
    (
        "x=007;y=1e-9",
        &[104, 45, 32, 32, 39, 43, 105, 45, 33, 85, 29, 41],
    ),
    (
        "  \n  indented\n\n    more\n",
        &[256, 3805, 641, 6574, 1004, 540, 198],
    ),
    (
        "😀😃😄 three grins",
        &[
            10813, 242, 218, 10813, 242, 221, 10813, 242, 222, 1296, 1665, 927,
        ],
    ),
    (
        "<|im_start|>user\nHello there!<|im_end|>\n",
        &[1, 4093, 198, 19556, 665, 17, 2, 198],
    ),
];

fn tokenizer() -> Option<Tokenizer> {
    let path = match Store::from_env().resolve("smollm2") {
        Ok(source) => match source.files {
            ModelFiles::Gguf(path) => path,
            files => panic!("{files:?}"),
        },
        Err(StoreError::Absent { .. } | StoreError::NoHome) => {
            println!("skipped: smollm2 is absent; `etime model pull smollm2` fetches it");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let gguf = Gguf::open(&path).unwrap();
    Some(Tokenizer::from_gguf(&gguf.metadata).unwrap())
}

#[test]
fn smollm2_ids_are_those_of_an_independent_pipeline() {
    let Some(tokenizer) = tokenizer() else { return };
    for (text, ids) in IDS {
        assert_eq!(tokenizer.encode(text).unwrap(), ids, "{text:?}");
    }
}

#[test]
fn smollm2_round_trips_fifty_strings_whole_and_streamed() {
    let Some(tokenizer) = tokenizer() else { return };
    for s in STRINGS {
        let ids = tokenizer.encode(s).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), s);
        let mut stream = tokenizer.text_stream();
        let pieces: Vec<String> = ids.iter().map(|&id| stream.push(id).unwrap()).collect();
        assert_eq!(pieces.concat(), s);
        assert!(!pieces.iter().any(|p| p.contains('\u{fffd}')));
    }
}

#[test]
fn smollm2_names_its_ends_and_fits_its_vocabulary() {
    let Some(tokenizer) = tokenizer() else { return };
    assert_eq!(tokenizer.vocab_size(), 49_152);
    assert_eq!(tokenizer.bos_id(), Some(1));
    assert_eq!(tokenizer.eos_ids(), [2]);
    assert_eq!(tokenizer.special_ids(), (0..17).collect::<Vec<u32>>());
    assert!(tokenizer.check_against(49_152).is_ok());
    assert!(tokenizer.check_against(512).is_err());
    assert!(tokenizer.encode("\u{4}").is_err());
}
