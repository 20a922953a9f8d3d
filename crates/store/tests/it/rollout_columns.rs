//! What goes into columns comes out of them, and nothing else does.

use crate::rollout_samples::{about, exactly, row, rows};
use proptest::prelude::*;
use rollyard_core::rollout::Metadata;
use rollyard_store::rollouts::columns::{decode, encode};
use rollyard_store::rollouts::{About, ColumnsError, Decoded, OwnedRow, Row};

fn bytes_of(rows: &[OwnedRow], about: &About) -> Vec<u8> {
    encode(&rows.iter().map(OwnedRow::as_row).collect::<Vec<_>>(), about).unwrap()
}

fn small() -> (Vec<OwnedRow>, Vec<u8>) {
    let rows: Vec<_> = (0..3).map(row).collect();
    let bytes = bytes_of(&rows, &about());
    (rows, bytes)
}

/// Every row that came out went in, and those that did not come out are reported.
#[track_caller]
fn check_is_part_of(decoded: &Decoded, rows: &[OwnedRow], what: impl std::fmt::Display) {
    assert_eq!(decoded.about, about(), "{what}");
    assert_eq!(decoded.rows.len() + decoded.damaged.len(), rows.len(), "{what}");
    let mut left = rows.to_vec();
    for damaged in decoded.damaged.iter().rev() {
        left.remove(damaged.row);
    }
    assert_eq!(exactly(&decoded.rows), exactly(&left), "{what}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rollouts_come_back_to_the_bit(rows in rows(), timestamp in -1e18..1e18f64, weight_step: i64, text in ".{0,9}") {
        let metadata = Metadata { worker_id: text.clone(), timestamp, weight_step, version: 7 };
        let about = About { metadata, extras: [(text.clone(), text)].into() };
        let decoded = decode(&bytes_of(&rows, &about)).unwrap();
        prop_assert_eq!(&decoded.about, &about);
        prop_assert_eq!(decoded.about.metadata.timestamp.to_bits(), timestamp.to_bits());
        prop_assert_eq!(exactly(&decoded.rows), exactly(&rows));
        prop_assert_eq!(decoded.damaged, vec![]);
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&bytes).is_err());
    }
}

#[test]
fn a_flipped_bit_costs_its_row_or_the_file_and_never_makes_another_rollout() {
    let (rows, bytes) = small();
    let (mut refused, mut damaged, mut unharmed) = (0, 0, 0);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            match decode(&bytes) {
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
                Ok(decoded) => {
                    check_is_part_of(&decoded, &rows, format!("byte {at}, bit {bit}"));
                    if decoded.damaged.is_empty() { unharmed += 1 } else { damaged += 1 }
                }
            }
        }
    }
    // All three happen: flips in lengths, in values, and in what only fills up to a multiple of 64 bytes.
    assert!(refused > 1000 && damaged > 1000 && unharmed > 1000, "{refused} {damaged} {unharmed}");
}

#[test]
fn every_byte_set_to_its_extremes_is_survived() {
    let (rows, bytes) = small();
    for at in 0..bytes.len() {
        for value in [0x00, 0x7f, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            if let Ok(decoded) = decode(&bytes) {
                check_is_part_of(&decoded, &rows, format!("byte {at} is {value}"));
            }
        }
    }
}

#[test]
fn a_cut_file_is_refused_unless_only_its_end_mark_is_missing() {
    let (rows, bytes) = small();
    for len in 0..bytes.len() {
        match decode(&bytes[..len]) {
            Err(error) => assert!(len != bytes.len() - 8 && !error.to_string().is_empty(), "{len}: {error}"),
            Ok(decoded) => {
                assert_eq!(len, bytes.len() - 8);
                check_is_part_of(&decoded, &rows, len);
            }
        }
    }
}

#[test]
fn the_place_in_memory_does_not_matter() {
    let (rows, bytes) = small();
    for shift in 0..9 {
        let shifted = [vec![0; shift], bytes.clone()].concat();
        check_is_part_of(&decode(&shifted[shift..]).unwrap(), &rows, shift);
    }
}

