//! Questions that need two searches, with tools that sometimes fail.

use serde_json::{Value, json};

use super::chance::Chance;
use super::task::{Attempt, Skill, Stop, Task, answer, call, calls, result, think};

const SYSTEM: &str = "Answer the question with the tools `search` and `open_page`. Several calls may be made at once. End with a \
                      line `Answer: …`.";

struct Fact {
    question: &'static str,
    query: &'static str,
    page: &'static str,
    /// What the page says, with the answer in it.
    text: &'static str,
    answer: &'static str,
    wrong: &'static str,
    other: &'static str,
}

const FACTS: [Fact; 15] = [
    Fact {
        question: "In which year was the tower named after the engineer whose company also built the inner frame of the Statue of Liberty completed?",
        query: "engineer inner frame Statue of Liberty company",
        page: "Eiffel Tower",
        text: "The Eiffel Tower is a wrought-iron lattice tower in Paris. It was built by the company of Gustave Eiffel from 1887 to 1889 for a world's fair.",
        answer: "1889",
        wrong: "1887",
        other: "Statue of Liberty",
    },
    Fact {
        question: "How many moons does the planet have that was found by calculation before it was seen?",
        query: "planet discovered by calculation before observation",
        page: "Neptune",
        text: "Neptune was predicted by Le Verrier and observed in 1846. It has 16 known moons; the largest is Triton.",
        answer: "16",
        wrong: "14",
        other: "Urbain Le Verrier",
    },
    Fact {
        question: "In which year was the author of the novel about the captain Ahab born?",
        query: "novel captain Ahab author",
        page: "Herman Melville",
        text: "Herman Melville was an American novelist, born in New York City in 1819. Moby-Dick appeared in 1851.",
        answer: "1819",
        wrong: "1851",
        other: "Moby-Dick",
    },
    Fact {
        question: "What is the height in metres of the highest mountain of the country whose capital is Dodoma?",
        query: "country capital Dodoma highest mountain",
        page: "Mount Kilimanjaro",
        text: "Kilimanjaro in Tanzania is the highest mountain of Africa. Its summit, Uhuru Peak, is 5,895 metres above the sea.",
        answer: "5895",
        wrong: "5199",
        other: "Dodoma",
    },
    Fact {
        question: "In which year did the scientist who coined the word radioactivity win her second Nobel Prize?",
        query: "who coined the word radioactivity",
        page: "Marie Curie",
        text: "Marie Curie coined the word radioactivity. She shared the prize for physics in 1903 and won that for chemistry in 1911.",
        answer: "1911",
        wrong: "1903",
        other: "Radioactivity",
    },
    Fact {
        question: "How many keys does the instrument have that Bartolomeo Cristofori invented, in its usual form today?",
        query: "Bartolomeo Cristofori invention",
        page: "Piano",
        text: "The piano was invented by Bartolomeo Cristofori around 1700. Most modern pianos have 88 keys, 52 white and 36 black.",
        answer: "88",
        wrong: "52",
        other: "Bartolomeo Cristofori",
    },
    Fact {
        question: "In which year was the bridge opened that joins San Francisco and Marin County?",
        query: "bridge San Francisco Marin County",
        page: "Golden Gate Bridge",
        text: "The Golden Gate Bridge joins San Francisco and Marin County. Work began in 1933, and it was opened in 1937.",
        answer: "1937",
        wrong: "1933",
        other: "Marin County",
    },
    Fact {
        question: "What is the atomic number of the element named after the home country of the woman who found it?",
        query: "element named after home country of discoverer",
        page: "Polonium",
        text: "Polonium, found by Marie and Pierre Curie in 1898, is named after Poland. Its symbol is Po and its atomic number is 84.",
        answer: "84",
        wrong: "88",
        other: "Radium",
    },
    Fact {
        question: "In which year did the ship that Robert Falcon Scott first went south with leave Dundee?",
        query: "Scott first Antarctic ship built Dundee",
        page: "RRS Discovery",
        text: "RRS Discovery was built in Dundee and launched in March 1901. It left for the Antarctic in August 1901 under Scott.",
        answer: "1901",
        wrong: "1910",
        other: "Terra Nova",
    },
    Fact {
        question: "How many symphonies did the composer of the Moldau's friend from Nelahozeves write?",
        query: "composer born in Nelahozeves symphonies",
        page: "Antonín Dvořák",
        text: "Antonín Dvořák was born in Nelahozeves in 1841. He wrote 9 symphonies, the last in New York.",
        answer: "9",
        wrong: "6",
        other: "Bedřich Smetana",
    },
    Fact {
        question: "What is the length in kilometres of the longest river of the country in which Lyon lies?",
        query: "longest river of France",
        page: "Loire",
        text: "The Loire is the longest river of France, with a length of 1,006 kilometres. Lyon lies on the Rhône and the Saône.",
        answer: "1006",
        wrong: "813",
        other: "Rhône",
    },
    Fact {
        question: "In which year was the first woman in space born?",
        query: "first woman in space",
        page: "Valentina Tereshkova",
        text: "Valentina Tereshkova, born in 1937, flew on Vostok 6 in June 1963 and went around the Earth 48 times.",
        answer: "1937",
        wrong: "1963",
        other: "Vostok 6",
    },
    Fact {
        question: "How many cantons has the country whose federal city is Bern?",
        query: "country federal city Bern cantons",
        page: "Switzerland",
        text: "Switzerland is a federal state of 26 cantons, with federal authorities in Bern.",
        answer: "26",
        wrong: "23",
        other: "Bern",
    },
    Fact {
        question: "In which year was the programming language released whose name comes from a British comedy group?",
        query: "programming language named after British comedy group",
        page: "Python (programming language)",
        text: "Guido van Rossum began Python in 1989 and first released it in 1991. The name refers to Monty Python.",
        answer: "1991",
        wrong: "1989",
        other: "Monty Python",
    },
    Fact {
        question: "How deep in metres is the deepest lake of the world, as last measured?",
        query: "deepest lake of the world",
        page: "Lake Baikal",
        text: "Lake Baikal in Siberia is the deepest lake of the world, with a greatest depth of 1,642 metres.",
        answer: "1642",
        wrong: "1470",
        other: "Lake Tanganyika",
    },
];

