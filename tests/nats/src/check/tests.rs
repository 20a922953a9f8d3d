//! Every kind of violation is found in a history that has it, and none in one that has not.

use super::*;

fn at(from_ms: u64, to_ms: u64, what: What) -> Record {
    Record { from: Duration::from_millis(from_ms), to: Duration::from_millis(to_ms), what }
}

fn write(from_ms: u64, uid: &str, outcome: Outcome) -> Record {
    at(from_ms, from_ms + 10, What::Write { uids: vec![uid.to_owned()], outcome })
}

fn rows(uid: &str) -> Vec<Row> {
    vec![Row { uid: uid.to_owned(), is_whole: true }]
}

/// For ten seconds.
fn grant(from_ms: u64, lease: u64, uid: &str) -> Record {
    at(from_ms, from_ms + 10, What::Grant { lease, term: Duration::from_secs(10), rows: rows(uid) })
}

fn read(from_ms: u64, uid: &str) -> Record {
    at(from_ms, from_ms + 10, What::Read { rows: rows(uid) })
}

fn ack(from_ms: u64, lease: u64, outcome: Outcome) -> Record {
    at(from_ms, from_ms + 10, What::Ack { lease, outcome })
}

fn give_back(from_ms: u64, lease: u64) -> Record {
    at(from_ms, from_ms + 10, What::Return { lease, outcome: Outcome::Unknown })
}

fn ask(from_ms: u64, known: &[&str]) -> Record {
    let known = known.iter().map(|uid| (*uid).to_owned()).collect();
    at(from_ms, from_ms + 10, What::Ask { uids: vec!["a".to_owned()], known })
}

fn claim(node: &str, epoch: u64) -> Record {
    at(0, 0, What::Claim { node: node.to_owned(), run: "run".to_owned(), epoch })
}

fn fault(from_ms: u64, to_ms: u64) -> Record {
    at(from_ms, to_ms, What::Fault { name: "kill".to_owned() })
}

const OK: Outcome = Outcome::Ok;
const REFUSED: Outcome = Outcome::Refused;
const UNKNOWN: Outcome = Outcome::Unknown;

fn held() -> Option<Fate> {
    Some(Fate::Held)
}

fn trained(lease: u64) -> Option<Fate> {
    Some(Fate::Trained { lease })
}

/// An ending with right books, in which the rollout `a` has this fate.
fn ending(fate: Option<Fate>) -> Ending {
    let one = |is: bool| u64::from(is);
    let books = Books {
        admitted: one(fate.is_some()),
        held: one(matches!(fate, Some(Fate::Held))),
        leased: one(matches!(fate, Some(Fate::Leased { .. }))),
        trained: one(matches!(fate, Some(Fate::Trained { .. }))),
        dropped: one(matches!(fate, Some(Fate::Dropped { .. }))),
    };
    Ending { fates: fate.into_iter().map(|fate| ("a".to_owned(), fate)).collect(), books }
}

#[track_caller]
fn finds(records: &[Record], fate: Option<Fate>, expected: &[Violation]) {
    assert_eq!(check(records, &ending(fate), Clocks::Agree), expected);
}

fn a() -> String {
    "a".to_owned()
}

#[test]
fn what_may_happen_is_not_reported() {
    let dropped = Some(Fate::Dropped { reason: "group_incomplete".to_owned() });
    let fine: Vec<(&str, Vec<Record>, Option<Fate>)> = vec![
        ("nothing", vec![], None),
        ("written", vec![write(0, "a", OK)], held()),
        ("dropped with a reason", vec![write(0, "a", OK)], dropped),
        ("unknown and there", vec![write(0, "a", UNKNOWN)], held()),
        ("unknown and not there", vec![write(0, "a", UNKNOWN)], None),
        ("refused after an unknown one", vec![write(0, "a", UNKNOWN), write(20, "a", REFUSED)], held()),
        ("refused", vec![write(0, "a", REFUSED)], None),
        ("asked while it was written", vec![write(0, "a", OK), ask(5, &[])], held()),
        ("acked", vec![write(0, "a", OK), grant(20, 1, "a"), ack(40, 1, OK)], trained(1)),
        (
            "acked again after no answer",
            vec![write(0, "a", OK), grant(20, 1, "a"), ack(40, 1, UNKNOWN), ack(60, 1, OK)],
            trained(1),
        ),
        (
            "returned without an answer, and granted again",
            vec![write(0, "a", OK), grant(20, 1, "a"), give_back(40, 1), grant(60, 2, "a"), ack(80, 2, OK)],
            trained(2),
        ),
        (
            "run out, granted again, and refused to the first",
            vec![
                write(0, "a", OK),
                grant(20, 1, "a"),
                grant(10_030, 2, "a"),
                ack(10_050, 1, REFUSED),
                ack(10_060, 2, OK),
            ],
            trained(2),
        ),
        (
            "read twice because the server was killed",
            vec![write(0, "a", OK), read(20, "a"), fault(31, 900), read(1000, "a")],
            trained(2),
        ),
        ("epochs of two nodes", vec![claim("n1", 1), claim("n2", 2), claim("n1", 1)], None),
    ];
    for (name, records, fate) in fine {
        assert_eq!(check(&records, &ending(fate), Clocks::Agree), [], "{name}");
    }
}

