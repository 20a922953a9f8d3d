//! Word problems: real sums, worked out, with the slips that a learner makes.

use super::chance::Chance;
use super::task::{Attempt, Skill, Task, answer, run_out, think};

const SYSTEM: &str = "Solve the problem. Think inside <think> tags, then explain the solution and give the final \
                      result as \\boxed{…}.";

struct Problem {
    question: String,
    /// What a good solution says, in order.
    steps: Vec<String>,
    result: i64,
    unit: &'static str,
    /// A slip, and where it leads.
    slips: Vec<(String, i64)>,
    table: Option<String>,
}

pub(super) fn task(number: u64) -> Task {
    let problem = problem(number);
    Task {
        instance: format!("gsm-{:05}", 1200 + number * 37),
        system: SYSTEM.to_owned(),
        question: problem.question,
        truth: problem.result.to_string(),
    }
}

fn problem(number: u64) -> Problem {
    let mut chance = Chance::of([1, number, 0, 0]);
    match number % 7 {
        0 => bakery(&mut chance),
        1 => train(&mut chance),
        2 => tank(&mut chance),
        3 => jacket(&mut chance),
        4 => league(&mut chance),
        5 => garden(&mut chance),
        _ => library(&mut chance),
    }
}

fn bakery(chance: &mut Chance) -> Problem {
    let (trays, rolls, bag) = (chance.between(6, 14), 20 * chance.between(1, 3), chance.between(6, 9));
    let share = 10 * chance.between(3, 6);
    let name = chance.pick(&["Mira", "Jonas", "Amara", "Teodor"]);
    let all = trays * rolls;
    let sold = all * share / 100;
    let left = all - sold;
    Problem {
        question: format!(
            "{name} bakes {trays} trays of {rolls} rolls each. In the morning {share}% of them are sold. The rest is \
             packed into bags of {bag}. How many full bags are there?"
        ),
        steps: vec![
            format!("All rolls: {trays} × {rolls} = {all}."),
            format!("Sold in the morning: {share}% of {all} is {sold}."),
            format!("Left over: {all} − {sold} = {left}."),
            format!("Full bags of {bag}: {left} ÷ {bag} = {} with {} left over.", left / bag, left % bag),
        ],
        result: left / bag,
        unit: "bags",
        slips: vec![
            (format!("The bags hold what was sold, so {sold} ÷ {bag} gives {}.", sold / bag), sold / bag),
            (
                format!("{left} ÷ {bag} is a bit more than {}, so the last bag counts too.", left / bag),
                left / bag + 1,
            ),
        ],
        table: Some(format!(
            "| | rolls |\n|---|---:|\n| baked | {all} |\n| sold | {sold} |\n| left | {left} |"
        )),
    }
}

fn train(chance: &mut Chance) -> Problem {
    let (first, hours) = (10 * chance.between(6, 10), chance.between(2, 3));
    let (second, more) = (first + 30, hours);
    let (way, time) = (first * hours + second * more, hours + more);
    Problem {
        question: format!(
            "A train runs {hours} hours at {first} km/h, waits {} minutes at a border, and then runs {more} hours at \
             {second} km/h. How many kilometres has it gone?",
            10 * time
        ),
        steps: vec![
            format!("First part: {hours} h × {first} km/h = {} km.", first * hours),
            "The wait adds time but no distance.".to_owned(),
            format!("Second part: {more} h × {second} km/h = {} km.", second * more),
            format!("Together: {} + {} = {way} km.", first * hours, second * more),
        ],
        result: way,
        unit: "km",
        slips: vec![
            (
                format!("Both parts take {time} h, at {first} km/h: {time} × {first} = {}.", time * first),
                time * first,
            ),
            (format!("The wait of {} minutes costs {} km.", 10 * time, time * 10), way - time * 10),
        ],
        table: None,
    }
}

