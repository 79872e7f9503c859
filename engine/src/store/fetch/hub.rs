//! The Hugging Face hub.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use hf_hub::Cache;
use hf_hub::api::Progress;
use hf_hub::api::sync::{ApiBuilder, ApiError};

use super::{Download, FetchError, Mirror};

/// From the first request to the first byte: the metadata, two redirects, TLS.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(20);
const NEXT_BYTE_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Hub;

enum News {
    Bytes(u64),
    Done(Result<PathBuf, ApiError>),
}

impl Mirror for Hub {
    fn name(&self, download: &Download) -> String {
        format!("the Hugging Face hub ({})", download.hub_repo)
    }

    /// The client has no time limits of its own, so it works in a thread that is given up when
    /// nothing arrives.
    fn fetch(
        &self,
        download: &Download,
        scratch: &Path,
        report: &mut dyn FnMut(u64),
    ) -> Result<PathBuf, FetchError> {
        let (sender, news) = channel();
        let (repo, file) = (download.hub_repo, download.file);
        let cache = scratch.join("hub");
        std::thread::spawn(move || {
            let progress = Arrivals {
                sender: sender.clone(),
                done_bytes: 0,
            };
            let result = client_fetch(repo, file, cache, progress);
            // Nobody listens any more when the wait was over; then there is nothing to tell.
            sender.send(News::Done(result)).ok();
        });
        follow(&news, report)
    }
}

fn follow(news: &Receiver<News>, report: &mut dyn FnMut(u64)) -> Result<PathBuf, FetchError> {
    let mut patience = FIRST_BYTE_WITHIN;
    loop {
        match news.recv_timeout(patience) {
            Ok(News::Bytes(done_bytes)) => {
                patience = NEXT_BYTE_WITHIN;
                report(done_bytes);
            }
            // The cache gives a link to the file; a link must not be renamed into place.
            Ok(News::Done(Ok(path))) => return Ok(path.canonicalize()?),
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

fn client_fetch(
    repo: &str,
    file: &str,
    cache: PathBuf,
    progress: Arrivals,
) -> Result<PathBuf, ApiError> {
    // A public file: no token is read, and none is sent.
    let mut builder = ApiBuilder::from_cache(Cache::new(cache)).with_retries(1);
    if let Ok(endpoint) = std::env::var("HF_ENDPOINT") {
        builder = builder.with_endpoint(endpoint);
    }
    let repo = builder.build()?.model(repo.to_owned());
    repo.download_with_progress(file, progress)
}

struct Arrivals {
    sender: Sender<News>,
    done_bytes: u64,
}

impl Arrivals {
    fn send(&self) {
        if self.sender.send(News::Bytes(self.done_bytes)).is_err() {
            // The client has no way to stop a download; unwinding ends its thread without a message.
            resume_unwind(Box::new("given up"));
        }
    }
}

impl Progress for Arrivals {
    fn init(&mut self, _size: usize, _filename: &str) {
        self.done_bytes = 0;
        self.send();
    }

    fn update(&mut self, size: usize) {
        self.done_bytes += size as u64;
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
        for bytes in [0, 5, 9] {
            sender.send(News::Bytes(bytes)).unwrap();
        }
        drop(sender);
        let mut seen = Vec::new();
        let error = follow(&news, &mut |bytes| seen.push(bytes)).unwrap_err();
        assert_eq!(seen, [0, 5, 9]);
        assert!(matches!(error, FetchError::NotFetched(reason) if reason.contains("stopped")));
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_failures() {
        let (sender, news) = channel();
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        sender
            .send(News::Done(Err(ApiError::IoError(full))))
            .unwrap();
        let error = follow(&news, &mut |_| ()).unwrap_err();
        assert!(matches!(error, FetchError::DiskFull));
    }
}