fn fact(number: u64) -> &'static Fact {
    let [first, ..] = &FACTS;
    FACTS.get(number as usize % FACTS.len()).unwrap_or(first)
}

pub(super) fn task(number: u64) -> Task {
    let fact = fact(number);
    Task {
        instance: format!("hop2-{:04}", 310 + number * 13),
        system: SYSTEM.to_owned(),
        question: fact.question.to_owned(),
        truth: fact.answer.to_owned(),
    }
}

pub(super) fn attempt(number: u64, chance: &mut Chance, skill: Skill) -> Attempt {
    let fact = fact(number);
    let mut attempt = Attempt::default();
    let is_right = chance.happens(skill.right);
    let mut ids = Ids::new(chance);
    look_up(fact, chance, &mut ids, &mut attempt.messages);
    if !is_right && chance.happens(0.25) {
        // Early models forget to answer: the last thing is a call that nobody runs.
        let id = ids.next();
        attempt.messages.push(calls(None, vec![call(&id, "search", &json!({"query": fact.question}))]));
        attempt.stop = Stop::ToolCalls;
        return attempt;
    }
    let picked = if is_right { fact.answer } else { fact.wrong };
    let thoughts = format!(
        "{} {}",
        chance.pick(&["The page answers it.", "Now I have both parts.", "Let me put this together."]),
        if is_right {
            format!("\"{}\" names {picked}, and that is what the question asks for.", fact.page)
        } else {
            format!("I see {picked} there. There is another number too, but this one comes first.")
        }
    );
    let said = format!(
        "{} **{}** has what is needed.\n\n> {}\n\nAnswer: {picked}",
        chance.pick(&["I looked it up.", "From two searches:", "This is what I found."]),
        fact.page,
        fact.text
    );
    let whole = think(chance, &thoughts, &said, &mut attempt);
    attempt.messages.push(answer(whole));
    // Fewer calls are worth a little.
    let spent = attempt.messages.len() as f64 * 0.01;
    attempt.score = if is_right { ((1.0 - spent) * 100.0).round() / 100.0 } else { 0.0 };
    attempt
}

struct Ids(i64);

impl Ids {
    fn new(chance: &mut Chance) -> Self {
        Self(chance.between(0x10_0000, 0xff_ffff))
    }

    fn next(&mut self) -> String {
        self.0 += 1;
        format!("call_{:06x}", self.0)
    }
}

fn look_up(fact: &Fact, chance: &mut Chance, ids: &mut Ids, messages: &mut Vec<Value>) {
    let thought = chance.happens(0.6).then(|| {
        format!(
            "<think>\nTwo things are needed here: who or what is meant, and then the number. I begin with \"{}\".\n</think>",
            fact.query
        )
    });
    if chance.happens(0.3) {
        let (one, two) = (ids.next(), ids.next());
        messages.push(calls(
            thought,
            vec![
                call(&one, "search", &json!({"query": fact.query})),
                call(&two, "search", &json!({"query": fact.page, "limit": 3})),
            ],
        ));
        messages.push(result(&one, "search", hits(fact)));
        messages.push(result(&two, "search", hits(fact)));
    } else {
        let id = ids.next();
        messages.push(calls(thought, vec![call(&id, "search", &json!({"query": fact.query}))]));
        messages.push(result(&id, "search", hits(fact)));
    }
    let id = ids.next();
    messages.push(calls(None, vec![call(&id, "open_page", &json!({"title": fact.page}))]));
    if chance.happens(0.18) {
        messages.push(result(&id, "open_page", FAILED));
        let id = ids.next();
        let thought = "<think>\nThe tool timed out. I try the same page once more.\n</think>".to_owned();
        messages.push(calls(Some(thought), vec![call(&id, "open_page", &json!({"title": fact.page}))]));
        messages.push(result(&id, "open_page", page(fact)));
    } else {
        messages.push(result(&id, "open_page", page(fact)));
    }
}

