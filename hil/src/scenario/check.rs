//! What the values of a scenario may be, alone and against each other.

use super::{Hil, Loaded, ScenarioError, Workload};
use crate::tolerance::Tolerance;
use etime_control::driver::Clock;
use etime_control::law::{FieldError, ensure, not_negative, positive};
use etime_control::trajectory::Sample;

/// Longest prompt or text of one request, tokens.
const MAX_TEXT_TOK: usize = 1 << 20;
/// Most requests of one run, and most runs of one experiment.
const MAX_COUNT: usize = 1 << 20;
/// Most bytes that the rows of all runs of one experiment may take.
const MAX_ROWS_BYTES: u128 = 16 << 30;
/// Most temperatures that are recorded at.
const MAX_TEMPERATURES: usize = 64;
/// Most token slots of a KV pool.
const MAX_POOL_TOK: usize = 1 << 28;

fn within(path: &str, seen: usize, most: usize) -> Result<(), FieldError> {
    ensure(
        (1..=most).contains(&seen),
        path,
        seen,
        format!("from 1 to {most}"),
    )
}

fn below<'a>(parent: &'a str) -> impl Fn(FieldError) -> FieldError + 'a {
    move |error| FieldError {
        path: format!("{parent}.{}", error.path),
        ..error
    }
}

impl Loaded {
    /// Checks everything that needs no model.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.check_fields().map_err(|error| self.field_error(error))
    }

    fn check_fields(&self) -> Result<(), FieldError> {
        let scenario = &self.scenario;
        scenario.control.check().map_err(below("control"))?;
        check_clock(&scenario.clock)?;
        check_workload(&scenario.workload)?;
        if let Some(sim) = &scenario.sim {
            within("sim.runs", sim.runs, MAX_COUNT)?;
            sim.plant.check().map_err(below("sim.plant"))?;
            scenario
                .control
                .check_vocab(sim.plant.vocab())
                .map_err(below("control"))?;
            check_rows("sim.runs", sim.runs, &scenario.workload)?;
        }
        if let Some(engine) = &scenario.engine {
            engine.limits().check().map_err(below("engine"))?;
            ensure(
                !engine.model.is_empty(),
                "engine.model",
                "\"\"",
                "a model's name or path",
            )?;
            self.check_pool()?;
        }
        if let Some(hil) = &scenario.hil {
            check_hil(hil, &scenario.workload)?;
        }
        self.check_prompts()
    }

    fn check_pool(&self) -> Result<(), FieldError> {
        let (Some(engine), workload) = (&self.scenario.engine, &self.scenario.workload) else {
            return Ok(());
        };
        let pool_tok = engine.kv_blocks.saturating_mul(engine.block_tok);
        ensure(
            pool_tok <= MAX_POOL_TOK,
            "engine.kv_blocks",
            engine.kv_blocks,
            format!(
                "at most {} blocks of {} tokens",
                MAX_POOL_TOK / engine.block_tok,
                engine.block_tok
            ),
        )?;
        // The last token is drawn but never computed, so it takes no slot.
        let needed_tok = workload.prompt_tok + workload.new_tok - 1;
        ensure(
            needed_tok <= pool_tok,
            "engine.kv_blocks",
            engine.kv_blocks,
            format!(
                "at least {}: one request of {} prompt and {} new tokens needs that many blocks of {} tokens",
                needed_tok.div_ceil(engine.block_tok),
                workload.prompt_tok,
                workload.new_tok,
                engine.block_tok
            ),
        )
    }

    fn check_prompts(&self) -> Result<(), FieldError> {
        match self.prompts() {
            Some(path) => {
                let problem = match (path.exists(), path.is_dir()) {
                    (false, _) => "this one does not exist",
                    (true, true) => "this is a directory",
                    (true, false) => return Ok(()),
                };
                let allowed =
                    format!("a file of JSON lines, relative to the scenario file; {problem}");
                ensure(false, "workload.prompts", path.display(), allowed)
            }
            None => ensure(
                self.scenario.engine.is_none(),
                "workload.prompts",
                "none",
                "a file of JSON lines, such as \"prompts.jsonl\": the engine needs text to start from",
            ),
        }
    }
}

