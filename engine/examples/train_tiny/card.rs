//! The model card: what was trained, on what, how, and how good it is on text it has not seen.

use std::fmt::Write;

use crate::bigram::Smoothing;
use crate::fit::{LONG_EVERY, LONG_TOK, SHORT_TOK};
use crate::net::Config;

pub struct Card<'a> {
    pub config: &'a Config,
    pub text_name: &'a str,
    pub text_sha256: &'a str,
    pub text_bytes: usize,
    pub split_tok: [usize; 3],
    pub seed: u64,
    pub steps: usize,
    pub step_tok: usize,
    pub best_step: usize,
    pub train_seconds: f64,
    pub command: &'a str,
    pub dev_nats: f64,
    pub test_nats: f64,
    pub test_nats_per_char: f64,
    pub test_tok: usize,
    pub bigram_dev_nats: f64,
    pub bigram_test_nats: f64,
    pub smoothing: Smoothing,
    pub sample_temperature: f64,
    pub sample_prompt: &'a str,
    pub sample: &'a str,
}

impl Card<'_> {
    pub fn markdown(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        self.model(&mut out)?;
        self.training(&mut out)?;
        self.quality(&mut out)?;
        self.sample(&mut out)?;
        Ok(out)
    }

    fn model(&self, out: &mut String) -> std::fmt::Result {
        let c = self.config;
        writeln!(out, "# tiny\n")?;
        writeln!(
            out,
            "A llama-architecture language model of {} parameters, trained by this project from scratch. It is the\n\
             default plant: small enough to ship, trained enough that its entropy moves as a language model's does.\n\
             It writes mock Shakespeare and knows nothing else.\n",
            c.parameters()
        )?;
        writeln!(out, "| | |\n|---|---|")?;
        writeln!(
            out,
            "| layers, hidden, feed-forward | {}, {}, {} |",
            c.num_hidden_layers, c.hidden_size, c.intermediate_size
        )?;
        writeln!(
            out,
            "| query heads, KV heads, head size | {}, {}, {} |",
            c.num_attention_heads, c.num_key_value_heads, c.head_dim
        )?;
        writeln!(
            out,
            "| vocabulary | {}: byte-level BPE, one special token `<|endoftext|>` (id {}: bos and eos), 256 bytes, {} merges |",
            c.vocab_size,
            c.bos_token_id,
            c.vocab_size - 257
        )?;
        writeln!(
            out,
            "| context | {} positions, all of them trained |",
            c.max_position_embeddings
        )?;
        writeln!(
            out,
            "| details | RMSNorm {:e}, RoPE θ = {} (half-split order), SwiGLU, tied embeddings, F32 |\n",
            c.rms_norm_eps, c.rope_theta
        )
    }

    fn training(&self, out: &mut String) -> std::fmt::Result {
        let [train, dev, test] = self.split_tok;
        writeln!(out, "## Training\n")?;
        writeln!(
            out,
            "Text: `{}` ({} bytes, sha256 `{}`), works of William Shakespeare, in the public domain; the text is not\n\
             part of this repository. Split by position 90 / 5 / 5 % at blank lines: {train} train, {dev} dev, {test} test\n\
             tokens. The tokenizer and the model have seen the train part only; dev chose the step to keep and the\n\
             baseline's smoothing; test was scored once, at the end.\n",
            self.text_name, self.text_bytes, self.text_sha256
        )?;
        writeln!(
            out,
            "Windows of {SHORT_TOK} tokens, every {LONG_EVERY}th step of {LONG_TOK}. Half of them open with `<|endoftext|>` in place of their first\n\
             token, so a prompt works with it or without. It is never a target: the model does not end its text.\n"
        )?;
        writeln!(
            out,
            "Muon for the matrices, AdamW for embedding and norms; warm-up and cosine decay, gradients clipped to norm 1, dropout. {} steps of {} tokens, seed {}, {:.0} s on\n\
             2 shared CPU cores; the weights are those of step {}, the lowest dev loss.\n",
            self.steps, self.step_tok, self.seed, self.train_seconds, self.best_step
        )?;
        writeln!(out, "```\n{}\n```\n", self.command)?;
        writeln!(
            out,
            "On one machine and build the same command gives the same weights; elsewhere rounding may differ.\n"
        )
    }

    fn quality(&self, out: &mut String) -> std::fmt::Result {
        let s = self.smoothing;
        writeln!(out, "## Held-out loss\n")?;
        writeln!(
            out,
            "Mean −ln P over {} test tokens (all but the first), each seen once with 256 to 512 tokens of context where the text has them.\n",
            self.test_tok
        )?;
        writeln!(
            out,
            "| | dev, nats/token | test, nats/token | test, nats/char |\n|---|---|---|---|"
        )?;
        let per_char = self.test_nats_per_char / self.test_nats;
        for (name, dev, test) in [
            ("tiny", self.dev_nats, self.test_nats),
            (
                "interpolated bigram",
                self.bigram_dev_nats,
                self.bigram_test_nats,
            ),
        ] {
            writeln!(
                out,
                "| {name} | {dev:.4} | {test:.4} | {:.4} |",
                test * per_char
            )?;
        }
        writeln!(
            out,
            "\nAhead of the bigram by {:.4} nats/token on test; a uniform guess costs {:.4}.\n\
             The bigram is counted on the same train tokens: P(b|a) = Λ c(a,b)/c(a) + (1 − Λ) P₁(b), Λ = λ c(a)/(c(a) + κ),\n\
             P₁ add-α; dev chose λ = {}, κ = {}, α = {}.\n",
            self.bigram_test_nats - self.test_nats,
            (self.config.vocab_size as f64).ln(),
            s.lambda,
            s.kappa,
            s.alpha
        )
    }

    fn sample(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "## Sample\n\nTemperature {}, after the prompt {:?}, the first draw, unedited:\n",
            self.sample_temperature, self.sample_prompt
        )?;
        writeln!(out, "```\n{}\n```\n", self.sample.trim_end())?;
        writeln!(
            out,
            "## Licence\n\nWeights, tokenizer and this card: MIT OR Apache-2.0, as the rest of the project."
        )
    }
}
