use super::*;
use image::{ExtendedColorType, ImageEncoder, Rgb, RgbImage, codecs::png::PngEncoder};

/// A blue image with a red upper left quarter.
fn flag(width: u32, height: u32) -> DynamicImage {
    RgbImage::from_fn(width, height, |x, y| {
        if x < width / 2 && y < height / 2 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) }
    })
    .into()
}

/// An image that no format compresses well.
fn noise(side: u32) -> DynamicImage {
    let mut state = 1_u32;
    RgbImage::from_fn(side, side, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = state.to_be_bytes();
        Rgb([a, b, c])
    })
    .into()
}

fn written(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    image.write_to(&mut out, format).unwrap();
    out.into_inner()
}

/// A JPEG with a rotation in its metadata.
fn turned(image: &DynamicImage, orientation: u8) -> Vec<u8> {
    let jpeg = written(image, ImageFormat::Jpeg);
    let mut exif = b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    [&jpeg[..2], &exif, &jpeg[2..]].concat()
}

/// A PNG of a few bytes that declares these dimensions.
fn bomb(width: u32, height: u32) -> Vec<u8> {
    let mut png = Vec::new();
    PngEncoder::new(&mut png).write_image(&[0; 3], 1, 1, ExtendedColorType::Rgb8).unwrap();
    png[16..20].copy_from_slice(&width.to_be_bytes());
    png[20..24].copy_from_slice(&height.to_be_bytes());
    let mut sum = !0_u32;
    for byte in &png[12..29] {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    png[29..33].copy_from_slice(&(!sum).to_be_bytes());
    png
}

#[test]
fn an_image_that_every_model_accepts_is_sent_unchanged() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
        let bytes = written(&flag(40, 30), format);
        let scaled = scale(bytes.clone()).unwrap();
        assert_eq!((scaled.bytes, scaled.mime), (bytes, format.to_mime_type()));
    }
}

#[test]
fn a_large_image_is_scaled_to_the_same_bytes_each_time() {
    use ImageFormat::{Gif, Jpeg, Png, WebP};
    for (image, format, mime, sides) in [
        (flag(3136, 1000), Png, "image/png", (1568, 500)),
        (flag(1000, 3136), Jpeg, "image/jpeg", (500, 1568)),
        (flag(1600, 1), WebP, "image/png", (1568, 1)),
        (flag(40, 30), Gif, "image/png", (40, 30)),
        (noise(1200), Png, "image/jpeg", (1200, 1200)),
    ] {
        let bytes = written(&image, format);
        let scaled = scale(bytes.clone()).unwrap();
        assert_eq!(scaled, scale(bytes).unwrap(), "{format:?}");
        assert!(scaled.bytes.len() <= MAX_SENT_BYTES && !scaled.cut, "{format:?}");
        assert_eq!((scaled.mime, image_kind(&scaled.bytes)), (mime, Some(mime)), "{format:?}");
        assert_eq!(image::load_from_memory(&scaled.bytes).unwrap().dimensions(), sides, "{format:?}");
    }
}

#[test]
fn a_rotated_image_is_set_upright() {
    let upright = scale(turned(&flag(64, 32), 6)).unwrap();
    let image = image::load_from_memory(&upright.bytes).unwrap();
    assert_eq!((image.dimensions(), upright.mime), ((32, 64), "image/jpeg"));
    let [red, _, blue, _] = image.get_pixel(24, 8).0;
    assert!(red > 200 && blue < 50, "the left corner is now on the right");
    let as_it_is = turned(&flag(64, 32), 1);
    assert_eq!(scale(as_it_is.clone()).unwrap().bytes, as_it_is);
}

#[test]
fn an_unusable_image_is_reported_and_uses_no_memory() {
    let png = written(&noise(64), ImageFormat::Png);
    let cut = |format| {
        let bytes = written(&noise(64), format);
        bytes[..bytes.len() / 2].to_vec()
    };
    for (bytes, expect) in [
        (b"<svg/>".to_vec(), ImageProblem::Unknown),
        (Vec::new(), ImageProblem::Unknown),
        (b"\x89PNG\r\n\x1a\n and no more".to_vec(), ImageProblem::Damaged),
        (b"\xff\xd8\xff\xe0 and no more".to_vec(), ImageProblem::Damaged),
        (b"GIF89a".to_vec(), ImageProblem::Damaged),
        (b"RIFF\0\0\0\0WEBPVP8 ".to_vec(), ImageProblem::Damaged),
        (png[..png.len() / 2].to_vec(), ImageProblem::Damaged),
        (cut(ImageFormat::WebP), ImageProblem::Damaged),
        (cut(ImageFormat::Gif), ImageProblem::Damaged),
        (bomb(20_000, 20_000), ImageProblem::Huge(20_000, 20_000)),
        (bomb(u32::MAX >> 1, 1), ImageProblem::Damaged),
    ] {
        let shown: String = String::from_utf8_lossy(&bytes).chars().take(20).collect();
        assert_eq!(scale(bytes).unwrap_err(), expect, "{shown:?}");
    }
    let part = scale(cut(ImageFormat::Jpeg)).unwrap();
    assert!(part.cut && ends_whole(&part.bytes), "the available part of a photo is shown");
}

#[test]
fn transparent_images_get_a_white_background_in_opaque_formats() {
    let clear = image::RgbaImage::from_pixel(2, 2, image::Rgba([9, 9, 9, 0])).into();
    assert_eq!(on_white(&clear).to_rgb8().get_pixel(0, 0), &Rgb([255; 3]));
}