fn check_workload(workload: &Workload) -> Result<(), FieldError> {
    within("workload.sequences", workload.sequences, MAX_COUNT)?;
    within("workload.prompt_tok", workload.prompt_tok, MAX_TEXT_TOK)?;
    within("workload.new_tok", workload.new_tok, MAX_TEXT_TOK)?;
    let prompt_bytes = workload.sequences as u128 * workload.prompt_tok as u128 * 4;
    ensure(
        prompt_bytes <= MAX_ROWS_BYTES,
        "workload.prompt_tok",
        workload.prompt_tok,
        format!(
            "less: the prompts of {} sequences fill more than {} GiB",
            workload.sequences,
            MAX_ROWS_BYTES >> 30
        ),
    )?;
    check_rows("workload.sequences", 1, workload)
}

/// Refuses more rows than any memory holds, before anything is allocated.
fn check_rows(path: &str, runs: usize, workload: &Workload) -> Result<(), FieldError> {
    let rows = runs as u128 * workload.sequences as u128 * workload.new_tok as u128;
    let most = MAX_ROWS_BYTES / size_of::<Sample>() as u128;
    let seen = if path == "workload.sequences" {
        workload.sequences
    } else {
        runs
    };
    ensure(
        rows <= most,
        path,
        seen,
        format!(
            "fewer: {runs} runs × {} sequences × {} new tokens are {rows} rows, and {most} fill {} GiB",
            workload.sequences,
            workload.new_tok,
            MAX_ROWS_BYTES >> 30
        ),
    )
}

fn check_clock(clock: &Clock) -> Result<(), FieldError> {
    let Clock::Modelled {
        fixed_s,
        per_tok_s,
        per_kv_byte_s,
    } = *clock
    else {
        return Ok(());
    };
    for (path, seconds) in [
        ("clock.fixed_s", fixed_s),
        ("clock.per_tok_s", per_tok_s),
        ("clock.per_kv_byte_s", per_kv_byte_s),
    ] {
        not_negative(path, seconds)?;
    }
    Ok(())
}

fn check_hil(hil: &Hil, workload: &Workload) -> Result<(), FieldError> {
    ensure(
        !hil.levels.is_empty(),
        "hil.levels",
        "[]",
        "at least one of Replay, Forced, Free",
    )?;
    for (index, level) in hil.levels.iter().enumerate() {
        ensure(
            !hil.levels[..index].contains(level),
            "hil.levels",
            format!("{} twice", level.name()),
            "each level once",
        )?;
    }
    within("hil.runs", hil.runs, MAX_COUNT)?;
    within("hil.record.runs", hil.record.runs, MAX_COUNT)?;
    let temperatures = &hil.record.temperatures;
    ensure(
        !temperatures.is_empty(),
        "hil.record.temperatures",
        "[]",
        "at least one temperature",
    )?;
    ensure(
        temperatures.len() <= MAX_TEMPERATURES,
        "hil.record.temperatures",
        format!("{} temperatures", temperatures.len()),
        format!("at most {MAX_TEMPERATURES}"),
    )?;
    for (index, &t) in temperatures.iter().enumerate() {
        let path = "hil.record.temperatures";
        positive(path, t)?;
        ensure(
            !temperatures[..index].contains(&t),
            path,
            format!("{t} twice"),
            "each temperature once",
        )?;
    }
    check_tolerance(&hil.tolerance)?;
    check_rows("hil.runs", hil.runs, workload)?;
    let recorded = hil.record.runs.saturating_mul(temperatures.len());
    check_rows("hil.record.runs", recorded, workload)
}

fn check_tolerance(tolerance: &Tolerance) -> Result<(), FieldError> {
    for (name, value) in [
        ("mean_u", tolerance.mean_u),
        ("sd_u", tolerance.sd_u),
        ("saturation", tolerance.saturation),
        ("nats", tolerance.nats),
        ("acf", tolerance.acf),
        ("settling_share", tolerance.settling_share),
        ("settling_tok", tolerance.settling_tok),
        ("gain_share", tolerance.gain_share),
        ("lag_tok", tolerance.lag_tok),
        ("u_val_u", tolerance.u_val_u),
        ("u_val_nats", tolerance.u_val_nats),
    ] {
        positive(&format!("hil.tolerance.{name}"), value)?;
    }
    Ok(())
}