fn tank(chance: &mut Chance) -> Problem {
    let (pump, leak, minutes) = (chance.between(9, 16), chance.between(2, 5), chance.between(18, 40));
    let had = 10 * chance.between(4, 12);
    let holds = had + (pump - leak) * minutes;
    Problem {
        question: format!(
            "A tank that holds {holds} litres has {had} litres in it. A pump adds {pump} litres a minute while a \
             crack loses {leak} litres a minute. After how many minutes is the tank full?"
        ),
        steps: vec![
            format!("There is room for {holds} − {had} = {} litres.", holds - had),
            format!("Every minute adds {pump} − {leak} = {} litres.", pump - leak),
            format!("So it takes {} ÷ {} = {minutes} minutes.", holds - had, pump - leak),
        ],
        result: minutes,
        unit: "minutes",
        slips: vec![
            (
                format!("The pump alone needs {} ÷ {pump} = {} minutes.", holds - had, (holds - had) / pump),
                (holds - had) / pump,
            ),
            (format!("{holds} ÷ {} is about {}.", pump - leak, holds / (pump - leak)), holds / (pump - leak)),
        ],
        table: None,
    }
}

fn jacket(chance: &mut Chance) -> Problem {
    let (price, off) = (40 * chance.between(3, 8), 5 * chance.between(3, 7));
    let (count, voucher) = (chance.between(2, 4), 5 * chance.between(2, 6));
    let each = price * (100 - off) / 100;
    let total = each * count - voucher;
    Problem {
        question: format!(
            "A jacket costs ${price}. In the sale it is {off}% off. Noor buys {count} of them and then pays with a \
             voucher of ${voucher}. How many dollars does she still pay?"
        ),
        steps: vec![
            format!(
                "{off}% of {price} is {}, so one jacket costs {price} − {} = {each}.",
                price * off / 100,
                price * off / 100
            ),
            format!("{count} jackets: {count} × {each} = {}.", count * each),
            format!("Minus the voucher: {} − {voucher} = {total}.", count * each),
        ],
        result: total,
        unit: "dollars",
        slips: vec![
            (
                format!("The voucher counts for each jacket: {count} × ({each} − {voucher})."),
                count * (each - voucher),
            ),
            (
                format!("{off}% off means she pays {off}%: {}.", price * off / 100),
                count * (price * off / 100) - voucher,
            ),
        ],
        table: Some(format!(
            "| | dollars |\n|---|---:|\n| one jacket | {each} |\n| {count} jackets | {} |\n| voucher | −{voucher} |\n| **to pay** | **{total}** |",
            count * each
        )),
    }
}

fn league(chance: &mut Chance) -> Problem {
    let (teams, rained) = (chance.between(8, 14), chance.between(2, 5));
    let games = teams * (teams - 1) / 2;
    Problem {
        question: format!(
            "In a league of {teams} teams every team plays every other team once. {rained} games were rained off and \
             never played. How many games took place?"
        ),
        steps: vec![
            format!("Each of the {teams} teams has {} opponents.", teams - 1),
            format!(
                "Every game has two teams, so there are $\\frac{{{teams} \\cdot {}}}{{2}} = {games}$ games.",
                teams - 1
            ),
            format!("{games} − {rained} = {}.", games - rained),
        ],
        result: games - rained,
        unit: "games",
        slips: vec![
            (
                format!("{teams} × {} = {} games.", teams - 1, teams * (teams - 1)),
                teams * (teams - 1) - rained,
            ),
            (
                format!("With {teams} teams that is {teams} × {teams} ÷ 2 = {}.", teams * teams / 2),
                teams * teams / 2 - rained,
            ),
        ],
        table: None,
    }
}

fn garden(chance: &mut Chance) -> Problem {
    let (width, extra, gate) = (chance.between(8, 20), chance.between(3, 9), chance.between(1, 3));
    let around = 2 * (width + width + extra);
    Problem {
        question: format!(
            "A garden is {extra} metres longer than it is wide, and it is {width} metres wide. A fence goes around it \
             but for a gate of {gate} metres. How many metres of fence are needed?"
        ),
        steps: vec![
            format!("The length is {width} + {extra} = {} metres.", width + extra),
            format!("Once around: $2 \\cdot ({width} + {}) = {around}$ metres.", width + extra),
            format!("Without the gate: {around} − {gate} = {}.", around - gate),
        ],
        result: around - gate,
        unit: "metres",
        slips: vec![
            (
                format!("{width} × {} = {} metres.", width + extra, width * (width + extra)),
                width * (width + extra) - gate,
            ),
            (
                format!("{width} + {} = {}, and the gate takes {gate}.", width + extra, 2 * width + extra),
                2 * width + extra - gate,
            ),
        ],
        table: None,
    }
}

