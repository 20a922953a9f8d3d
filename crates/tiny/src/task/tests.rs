//! Problems are right, apart, and shown in the very tokens that a workflow asks in.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::HashSet;

use super::*;
use crate::tokenizer::tokenizer;

const TASKS: [Task; 2] = [Task::Arithmetic, Task::Tool];

#[test]
fn what_is_held_out_is_never_trained_on_and_a_seed_says_what_it_is() {
    for task in TASKS {
        let Problems { train, held_out } = task.problems(7);
        assert_eq!(held_out.len(), HELD_OUT);
        let known: HashSet<&str> = train.iter().map(|problem| problem.question.as_str()).collect();
        assert_eq!(known.len(), train.len());
        assert!(held_out.iter().all(|problem| !known.contains(problem.question.as_str())));
        assert_eq!(task.problems(7).held_out, held_out);
        assert_ne!(task.problems(8).held_out, held_out);
    }
}

#[test]
fn answers_are_right() {
    for (task, question, answer) in
        [(Task::Arithmetic, "47+85", "132"), (Task::Arithmetic, "10+10", "20"), (Task::Tool, "6*7+15", "57")]
    {
        let Problems { train, held_out } = task.problems(1);
        let found = train.iter().chain(&held_out).find(|problem| problem.question == question).unwrap();
        assert_eq!(found.answer, answer);
    }
    assert_eq!(arithmetic::careless(47, 85), "22");
    assert_eq!(arithmetic::careless(11, 12), "23");
}

#[test]
fn the_teacher_is_as_careless_as_told() {
    let tokenizer = tokenizer().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let problem = Problem { question: "47+85".into(), answer: "132".into(), numbers: [47, 85, 0] };
    let right = (0..1000).filter(|_| {
        let lesson = Task::Arithmetic.lesson(&tokenizer, &problem, 70, &mut rng);
        lesson.taught() == 4
    });
    let right = right.count();
    assert!((250..350).contains(&right), "{right}");
}

#[test]
fn an_unknown_task_is_refused_with_those_there_are() {
    let error = "chess".parse::<Task>().unwrap_err();
    assert_eq!(error.to_string(), "there is no task \"chess\"; there are arithmetic and tool");
    assert_eq!("tool".parse::<Task>().unwrap(), Task::Tool);
}
