//! Sending a helper, and reading it back.

use super::channel::{Talk, new_mark};
use super::script;
use crate::{HelperImage, Pipe, RemoteError};

/// Why a folder didn't take it.
#[derive(Debug)]
pub(super) enum Refused {
    /// The folder; another one may do.
    Folder(String),
    /// The way there.
    Way(RemoteError),
}

/// Send `image` to `folder` under a name of its own, which is given back once the
/// VM has sent back the same bytes.
pub(super) async fn upload(
    pipe: &Pipe,
    folder: &str,
    file: &str,
    image: HelperImage,
) -> Result<String, Refused> {
    let mark = new_mark().map_err(Refused::Way)?;
    let word = crate::random::word().map_err(Refused::Way)?;
    let part = format!("{file}.part-{word}");
    let text = script::take(&mark, &format!("{folder}/{part}"));
    let mut talk = Talk::start(pipe, &mark, text).await.map_err(Refused::Way)?;
    if talk.line().await.as_deref() != Some("B") {
        return Err(Refused::Way(talk.broken().await));
    }
    let mut line = talk.send(image.bytes).await;
    let mut why = String::new();
    while let Some(text) = &line {
        if let Some(said) = text.strip_prefix("W ") {
            said.clone_into(&mut why);
            line = talk.line().await;
        } else {
            break;
        }
    }
    match line.as_deref() {
        Some("C 0") => {}
        Some(_) => {
            talk.close().await.map_err(Refused::Way)?;
            let why = why.rsplit(": ").next().unwrap_or_default().to_owned();
            return Err(Refused::Folder(if why.is_empty() {
                "it can't be written".to_owned()
            } else {
                why
            }));
        }
        None => return Err(Refused::Way(talk.broken().await)),
    }
    let mut hasher = blake3::Hasher::new();
    talk.rest(|bytes| {
        hasher.update(bytes);
    })
    .await;
    let same = hasher.finalize().to_hex().as_str() == image.hash;
    let closed = talk.close().await;
    if same {
        Ok(part)
    } else {
        // Half of it came back because the connection broke.
        closed.map_err(Refused::Way)?;
        Err(Refused::Folder("it did not keep what was sent".to_owned()))
    }
}
