use std::ffi::OsString;
use std::path::PathBuf;

/// The folder that holds the models: `$ETIME_MODELS`, else `$XDG_CACHE_HOME/etime/models`, else
/// `~/.cache/etime/models`. An empty variable counts as unset, and so does a relative
/// `XDG_CACHE_HOME` (XDG base directory specification). None when none of the three is set.
pub(super) fn models_dir() -> Option<PathBuf> {
    choose(|name| std::env::var_os(name))
}

fn choose(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| var(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(models) = path("ETIME_MODELS") {
        return Some(models);
    }
    let cache = path("XDG_CACHE_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| path("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("etime/models"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(vars: &[(&str, &str)]) -> Option<String> {
        let var = |name: &str| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| OsString::from(v))
        };
        choose(var).map(|p| p.display().to_string())
    }

    #[test]
    fn the_named_folder_goes_before_the_cache_and_the_cache_before_home() {
        let all = [
            ("ETIME_MODELS", "/m"),
            ("XDG_CACHE_HOME", "/c"),
            ("HOME", "/h"),
        ];
        assert_eq!(chosen(&all).as_deref(), Some("/m"));
        assert_eq!(chosen(&all[1..]).as_deref(), Some("/c/etime/models"));
        assert_eq!(chosen(&all[2..]).as_deref(), Some("/h/.cache/etime/models"));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn empty_and_relative_variables_count_as_unset() {
        let vars = [
            ("ETIME_MODELS", ""),
            ("XDG_CACHE_HOME", "rel"),
            ("HOME", "/h"),
        ];
        assert_eq!(chosen(&vars).as_deref(), Some("/h/.cache/etime/models"));
    }
}