fn library(chance: &mut Chance) -> Problem {
    let (shelves, books) = (chance.between(12, 30), 4 * chance.between(6, 12));
    let (lent, back) = (chance.between(60, 140), chance.between(15, 55));
    let there = shelves * books * 3 / 4;
    let result = there - lent + back;
    Problem {
        question: format!(
            "A library has {shelves} shelves for {books} books each, and three quarters of the places are taken. \
             {lent} books are lent out and {back} are brought back. How many books are on the shelves now?"
        ),
        steps: vec![
            format!("Places: {shelves} × {books} = {}.", shelves * books),
            format!("Three quarters of them: {} × 3 ÷ 4 = {there}.", shelves * books),
            format!("After lending: {there} − {lent} = {}.", there - lent),
            format!("After the returns: {} + {back} = {result}.", there - lent),
        ],
        result,
        unit: "books",
        slips: vec![
            (format!("{there} − {lent} − {back} = {}.", there - lent - back), there - lent - back),
            (
                format!("A quarter of the places is {}.", shelves * books / 4),
                shelves * books / 4 - lent + back,
            ),
        ],
        table: None,
    }
}

pub(super) fn attempt(number: u64, chance: &mut Chance, skill: Skill) -> Attempt {
    let problem = problem(number);
    let mut attempt = Attempt::default();
    let is_right = chance.happens(skill.right);
    let (text, result) = solve(&problem, chance, is_right);
    let has_format = is_right || chance.happens(0.4 + skill.step as f64 / 120.0);
    let said = explain(&problem, chance, is_right, result, has_format);
    let mut whole = think(chance, &text, &said, &mut attempt);
    let is_cut = chance.happens(0.11 - skill.step as f64 * 0.0016);
    if is_cut {
        whole = run_out(chance, &whole, &mut attempt);
    }
    let correct = f64::from(u8::from(is_right && !is_cut));
    let format = f64::from(u8::from(has_format && !is_cut));
    let length = if chance.happens(0.1 - skill.step as f64 * 0.001) { 0.0 } else { 1.0 };
    attempt.score = correct * (0.8 + 0.1 * format + 0.1 * length);
    attempt.parts = vec![("correct", correct), ("format", format), ("length", length)];
    attempt.messages = vec![answer(whole)];
    attempt
}

fn solve(problem: &Problem, chance: &mut Chance, is_right: bool) -> (String, i64) {
    let mut lines = vec![
        chance
            .pick(&[
                "Let me read the question slowly.",
                "Okay, what is asked here?",
                "I will go through this step by step.",
                "First I write down what is known.",
            ])
            .to_owned(),
    ];
    let slip = problem.slips.get(chance.below(problem.slips.len())).filter(|_| !is_right);
    let kept = if slip.is_some() { problem.steps.len() - 1 } else { problem.steps.len() };
    for step in problem.steps.iter().take(kept) {
        if chance.happens(0.25) {
            let aside = [
                "Wait, is that right? Yes.",
                "That seems plausible.",
                "Next.",
                "Let me write it down.",
                "Hmm, one thing after the other.",
            ];
            lines.push(chance.pick(&aside).to_owned());
        }
        lines.push(step.clone());
    }
    let result = match slip {
        Some((why, result)) => {
            lines.push(why.clone());
            *result
        }
        None => problem.result,
    };
    if chance.happens(0.5) {
        let check = [
            "A quick check against the question: the unit fits and the size is plausible.",
            "Let me verify by going backwards: it comes out the same.",
            "The numbers are whole, which suggests that nothing went wrong.",
        ];
        lines.push(chance.pick(&check).to_owned());
    }
    (lines.join("\n"), result)
}

fn explain(problem: &Problem, chance: &mut Chance, is_right: bool, result: i64, has_format: bool) -> String {
    let mut text = String::new();
    let style = chance.below(3);
    if is_right && style > 0 {
        for (nth, step) in (1..).zip(&problem.steps) {
            let bullet = if style == 1 { format!("{nth}. ") } else { "- ".to_owned() };
            text.push_str(&format!("{bullet}{step}\n"));
        }
        text.push('\n');
    }
    if let Some(table) = problem.table.as_ref().filter(|_| is_right && chance.happens(0.6)) {
        text.push_str(table);
        text.push_str("\n\n");
    }
    if has_format {
        text.push_str(&format!("The answer is $\\boxed{{{result}}}$ {}.", problem.unit));
    } else {
        text.push_str(&format!("So I would say it is {result} {}.", problem.unit));
    }
    text
}
