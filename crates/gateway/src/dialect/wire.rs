//! Puts JSON on the wire: as it is, or as a server-sent event.

use serde::Serialize;

/// A whole body.
pub(super) fn body(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    json(value, &mut out);
    out
}

/// An event without a name, as chat completions have them.
pub(super) fn data(value: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    json(value, out);
    out.extend_from_slice(b"\n\n");
}

/// An event with a name.
pub(super) fn event(name: &str, value: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    data(value, out);
}

fn json(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("memory takes every byte, and no map here has keys but texts");
}
