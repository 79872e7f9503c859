//! Names of models on the Hugging Face hub.

use std::fmt;

/// `owner/name@revision`: a branch, a tag or a commit; `main` where none is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HubId {
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) revision: String,
}

impl HubId {
    /// `None` for anything else, a path among it.
    pub(super) fn parse(spec: &str) -> Option<Self> {
        let (repo, revision) = spec.split_once('@').unwrap_or((spec, "main"));
        let (owner, name) = repo.split_once('/')?;
        let plain = |part: &&str| {
            let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            // A dot in front would be a hidden file or the folder above.
            !part.is_empty() && !part.starts_with('.') && part.chars().all(letter)
        };
        let parts = [owner, name, revision];
        parts.iter().all(plain).then(|| HubId {
            owner: owner.to_owned(),
            name: name.to_owned(),
            revision: revision.to_owned(),
        })
    }

    pub(super) fn repo(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

impl fmt::Display for HubId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.owner, self.name, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_a_name_and_a_revision_are_told_from_paths() {
        let parsed = |spec| HubId::parse(spec).map(|id| id.to_string());
        assert_eq!(parsed("a-b/c.d_1"), Some("a-b/c.d_1@main".to_owned()));
        assert_eq!(parsed("a/b@v1.0"), Some("a/b@v1.0".to_owned()));
        for path in [
            "tiny", "/a", "a/", "a/b/c", "./a", "../a", "a/..", "a/b@", "a/b@../c", "a/b@x/y",
            "~/m", "a b/c",
        ] {
            assert_eq!(parsed(path), None, "{path}");
        }
    }
}