#[test]
fn answered_write_that_is_gone_is_lost() {
    finds(&[write(0, "a", UNKNOWN), write(20, "a", OK)], None, &[Violation::Lost { uid: a() }]);
}

#[test]
fn refused_write_that_is_there_was_smuggled_in() {
    finds(&[write(0, "a", REFUSED)], held(), &[Violation::Smuggled { uid: a() }]);
}

#[test]
fn delivered_rollout_was_written_by_somebody_and_is_whole() {
    let nobodys = [grant(0, 1, "a")];
    assert_eq!(
        check(&nobodys, &ending(None), Clocks::Agree),
        [Violation::Foreign { uid: a() }],
        "nobody wrote it"
    );
    let torn = vec![Row { uid: a(), is_whole: false }];
    let records = [write(0, "a", OK), at(20, 30, What::Read { rows: torn })];
    finds(&records, trained(1), &[Violation::Garbled { uid: a() }]);
}

#[test]
fn answered_write_that_a_later_question_does_not_find_is_stale() {
    let asked = Duration::from_millis(20);
    finds(&[write(0, "a", OK), ask(20, &[])], held(), &[Violation::Stale { uid: a(), asked }]);
    finds(&[write(0, "a", OK), ask(20, &["a"])], held(), &[]);
}

#[test]
fn two_acked_leases_have_nothing_in_common() {
    let records = [write(0, "a", OK), grant(20, 1, "a"), grant(20, 2, "a"), ack(40, 1, OK), ack(40, 2, OK)];
    let leases = [1, 2];
    let lost = Violation::AckLost { uid: a(), lease: 1, fate: trained(2) };
    finds(&records, trained(2), &[Violation::AckedTwice { uid: a(), leases }, lost]);
}

#[test]
fn acked_rollout_is_not_granted_again() {
    let records = [write(0, "a", OK), grant(20, 1, "a"), ack(40, 1, OK), grant(60, 2, "a")];
    let expected = [Violation::GrantedAfterAck { uid: a(), leases: [1, 2] }];
    finds(&records, trained(1), &expected);
    // No clock excuses it.
    assert_eq!(check(&records, &ending(trained(1)), Clocks::Differ), expected);
}

#[test]
fn rollout_of_a_lease_that_is_out_is_not_granted_to_another() {
    let records = [write(0, "a", OK), grant(20, 1, "a"), grant(60, 2, "a")];
    let fate = Some(Fate::Leased { lease: 2 });
    finds(&records, fate.clone(), &[Violation::Shared { uid: a(), leases: [1, 2] }]);
    assert_eq!(check(&records, &ending(fate), Clocks::Differ), []);
}

#[test]
fn number_of_a_lease_is_given_once() {
    let records = [write(0, "a", OK), grant(20, 1, "a"), grant(30, 1, "a")];
    finds(&records, Some(Fate::Leased { lease: 1 }), &[Violation::GrantedTwice { lease: 1 }]);
}

#[test]
fn lease_with_time_left_is_not_refused_unless_something_broke() {
    let records = [write(0, "a", OK), grant(20, 1, "a"), ack(40, 1, REFUSED)];
    finds(&records, held(), &[Violation::Forgotten { lease: 1 }]);
    let [first, second, third] = records;
    finds(&[first, second, fault(25, 26), third], held(), &[]);
}

#[test]
fn answered_ack_is_on_the_books() {
    let records = [write(0, "a", OK), grant(20, 1, "a"), ack(40, 1, OK)];
    for fate in [held(), trained(2), Some(Fate::Leased { lease: 1 })] {
        let lost = Violation::AckLost { uid: a(), lease: 1, fate: fate.clone() };
        finds(&records, fate, &[lost]);
    }
}

#[test]
fn read_that_arrived_is_final_while_nothing_is_broken() {
    let twice = [write(0, "a", OK), read(20, "a"), read(1000, "a")];
    finds(&twice, trained(1), &[Violation::ReadTwice { uid: a() }]);
    let granted = [write(0, "a", OK), read(20, "a"), grant(1000, 2, "a")];
    finds(&granted, trained(1), &[Violation::ReadTwice { uid: a() }]);
}

#[test]
fn books_add_up_and_count_what_is_there() {
    let mut wrong = ending(held());
    wrong.books.held = 0;
    let counted = ending(held()).books;
    let records = [write(0, "a", OK)];
    let expected = [
        Violation::Unbalanced { books: wrong.books.clone() },
        Violation::Miscounted { books: wrong.books.clone(), counted: counted.clone() },
    ];
    assert_eq!(check(&records, &wrong, Clocks::Agree), expected);
    // One rollout that is there twice: the columns add up, and there are too many.
    let mut doubled = ending(held());
    doubled.books = Books { admitted: 2, held: 2, ..Books::default() };
    let expected = [Violation::Miscounted { books: doubled.books.clone(), counted }];
    assert_eq!(check(&records, &doubled, Clocks::Agree), expected);
}

#[test]
fn epoch_has_one_owner() {
    let nodes = ["n1", "n2"].map(str::to_owned).into();
    let expected = [Violation::TwoOwners { run: "run".to_owned(), epoch: 3, nodes }];
    finds(&[claim("n1", 3), claim("n2", 3)], None, &expected);
}
