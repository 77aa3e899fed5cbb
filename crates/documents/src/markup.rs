//! Checks the nesting depth of untrusted XML, and rejects custom entities.

use crate::Error;
use quick_xml::{Reader, events::Event};
use std::io::BufRead;

/// Buffer size above which the memory is released after a tag, comment or text, in bytes.
const MAX_TOKEN_BYTES: usize = 64 * 1024 * 1024;

/// Scans XML without keeping it. Malformed XML is left to the actual reader.
pub(crate) fn examine(source: &mut impl BufRead, max_depth: usize) -> Result<(), Error> {
    let mut reader = Reader::from_reader(source);
    reader.config_mut().check_end_names = false;
    let (mut buffer, mut depth) = (Vec::new(), 0_usize);
    loop {
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::DocType(_)) => {
                let text = "it declares its own entities, which no such document needs";
                return Err(Error::Refused(text.to_owned()));
            }
            Ok(Event::Eof) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        if depth > max_depth {
            return Err(Error::TooLarge(format!("its elements are nested more than {max_depth} deep")));
        }
        if buffer.capacity() > MAX_TOKEN_BYTES {
            buffer = Vec::new();
        }
        buffer.clear();
    }
}
