//! Splits consecutive JSON documents in one stream of bytes.

/// Splits a stream of bytes into JSON documents. Bytes between the documents are dropped.
///
/// The caller limits [`Splitter::open_bytes`].
#[derive(Debug, Default)]
pub struct Splitter {
    document: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Splitter {
    /// Adds bytes and returns the completed documents.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut documents = Vec::new();
        for &byte in bytes {
            if self.depth == 0 && !matches!(byte, b'{' | b'[') {
                continue;
            }
            self.document.push(byte);
            if self.is_end(byte) {
                documents.push(std::mem::take(&mut self.document));
            }
        }
        documents
    }

    /// Returns the size of the incomplete document, in bytes.
    #[must_use]
    pub fn open_bytes(&self) -> usize {
        self.document.len()
    }

    /// Processes one byte and returns whether it ends a document.
    fn is_end(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}
