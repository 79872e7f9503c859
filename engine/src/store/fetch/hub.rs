//! The Hugging Face hub.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use hf_hub::api::Progress;
use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};

use super::{Download, FetchError, Listing, Mirror, Repository};
use crate::store::hub_id::HubId;

/// From the first request to the first byte: the metadata, two redirects, TLS.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(20);
const NEXT_BYTE_WITHIN: Duration = Duration::from_secs(30);
const MAIN: &str = "main";

pub(crate) struct Hub;

enum News<T> {
    Bytes { done: u64, total: u64 },
    Done(Result<T, ApiError>),
}

impl Mirror for Hub {
    fn name(&self, download: &Download) -> String {
        format!("the Hugging Face hub ({})", download.hub_repo)
    }

    fn fetch(
        &self,
        download: &Download,
        scratch: &Path,
        report: &mut dyn FnMut(u64),
    ) -> Result<PathBuf, FetchError> {
        let repo = download.hub_repo.to_owned();
        fetch(repo, MAIN, download.file, scratch, &mut |done, _| {
            report(done)
        })
    }
}

impl Repository for Hub {
    fn list(&self, id: &HubId, scratch: &Path) -> Result<Listing, FetchError> {
        let (repo, revision) = (id.repo(), id.revision.clone());
        let cache = scratch.join("hub");
        let info = patiently(&mut |_, _| (), move |_| {
            client(repo, revision, cache)?.info()
        })?;
        let files = info.siblings.into_iter().map(|file| file.rfilename);
        Ok(Listing {
            commit: info.sha,
            files: files.collect(),
        })
    }

    fn fetch(
        &self,
        id: &HubId,
        commit: &str,
        file: &str,
        scratch: &Path,
        report: &mut dyn FnMut(u64, u64),
    ) -> Result<PathBuf, FetchError> {
        fetch(id.repo(), commit, file, scratch, report)
    }
}

fn fetch(
    repo: String,
    revision: &str,
    file: &str,
    scratch: &Path,
    report: &mut dyn FnMut(u64, u64),
) -> Result<PathBuf, FetchError> {
    let (revision, file) = (revision.to_owned(), file.to_owned());
    let cache = scratch.join("hub");
    let path = patiently(report, move |progress| {
        client(repo, revision, cache)?.download_with_progress(&file, progress)
    })?;
    // The cache gives a link to the file; a link must not be renamed into place.
    Ok(path.canonicalize()?)
}

/// The client has no time limits of its own, so it works in a thread that is given up when nothing arrives.
fn patiently<T: Send + 'static>(
    report: &mut dyn FnMut(u64, u64),
    work: impl FnOnce(Arrivals<T>) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, FetchError> {
    let (sender, news) = channel();
    std::thread::spawn(move || {
        let progress = Arrivals {
            sender: sender.clone(),
            done: 0,
            total: 0,
        };
        let result = work(progress);
        // Nobody listens any more when the wait was over; then there is nothing to tell.
        sender.send(News::Done(result)).ok();
    });
    follow(&news, report)
}

fn follow<T>(news: &Receiver<News<T>>, report: &mut dyn FnMut(u64, u64)) -> Result<T, FetchError> {
    let mut patience = FIRST_BYTE_WITHIN;
    loop {
        match news.recv_timeout(patience) {
            Ok(News::Bytes { done, total }) => {
                patience = NEXT_BYTE_WITHIN;
                report(done, total);
            }
            Ok(News::Done(Ok(result))) => return Ok(result),
            Ok(News::Done(Err(ApiError::IoError(error)))) => return Err(error.into()),
            Ok(News::Done(Err(error))) => return Err(FetchError::NotFetched(error.to_string())),
            Err(RecvTimeoutError::Timeout) => {
                let reason = format!("nothing arrived for {} s", patience.as_secs());
                return Err(FetchError::NotFetched(reason));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let reason = "the client stopped without a result".to_owned();
                return Err(FetchError::NotFetched(reason));
            }
        }
    }
}

fn client(repo: String, revision: String, cache: PathBuf) -> Result<ApiRepo, ApiError> {
    // A public file: no token is read, and none is sent.
    let mut builder = ApiBuilder::from_cache(Cache::new(cache)).with_retries(1);
    if let Ok(endpoint) = std::env::var("HF_ENDPOINT") {
        builder = builder.with_endpoint(endpoint);
    }
    let repo = Repo::with_revision(repo, RepoType::Model, revision);
    Ok(builder.build()?.repo(repo))
}

struct Arrivals<T> {
    sender: Sender<News<T>>,
    done: u64,
    total: u64,
}

impl<T> Arrivals<T> {
    fn send(&self) {
        let news = News::Bytes {
            done: self.done,
            total: self.total,
        };
        if self.sender.send(news).is_err() {
            // The client has no way to stop a download; unwinding ends its thread without a message.
            resume_unwind(Box::new("given up"));
        }
    }
}

impl<T> Progress for Arrivals<T> {
    fn init(&mut self, size: usize, _filename: &str) {
        (self.done, self.total) = (0, size as u64);
        self.send();
    }

    fn update(&mut self, size: usize) {
        self.done += size as u64;
        self.send();
    }

    fn finish(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_reported_and_a_silent_end_is_an_error() {
        let (sender, news) = channel();
        for done in [0, 5, 9] {
            let total = 9;
            sender.send(News::<()>::Bytes { done, total }).unwrap();
        }
        drop(sender);
        let mut seen = Vec::new();
        let error = follow(&news, &mut |done, _| seen.push(done)).unwrap_err();
        assert_eq!(seen, [0, 5, 9]);
        assert!(matches!(error, FetchError::NotFetched(reason) if reason.contains("stopped")));
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_failures() {
        let (sender, news) = channel();
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        sender
            .send(News::<()>::Done(Err(ApiError::IoError(full))))
            .unwrap();
        let error = follow(&news, &mut |_, _| ()).unwrap_err();
        assert!(matches!(error, FetchError::DiskFull));
    }
}
