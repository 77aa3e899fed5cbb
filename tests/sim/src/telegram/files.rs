//! Files: uploads and downloads of the bot.

use super::{
    error::{Answer, Refusal},
    params::Params,
    types::{File, Upload},
    wire,
    world::World,
};
use bytes::Bytes;
use serde_json::json;

const MIB: usize = 1024 * 1024;
/// Maximum size of a download with `getFile`.
const DOWNLOAD: usize = 20 * MIB;
/// Maximum size of a photo.
const PHOTO: usize = 10 * MIB;
/// Maximum size of a file.
pub(crate) const UPLOAD: usize = 50 * MIB;

/// Returns the file in a call: uploaded with it, or already on the platform.
pub(crate) fn take(world: &mut World, params: &Params, field: &str) -> Answer<File> {
    let photo = field == "photo";
    let (id, file) = match params.file(field) {
        Some(file) => {
            check(file, photo)?;
            let file = Upload { photo, ..file.clone() };
            (world.store(file.clone()), file)
        }
        None => known(world, params.text(field).unwrap_or_default(), photo)?,
    };
    Ok(File { id, name: file.name, mime: file.mime, size: file.bytes.len(), photo })
}

fn known(world: &World, id: &str, photo: bool) -> Answer<(String, Upload)> {
    if id.is_empty() {
        let field = if photo { "photo" } else { "document" };
        return Err(Refusal::bad(format!("there is no {field} in the request")));
    }
    let file = world.files.get(id).filter(|file| file.photo == photo);
    let file = file.ok_or_else(|| Refusal::bad("wrong file identifier/HTTP URL specified"))?;
    Ok((id.to_owned(), file.clone()))
}

fn check(file: &Upload, photo: bool) -> Answer<()> {
    let size = file.bytes.len();
    match photo {
        _ if size == 0 => Err(Refusal::bad("file must be non-empty")),
        _ if size > UPLOAD => Err(too_large()),
        true if size > PHOTO => {
            let limit = format!("the maximum size is {PHOTO} bytes");
            Err(Refusal::bad(format!("file of size {size} bytes is too big for a photo; {limit}")))
        }
        true if !is_picture(&file.bytes) => Err(Refusal::bad("IMAGE_PROCESS_FAILED")),
        _ => Ok(()),
    }
}

/// Returns the error for a request that is too large.
pub(crate) fn too_large() -> Refusal {
    Refusal::new(413, "Request Entity Too Large")
}

/// Returns whether bytes begin like PNG, JPEG, GIF or WebP.
fn is_picture(bytes: &Bytes) -> bool {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    let webp = starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    starts(b"\x89PNG\r\n\x1a\n") || starts(b"\xff\xd8\xff") || starts(b"GIF8") || webp
}

/// `getFile`.
pub(crate) fn get(world: &mut World, params: &Params) -> Answer {
    let id = params.text("file_id").unwrap_or_default();
    let file = find(world, id)
        .ok_or_else(|| Refusal::bad("wrong file_id or the file is temporarily unavailable"))?;
    let size = file.bytes.len();
    if size > DOWNLOAD {
        return Err(Refusal::bad("file is too big"));
    }
    let path = path(id, file);
    Ok(json!({"file_id": id, "file_unique_id": wire::unique_id(id), "file_size": size, "file_path": path}))
}

/// The thumbnail of a photo is the photo itself here.
fn find<'a>(world: &'a World, id: &str) -> Option<&'a Upload> {
    world.files.get(id.strip_suffix("-s").unwrap_or(id))
}

fn path(id: &str, file: &Upload) -> String {
    if file.photo {
        return format!("photos/{id}.jpg");
    }
    let kind = file.name.rsplit_once('.').map_or("bin", |(_, kind)| kind);
    let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("documents/{id}.{kind}")
}

/// Checks whether a file exists, as a recorded call that can fail.
pub(crate) fn locate(world: &mut World, params: &Params) -> Answer {
    let found = at(world, params.text("path").unwrap_or_default());
    found.map(|file| json!(file.bytes.len())).ok_or_else(|| Refusal::new(404, "Not Found"))
}

/// Returns the file at a path from `getFile`.
pub(crate) fn at<'a>(world: &'a World, path: &str) -> Option<&'a Upload> {
    let (_, name) = path.split_once('/')?;
    let (id, _) = name.rsplit_once('.')?;
    find(world, id)
}