#[test]
fn a_damaged_row_is_told_with_its_group_and_the_others_are_given() {
    let (rows, bytes) = small();
    let uid = bytes.windows(5).position(|window| window == b"uid-2").unwrap();
    let mut bytes = bytes;
    bytes[uid] = b'U';
    let decoded = decode(&bytes).unwrap();
    assert_eq!(exactly(&decoded.rows), exactly(&rows[..2]));
    let [damaged] = &decoded.damaged[..] else { panic!("{:?}", decoded.damaged) };
    assert_eq!((damaged.row, damaged.group), (2, 1));
    assert!(damaged.to_string().starts_with("row 2 of group 1 is damaged: its digest is "), "{damaged}");
}

/// Replaces bytes that occur once by as many others.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let found: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    let [at] = found[..] else { panic!("{from:?} is there {} times", found.len()) };
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

#[test]
fn what_is_not_ours_is_refused_by_name() {
    let (_, bytes) = small();
    let cases: [(&[u8], &[u8], ColumnsError); 4] = [
        (b"rollyard.format", b"rollyard.Format", ColumnsError::NotRollouts { key: "rollyard.format" }),
        (b"token_rewards", b"token_Rewards", ColumnsError::NoColumn { column: "token_rewards" }),
        (b"rollyard.rows", b"rollyard.Rows", ColumnsError::NotRollouts { key: "rollyard.rows" }),
        (b"0.1", b"x.1", ColumnsError::About { key: "rollyard.timestamp", value: "x.1".into() }),
    ];
    for (from, to, expected) in cases {
        assert_eq!(decode(&replaced(&bytes, from, to)).unwrap_err(), expected);
    }
    let other = replaced(&bytes, b"a\nb", b"a\nc");
    assert!(matches!(decode(&other), Err(ColumnsError::AboutDigest { .. })));
    let stranger = encode(&[], &About::default()).unwrap();
    assert_eq!(decode(&stranger[..8]).unwrap_err(), ColumnsError::Cut { at: 8 });
    assert!(
        decode(b"PK\x03\x04 something else")
            .unwrap_err()
            .to_string()
            .starts_with("this is not an Arrow stream")
    );
}

#[test]
fn an_unknown_format_is_told_with_what_to_do() {
    let (_, bytes) = small();
    // The value of a key stands close to it in the schema.
    let key = bytes.windows(15).position(|window| window == b"rollyard.format").unwrap();
    let near = key - 40..key + 40;
    let at = near.into_iter().find(|&at| bytes[at - 4..at + 2] == [1, 0, 0, 0, b'1', 0]).unwrap();
    let mut bytes = bytes;
    bytes[at] = b'2';
    let error = decode(&bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the rollouts are in format 2, but this build reads format 1; use a newer build"
    );
}

#[test]
fn an_empty_batch_is_a_batch() {
    let decoded = decode(&encode(&[], &about()).unwrap()).unwrap();
    assert_eq!(decoded, Decoded { about: about(), rows: vec![], damaged: vec![] });
}

#[test]
fn the_same_rows_are_the_same_bytes() {
    assert_eq!(small().1, small().1);
}

#[test]
fn what_need_not_be_said_takes_no_room() {
    let plain = row(1);
    let row = Row { uid: None, advantage: None, used: None, ..plain.as_row() };
    let (one, many) = (encode(&[row], &about()).unwrap(), encode(&vec![row; 1001], &about()).unwrap());
    // Seven tokens and four log-probs, two names, a worker, ten numbers: no mask, versions or rewards.
    assert!((many.len() - one.len()) / 1000 < 180, "{}", (many.len() - one.len()) / 1000);
}

#[test]
fn a_batch_of_no_time_is_refused() {
    let about =
        About { metadata: Metadata { timestamp: f64::NAN, ..Metadata::default() }, ..About::default() };
    let error = encode(&[], &about).unwrap_err();
    assert_eq!(error.to_string(), "the batch's timestamp is NaN, but must be a finite number");
}
