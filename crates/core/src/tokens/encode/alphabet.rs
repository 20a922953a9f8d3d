//! The disguise of byte-level vocabularies: every byte written as one printable character.
//!
//! GPT-2 chose it so that a vocabulary of bytes fits in a text file: printable Latin-1 stands for itself, and
//! the 68 others are counted up from U+0100.

/// The character that stands for `byte` in a byte-level vocabulary.
pub(super) fn char_of(byte: u8) -> char {
    match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        0..=b' ' => shifted(u32::from(byte)),
        0x7f..=0xa0 => shifted(u32::from(byte) - 0x7f + 33),
        0xad => shifted(67),
    }
}

/// The byte that `c` stands for, if it stands for one.
pub(super) fn byte_of(c: char) -> Option<u8> {
    let point = c as u32;
    match point {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(point).ok(),
        0x100..=0x120 => u8::try_from(point - 0x100).ok(),
        0x121..=0x142 => u8::try_from(point - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// Bytes as text, with those that are no whole character as `\xE2`.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02X}")));
    }
    text
}

/// The bytes that a token of the vocabulary stands for, if it is made of such characters only.
pub(super) fn bytes_of(token: &str) -> Option<Vec<u8>> {
    token.chars().map(byte_of).collect()
}

/// A token as the vocabulary writes it.
pub(super) fn token_of(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char_of(byte)).collect()
}

fn shifted(offset: u32) -> char {
    char::from_u32(0x100 + offset).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        for byte in 0..=255 {
            assert_eq!(byte_of(char_of(byte)), Some(byte), "byte {byte:#x} as {:?}", char_of(byte));
        }
        assert_eq!((0..=0x10ffff).filter_map(char::from_u32).filter_map(byte_of).count(), 256);
        assert_eq!((char_of(b' '), char_of(b'\n'), char_of(b'A')), ('Ġ', 'Ċ', 'A'));
    }
}
