//! Scales images for models: complete, upright, and no larger than a model uses. The same bytes always give the same
//! result, so that a request can be repeated exactly.
//!
//! Deliberately absent: which images are shown. The middleware decides that.

use image::{
    DynamicImage, GenericImageView, ImageDecoder, ImageFormat, ImageReader, Limits,
    codecs::jpeg::JpegEncoder, metadata::Orientation,
};
use pudu_base::image_kind;
use std::io::Cursor;

/// Maximum length of the longest side, in pixels: providers scale down larger images and charge for their tokens.
const MAX_SIDE: u32 = 1_568;
/// Maximum size of an image that is sent, in bytes: Anthropic accepts 5 MB in base64.
pub(crate) const MAX_SENT_BYTES: usize = 3_750_000;
/// Maximum size of an image once decoded, in bytes: 55 million pixels in three colours.
const MAX_DECODED_BYTES: u64 = 160 << 20;
/// JPEG qualities: the loss of the first is invisible, the others are for images that are still too large.
const JPEG_QUALITIES: [u8; 3] = [85, 65, 40];

/// An image that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScaledImage {
    pub(crate) bytes: Vec<u8>,
    /// Its media type.
    pub(crate) mime: &'static str,
    /// Whether the file is truncated: the missing part is grey.
    pub(crate) cut: bool,
}

/// Why an image cannot be shown, in text for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageProblem {
    #[error("it is not a PNG, JPEG, WebP or GIF image, whatever its name says")]
    Unknown,
    #[error("it has {0} x {1} pixels, which is too large: scale it down first")]
    Huge(u32, u32),
    #[error("it is damaged or truncated")]
    Damaged,
}

/// Scales an image for a request. This blocks; a photo takes a while.
pub(crate) fn scale(bytes: Vec<u8>) -> Result<ScaledImage, ImageProblem> {
    let mime = image_kind(&bytes).ok_or(ImageProblem::Unknown)?;
    let format = ImageFormat::from_mime_type(mime).ok_or(ImageProblem::Unknown)?;
    let (mut image, orientation) = decode(&bytes, format)?;
    let turned = orientation != Orientation::NoTransforms;
    let cut = format == ImageFormat::Jpeg && !ends_whole(&bytes);
    let (width, height) = image.dimensions();
    let fits = width.max(height) <= MAX_SIDE && bytes.len() <= MAX_SENT_BYTES;
    // An animation is reduced to its first frame, and not every provider accepts GIF.
    if fits && !turned && !cut && format != ImageFormat::Gif {
        return Ok(ScaledImage { bytes, mime, cut });
    }
    drop(bytes);
    // Rotated after scaling: a rotated copy takes as much memory as the image.
    image = shrink(image);
    image.apply_orientation(orientation);
    encode(&image, format).map(|(bytes, mime)| ScaledImage { bytes, mime, cut })
}

/// Decodes an image without rotating it, and returns its orientation. A huge one is rejected by its header.
fn decode(bytes: &[u8], format: ImageFormat) -> Result<(DynamicImage, Orientation), ImageProblem> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|_| ImageProblem::Damaged)?;
    let (width, height) = decoder.dimensions();
    if decoder.total_bytes() > MAX_DECODED_BYTES {
        return Err(ImageProblem::Huge(width, height));
    }
    // Unreadable metadata has no orientation.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(|_| ImageProblem::Damaged)?;
    Ok((image, orientation))
}

/// Returns whether a JPEG has its end marker. Its decoder accepts one without.
fn ends_whole(bytes: &[u8]) -> bool {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).is_some_and(|bytes| bytes.ends_with(&[0xff, 0xd9]))
}

/// Scales an image down to the maximum side, keeping its proportions.
fn shrink(image: DynamicImage) -> DynamicImage {
    let (width, height) = image.dimensions();
    let longest = width.max(height);
    if longest <= MAX_SIDE {
        return image;
    }
    let side = |side: u32| {
        let scaled = (u64::from(side) * u64::from(MAX_SIDE) + u64::from(longest) / 2) / u64::from(longest);
        u32::try_from(scaled).unwrap_or(MAX_SIDE).max(1)
    };
    image.thumbnail_exact(side(width), side(height))
}

/// Encodes photos as JPEG and everything else as PNG, which keeps text sharp, unless the PNG is too large.
fn encode(image: &DynamicImage, from: ImageFormat) -> Result<(Vec<u8>, &'static str), ImageProblem> {
    if from != ImageFormat::Jpeg {
        let mut out = Cursor::new(Vec::new());
        let image = if image.color().has_alpha() { image.to_rgba8().into() } else { rgb(image) };
        image.write_to(&mut out, ImageFormat::Png).map_err(|_| ImageProblem::Damaged)?;
        if out.get_ref().len() <= MAX_SENT_BYTES {
            return Ok((out.into_inner(), "image/png"));
        }
    }
    let image = on_white(image);
    let mut out = Vec::new();
    for quality in JPEG_QUALITIES {
        out.clear();
        let encoder = JpegEncoder::new_with_quality(&mut out, quality);
        image.write_with_encoder(encoder).map_err(|_| ImageProblem::Damaged)?;
        if out.len() <= MAX_SENT_BYTES {
            break;
        }
    }
    Ok((out, "image/jpeg"))
}

fn rgb(image: &DynamicImage) -> DynamicImage {
    image.to_rgb8().into()
}

/// Puts an image on a white background, for a format without transparency.
fn on_white(image: &DynamicImage) -> DynamicImage {
    if !image.color().has_alpha() {
        return rgb(image);
    }
    let (width, height) = image.dimensions();
    let white = image::RgbaImage::from_pixel(width, height, image::Rgba([u8::MAX; 4]));
    let mut canvas = DynamicImage::from(white);
    image::imageops::overlay(&mut canvas, &image.to_rgba8(), 0, 0);
    rgb(&canvas)
}

#[cfg(test)]
mod tests;