const FAILED: &str = "\u{1b}[31mTraceback (most recent call last):\u{1b}[0m\n  File \u{1b}[35m\"/app/tools/pages.py\"\u{1b}[0m, line \u{1b}[35m48\u{1b}[0m, in \u{1b}[35mopen_page\u{1b}[0m\n    body = client.get(url, timeout=\u{1b}[36m5\u{1b}[0m)\n  File \u{1b}[35m\"/app/tools/http.py\"\u{1b}[0m, line \u{1b}[35m112\u{1b}[0m, in \u{1b}[35mget\u{1b}[0m\n    raise ToolTimeout(url)\n\u{1b}[1;31mToolTimeout\u{1b}[0m: no answer within 5 s";

fn hits(fact: &Fact) -> String {
    let beginning: String = fact.text.chars().take(48).collect();
    json!({"query": fact.query, "results": [
        {"rank": 1, "title": fact.page, "snippet": format!("{beginning}…")},
        {"rank": 2, "title": fact.other, "snippet": format!("See also: {}.", fact.page)},
    ]})
    .to_string()
}

fn page(fact: &Fact) -> String {
    json!({"title": fact.page, "text": fact.text, "links": [fact.other], "bytes": fact.text.len()})
        .to_string()
}

/// Goes through a catalogue page by page: more than a hundred messages.
pub(super) fn long_walk(number: u64, chance: &mut Chance) -> Attempt {
    let fact = fact(number);
    let mut attempt = Attempt::default();
    let mut ids = Ids::new(chance);
    for nth in 1..=64 {
        let id = ids.next();
        let thought = (nth % 9 == 1).then(|| {
            format!(
                "<think>\nPage {nth} of the list. {} was not among the earlier ones.\n</think>",
                fact.page
            )
        });
        messages_of_page(&mut attempt.messages, thought, &id, nth, chance);
    }
    look_up(fact, chance, &mut ids, &mut attempt.messages);
    attempt.messages.push(answer(format!(
        "I went through the whole list before I thought of searching.\n\nAnswer: {}",
        fact.answer
    )));
    attempt.score = 0.4;
    attempt
}

fn messages_of_page(
    messages: &mut Vec<Value>,
    thought: Option<String>,
    id: &str,
    nth: i64,
    chance: &mut Chance,
) {
    messages.push(calls(
        thought,
        vec![call(id, "open_page", &json!({"title": format!("List of articles, page {nth}")}))],
    ));
    let titles: Vec<String> = (0..6)
        .map(|_| {
            let what =
                chance.pick(&["Bridge", "River", "Lighthouse", "Observatory", "Opera", "Canal", "Glacier"]);
            format!("{what} no. {}", chance.between(100, 9999))
        })
        .collect();
    messages.push(result(
        id,
        "open_page",
        json!({"page": nth, "titles": titles, "next": nth + 1}).to_string(),
    ));
}

/// Opens a log of about a megabyte, and answers from it.
pub(super) fn huge(number: u64, chance: &mut Chance) -> Attempt {
    let fact = fact(number);
    let mut attempt = Attempt::default();
    let mut ids = Ids::new(chance);
    let id = ids.next();
    let mut log = String::with_capacity(1 << 20);
    let mut line = 0;
    while log.len() < 1_000_000 {
        line += 1;
        let level = if chance.happens(0.01) { "WARN " } else { "INFO " };
        log.push_str(&format!(
            "2026-03-02T{:02}:{:02}:{:02}.{:03}Z {level} crawler[{}] fetched /wiki/{:06} status={} bytes={} ms={}\n",
            8 + line / 3600 % 12,
            line / 60 % 60,
            line % 60,
            chance.between(0, 999),
            chance.between(1, 16),
            chance.between(1, 999_999),
            chance.pick(&[200, 200, 200, 200, 304, 404, 503]),
            chance.between(900, 180_000),
            chance.between(4, 900),
        ));
    }
    attempt.messages.push(calls(
        Some("<think>\nThe crawler's log may say where the page lies.\n</think>".to_owned()),
        vec![call(&id, "open_page", &json!({"title": "crawler.log"}))],
    ));
    attempt.messages.push(result(&id, "open_page", log));
    look_up(fact, chance, &mut ids, &mut attempt.messages);
    attempt
        .messages
        .push(answer(format!("The log did not help; the page itself did.\n\nAnswer: {}", fact.answer)));
    attempt.score = 0.9;
    attempt
}
