//! Any text as a scenario.

use std::path::Path;

use etime_hil::scenario::Loaded;

/// The text of a scenario; one that is accepted says the same when it is written and read again.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let path = Path::new("fuzz.ron");
    let Ok(loaded) = Loaded::from_text(path, text.to_owned(), &[]) else {
        return;
    };
    let written = loaded
        .scenario
        .to_ron()
        .expect("an accepted scenario can be written");
    let again = Loaded::from_text(path, written, &[]).expect("what was written can be read");
    assert_eq!(loaded.scenario, again.scenario);
}
