//! Detects executables by their first bytes. A skill must not contain native programs.

/// Number of leading bytes that are compared.
pub(crate) const MAGIC_LEN: usize = 4;

/// Returns the kind of program indicated by the first bytes of a file.
pub(crate) fn program(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x7f, b'E', b'L', b'F', ..] => Some("ELF"),
        [b'M', b'Z', ..] => Some("PE or DOS"),
        [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => Some("Mach-O"),
        // Java class files begin with the same bytes and are rejected as well.
        [0xca, 0xfe, 0xba, 0xbe | 0xbf, ..] | [0xbe | 0xbf, 0xba, 0xfe, 0xca, ..] => Some("Mach-O or Java"),
        [0x00, b'a', b's', b'm', ..] => Some("WebAssembly"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_recognized_by_their_first_bytes() {
        let check = |head: &[u8], expect: Option<&str>| assert_eq!(program(head), expect, "{head:?}");
        check(b"\x7fELF\x02", Some("ELF"));
        check(b"MZ\x90\0", Some("PE or DOS"));
        check(b"\xcf\xfa\xed\xfe", Some("Mach-O"));
        check(b"\xfe\xed\xfa\xce", Some("Mach-O"));
        check(b"\xca\xfe\xba\xbe", Some("Mach-O or Java"));
        check(b"\0asm", Some("WebAssembly"));
        check(b"#!/bin/sh", None);
        check(b"\x89PNG", None);
        check(b"", None);
        check(b"M", None);
    }
}
