//! The command line, as it is typed.

use clap::{Args, Parser, Subcommand, ValueEnum};
use etime_control::law::Fault;
use etime_hil::scenario::Level;
use std::path::PathBuf;

/// Temperature laws for language models: simulate the loop, run it on a real engine, and judge the prediction.
///
/// A law reads the entropy of the next-token distribution and steers the sampling temperature. The same controller
/// code runs on a simulated plant and on an engine with paged attention.
#[derive(Debug, Parser)]
#[command(
    name = "etime",
    version,
    max_term_width = 100,
    after_help = "\
Start here:
  etime doctor                          what this machine has, and what is missing
  etime sim scenarios/corrected.ron     a law on a synthetic plant, no model needed
  etime hil scenarios/quickstart.ron    predict, measure on the bundled model, judge

Exit codes: 0 done (PASS or INCONCLUSIVE), 1 a verdict failed, 2 bad input, 3 a fault of the machine or of this program."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate a scenario on its synthetic plant
    Sim(Sim),
    /// Predict a scenario, measure it on the engine, and judge (hardware in the loop)
    Hil(Hil),
    /// Write text with a model under a temperature law
    Generate(Generate),
    /// List, fetch and inspect models
    Model(Model),
    /// Show what was found on this machine, and how to get what is missing
    Doctor(Doctor),
    /// Measure speed beside the limit of this machine
    Speed(Speed),
}

/// What every scenario command takes.
#[derive(Debug, Args)]
pub struct Scenario {
    /// Scenario file (RON)
    #[arg(value_name = "SCENARIO")]
    pub path: PathBuf,
    /// Override a field, as in control.temperature.eta_per_nat=0.1; repeatable
    ///
    /// The path skips names of variants, the value is RON, and texts need no quotes:
    /// --set engine.model=smollm2 --set 'control.temperature=Fixed(t: 1.0)'
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub set: Vec<String>,
    /// Seed of every random number, in place of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Run directory to write [default: runs/SCENARIO-HASH]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Let --out remove another run that is there; a run of the same settings is always replaced
    #[arg(long)]
    pub replace: bool,
    /// Print results as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  etime sim scenarios/corrected.ron
  etime sim scenarios/corrected.ron --set control.temperature.eta_per_nat=2 --set sim.runs=64
  etime sim scenarios/published_sign.ron --seed 3 --out runs/published --json")]
pub struct Sim {
    #[command(flatten)]
    pub scenario: Scenario,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Levels:
  replay   same logits: the controller must agree in every bit
  forced   same tokens: the engine runs again under another temperature path
  free     same law, other seeds and prompts: ensembles are compared signal by signal

Examples:
  etime hil scenarios/quickstart.ron
  etime hil scenarios/quickstart.ron --level replay
  etime hil scenarios/quickstart.ron --level free --negative-control double-eta   (must exit 1)")]
pub struct Hil {
    #[command(flatten)]
    pub scenario: Scenario,
    /// Judge this level, in place of the scenario's; repeatable
    #[arg(long, value_name = "LEVEL")]
    pub level: Vec<LevelArg>,
    /// Put a known fault into the prediction alone: the verdict has to be FAIL
    #[arg(long, value_name = "FAULT")]
    pub negative_control: Option<FaultArg>,
    /// Keep the recorded logits in the run directory (4 bytes per token and vocabulary entry)
    #[arg(long)]
    pub keep_recording: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    /// The logits are held
    Replay,
    /// The tokens are held
    Forced,
    /// Nothing but law and workload is held
    Free,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Replay => Level::Replay,
            LevelArg::Forced => Level::Forced,
            LevelArg::Free => Level::Free,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FaultArg {
    /// The feedback has the other sign
    WrongSign,
    /// The gain is doubled
    DoubleEta,
    /// The law acts one token late
    ExtraDelay,
    /// Entropy in bits, setpoint in nats
    BitsMeasured,
    /// Entropy and setpoint in bits: the gain is off by 1/ln 2
    BitsGain,
}

impl From<FaultArg> for Fault {
    fn from(fault: FaultArg) -> Self {
        match fault {
            FaultArg::WrongSign => Fault::WrongSign,
            FaultArg::DoubleEta => Fault::DoubleEta,
            FaultArg::ExtraDelay => Fault::ExtraDelay,
            FaultArg::BitsMeasured => Fault::BitsMeasured,
            FaultArg::BitsGain => Fault::BitsGain,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  etime generate tiny --prompt 'ROMEO:' --new-tok 100
  echo 'Gravity is' | etime generate smollm2 --law 'Fixed(t: 0.7)'
  etime generate smollm2 --chat --prompt 'Why is the sky blue?' --stop '3.'
  etime generate tiny --prompt 'KING:' --law 'Corrected(eta_per_nat: 0.05, target_nats: 2, t_min: 0.2, t_max: 2, t_start: 1)'
  etime generate tiny --prompt 'KING:' --law 'InStep(target_nats: 2, t_min: 0.2, t_max: 2)' --set target_nats=1 --json")]
pub struct Generate {
    /// Model: tiny, smollm2, a model directory or a GGUF file
    pub model: String,
    /// Text to continue [default: standard input]
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Put the text into the model's chat template, as a user's message
    #[arg(long)]
    pub chat: bool,
    /// System message of the chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    pub system: Option<String>,
    /// End before this text; repeatable
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Tokens to write at most
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub new_tok: usize,
    /// Temperature law, in RON as in a scenario's control.temperature
    #[arg(long, value_name = "LAW", default_value = "Fixed(t: 1.0)")]
    pub law: String,
    /// Override a field of the law, as in eta_per_nat=0.1; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the draws
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub seed: u64,
    /// Print one JSON object per token: text, entropy H (nats), temperature T
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Model {
    #[command(subcommand)]
    pub command: ModelCommand,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the known models and where they are
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch a model, check it, and keep it in the models folder
    Pull {
        /// Name of the model, as in `etime model list`, or a hub id: owner/name or owner/name@revision
        name: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a model's files say: shape, tensors, hash
    Inspect {
        /// Model: a known name, a model directory, a GGUF file or a hub id that was pulled
        model: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Speed {
    #[command(subcommand)]
    pub command: SpeedCommand,
}

#[derive(Debug, Subcommand)]
pub enum SpeedCommand {
    /// Prefill and decode, beside the time that reading the weights takes
    Engine {
        /// Model: tiny, smollm2, a model directory or a GGUF file
        #[arg(default_value = "tiny")]
        model: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Entropy and varentropy, nanoseconds per logit
    Sensor {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
