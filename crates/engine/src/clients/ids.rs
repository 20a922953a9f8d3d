//! Token ids as JSON, quickly: a prompt of a hundred thousand tokens is sent with every turn of a long conversation.

/// Four digits for every number below ten thousand.
static DIGITS: [[u8; 4]; 10_000] = digits();

#[expect(
    clippy::indexing_slicing,
    reason = "runs when it is compiled, and would not compile if it were wrong"
)]
const fn digits() -> [[u8; 4]; 10_000] {
    let mut table = [[b'0'; 4]; 10_000];
    let mut number = 0;
    while number < 10_000 {
        let mut rest = number;
        let mut at = 4;
        while at > 0 {
            at -= 1;
            table[number][at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        number += 1;
    }
    table
}

/// Puts a list of ids first into an object that was written without them.
pub(super) fn insert(name: &str, ids: &[i32], object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + name.len() + ids.len() * 7 + 8);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":[");
    for (at, id) in ids.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push(&mut out, *id);
    }
    out.push(b']');
    let rest = object.strip_prefix(b"{").unwrap_or(object);
    if rest != b"}" {
        out.push(b',');
    }
    out.extend_from_slice(rest);
    out
}

fn push(out: &mut Vec<u8>, id: i32) {
    let Ok(number) = usize::try_from(id) else { return out.extend_from_slice(id.to_string().as_bytes()) };
    let (high, low) = (number / 10_000, number % 10_000);
    if high == 0 {
        return trimmed(out, low);
    }
    match DIGITS.get(high).zip(DIGITS.get(low)) {
        Some((_, last)) => {
            trimmed(out, high);
            out.extend_from_slice(last);
        }
        None => out.extend_from_slice(id.to_string().as_bytes()),
    }
}

/// Without the zeros before it.
fn trimmed(out: &mut Vec<u8>, number: usize) {
    let zeros = usize::from(number < 1000) + usize::from(number < 100) + usize::from(number < 10);
    out.extend_from_slice(DIGITS.get(number).and_then(|digits| digits.get(zeros..)).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_are_the_json_that_they_would_be(ids in prop::collection::vec(prop_oneof![0..20_000, any::<i32>()], 0..50)) {
            let object = insert("ids", &ids, br#"{"a":1}"#);
            let read: serde_json::Value = serde_json::from_slice(&object).unwrap();
            prop_assert_eq!(&read, &serde_json::json!({"ids": ids, "a": 1}));
            prop_assert_eq!(insert("ids", &ids, b"{}"), serde_json::to_vec(&serde_json::json!({"ids": ids})).unwrap());
        }
    }
}
