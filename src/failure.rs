//! How a command ends when it does not end well.

use std::fmt::Display;
use std::io;

/// A reason to stop, by exit code.
#[derive(Debug)]
pub enum Failure {
    /// A verdict failed; the report is already printed. Exit code 1.
    Verdict,
    /// What was asked for cannot be done. Exit code 2.
    Input(String),
    /// The machine or this program failed. Exit code 3.
    Fault(String),
    /// The reader of our output has gone: nothing more to do, and nothing wrong. Exit code 0.
    BrokenPipe,
}

impl Failure {
    pub fn input(error: impl Display) -> Self {
        Failure::Input(error.to_string())
    }

    pub fn fault(error: impl Display) -> Self {
        Failure::Fault(error.to_string())
    }

    pub fn code(&self) -> u8 {
        match self {
            Failure::BrokenPipe => 0,
            Failure::Verdict => 1,
            Failure::Input(_) => 2,
            Failure::Fault(_) => 3,
        }
    }

    pub fn message(&self) -> Option<&str> {
        match self {
            Failure::Input(text) | Failure::Fault(text) => Some(text),
            Failure::BrokenPipe | Failure::Verdict => None,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => {
                Failure::Input(format!("the output cannot be written: {error}"))
            }
            _ => Failure::Fault(format!("the output cannot be written: {error}")),
        }
    }
}

impl From<etime_hil::scenario::ScenarioError> for Failure {
    fn from(error: etime_hil::scenario::ScenarioError) -> Self {
        Failure::input(error)
    }
}
