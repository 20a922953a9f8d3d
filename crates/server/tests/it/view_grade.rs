//! Grading jobs against an engine that answers what it is told to.

use super::server::eventually;
use super::view::Viewed;
use rollyard_server::{Grader, Settings};
use rollyard_test_engine::{Settings as EngineSettings, TestEngine};
use serde_json::{Value, json};

const KEY: &str = "sk-very-secret";

/// A model that answers every question the same, and a server that may ask it.
struct Graded {
    viewed: Viewed,
    view: String,
    engine: TestEngine,
    runtime: tokio::runtime::Runtime,
}

fn answer() -> Value {
    let quotes = ["The answer  is", "words that nobody said"];
    json!(json!({"score": 0.75, "reasoning": "good enough", "quotes": quotes}).to_string())
}

fn settings(engine: &TestEngine) -> Settings {
    let grader = Grader { key: Some(KEY.to_owned()), at_once: 2, ..Grader::of(engine.url()) };
    Settings { grader: Some(grader), ..Settings::default() }
}

impl Graded {
    fn start(engine: EngineSettings) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let engine = runtime.block_on(TestEngine::start(engine)).unwrap();
        let viewed = Viewed::start_with(settings(&engine));
        let view = viewed.open_usual();
        Self { viewed, view, engine, runtime }
    }

    fn ask(&self, what: Value) -> (u16, Value) {
        self.viewed.server.post(&format!("/api/view/{}/grade", self.view), what)
    }

    fn begin(&self, what: Value) -> String {
        let (status, job) = self.ask(what);
        assert_eq!(status, 202, "{job}");
        job["job"].as_str().unwrap().to_owned()
    }

    fn job(&self, job: &str) -> Value {
        self.viewed.server.get(&format!("/api/view/jobs/{job}")).1
    }

    fn once(&self, job: &str, status: &str) -> Value {
        eventually(status, || self.job(job)["status"] == status);
        self.job(job)
    }

    fn restart(self) -> Self {
        let Self { viewed, view, engine, runtime } = self;
        let viewed = viewed.restart(settings(&engine), |_| {});
        Self { viewed, view, engine, runtime }
    }
}

#[test]
fn rollouts_are_graded_once_and_quotes_are_checked() {
    let graded = Graded::start(EngineSettings { answers: vec![answer()], ..EngineSettings::default() });
    let what = json!({"filter": "step == 1 AND difficulty == 1", "metrics": ["helpfulness", "coherence"]});
    let estimate = |graded: &Graded| {
        let what = json!({"filter": "step == 1 AND difficulty == 1", "metrics": ["helpfulness"], "model": "test-model"});
        graded.viewed.server.post(&format!("/api/view/{}/grade/estimate", graded.view), what).1
    };
    let before = estimate(&graded);
    assert_eq!((&before["rollouts"], &before["questions"]), (&json!(4), &json!(4)));
    assert!(before["input_tokens"].as_u64().unwrap() > 100, "{before}");
    let job = graded.begin(what.clone());
    let done = graded.once(&job, "done");
    assert_eq!(
        (&done["graded"], &done["failed"], &done["model"]),
        (&json!(8), &json!(0), &json!("test-model")),
        "{done}"
    );

    let id = graded.viewed.first_id(&graded.view, "rollout_n == 112");
    let notes = graded.viewed.get(&graded.view, &format!("/rollouts/{id}"))["annotations"].clone();
    assert_eq!(notes.as_array().unwrap().len(), 2, "{notes:#}");
    let note = &notes[0];
    assert_eq!(
        (&note["score"], &note["reasoning"], &note["by"]),
        (&json!(0.75), &json!("good enough"), &json!("model:test-model"))
    );
    assert_eq!(note["quotes"][0]["found"], true);
    let span = &note["quotes"][0]["span"];
    assert_eq!((&span["message"], &span["channel"]), (&json!(2), &json!("assistant")));
    assert_eq!(note["quotes"][1], json!({"text": "words that nobody said", "found": false}));

    let again = graded.begin(what);
    let done = graded.once(&again, "done");
    assert_eq!((&done["graded"], &done["skipped"]), (&json!(0), &json!(8)), "{done}");
    assert_eq!(estimate(&graded)["questions"], 0);
    let events: Vec<(String, Value)> =
        graded.viewed.events(&format!("/api/view/jobs/{again}/progress")).collect();
    assert_eq!(events.last().unwrap().0, "done");
    assert_eq!(graded.viewed.server.get("/api/view/jobs").1[0]["job"], json!(again));
}

#[test]
fn a_job_is_stopped_and_gone_on_with() {
    let graded =
        Graded::start(EngineSettings { answers: vec![answer()], hang: true, ..EngineSettings::default() });
    let ids: Vec<String> =
        [100, 101, 102].map(|n| graded.viewed.first_id(&graded.view, &format!("rollout_n == {n}"))).to_vec();
    let own =
        json!({"name": "brevity", "description": "How short it is.", "kind": "float", "min": 0, "max": 1});
    let job = graded.begin(json!({"ids": ids, "metrics": [own], "model": "m"}));
    assert_eq!(graded.job(&job)["status"], "running");
    let (status, stopped) = graded.viewed.server.delete(&format!("/api/view/jobs/{job}"));
    assert_eq!(
        (status, &stopped["status"], &stopped["graded"]),
        (200, &json!("cancelled"), &json!(0)),
        "{stopped}"
    );
    graded.engine.change(|settings| settings.hang = false);
    // Cancelled is cancelled, whoever starts.
    let graded = graded.restart();
    assert_eq!(graded.job(&job)["status"], "cancelled");
    let (status, _) = graded.viewed.server.post(&format!("/api/view/jobs/{job}/resume"), json!({}));
    assert_eq!(status, 202);
    assert_eq!(graded.once(&job, "done")["graded"], 3);
}

#[test]
fn a_job_goes_on_after_a_restart_of_the_server() {
    let graded = Graded::start(EngineSettings { answers: vec![answer()], ..EngineSettings::default() });
    let what = |filter: &str| json!({"filter": filter, "metrics": ["accuracy"], "model": "m"});
    let first = graded.begin(what("step == 1"));
    graded.once(&first, "done");
    graded.engine.change(|settings| settings.hang = true);
    let job = graded.begin(what("step <= 2"));
    eventually("the questions that are answered", || graded.job(&job)["skipped"] == 16);
    let graded = graded.restart();
    graded.engine.change(|settings| settings.hang = false);
    let done = graded.once(&job, "done");
    assert_eq!(
        (&done["skipped"], &done["graded"], &done["failed"]),
        (&json!(16), &json!(16), &json!(0)),
        "{done}"
    );
    let notes = graded.viewed.server.get("/api/view/annotations?kind=grade").1;
    assert_eq!(notes["total"], 32);
}

#[test]
fn a_model_that_answers_nonsense_ends_the_job_with_the_reason() {
    let graded = Graded::start(EngineSettings {
        answers: vec![json!("I would rather not.")],
        ..EngineSettings::default()
    });
    let job = graded.begin(json!({"filter": "", "metrics": ["safety"], "limit": 40}));
    let failed = graded.once(&job, "failed");
    let errors = failed["errors"].to_string();
    assert!(errors.contains("no JSON object with a score") && errors.contains("rather not"), "{failed:#}");
    assert!(failed["failed"].as_u64().unwrap() < 10, "{failed}");
}

#[test]
fn the_key_goes_nowhere_but_to_the_grader() {
    let refusal = format!("Incorrect API key provided: {KEY}");
    let graded = Graded::start(EngineSettings {
        raw_answers: vec![json!({"error": refusal}).to_string(); 50],
        ..EngineSettings::default()
    });
    let job = graded.begin(json!({"filter": "", "metrics": ["safety"], "limit": 10, "model": "m"}));
    graded.once(&job, "failed");
    let told = [graded.job(&job), graded.viewed.server.get("/api/view/graders").1];
    for answer in &told {
        assert!(!answer.to_string().contains(KEY), "{answer}");
    }
    assert!(
        told[1]["metrics"].as_array().unwrap().len() == 5 && told[1]["configured"] == true,
        "{}",
        told[1]
    );
    let dir = graded.viewed.server.dir.as_ref().unwrap().path().join("view/jobs");
    for file in std::fs::read_dir(dir).unwrap() {
        assert!(!std::fs::read_to_string(file.unwrap().path()).unwrap().contains(KEY));
    }
}

#[test]
fn what_cannot_be_graded_is_said_before_anybody_is_asked() {
    let graded = Graded::start(EngineSettings::default());
    for (what, status, part) in [
        (json!({"filter": "", "metrics": []}), 400, "metrics"),
        (json!({"filter": "", "metrics": ["speed"]}), 400, "helpfulness"),
        (json!({"metrics": ["safety"]}), 400, "filter"),
        (json!({"filter": "rewrd > 1", "metrics": ["safety"]}), 400, "rewrd"),
        (json!({"filter": "step == 99", "metrics": ["safety"]}), 400, "no rollout"),
        (json!({"filter": "", "metrics": ["safety"], "limit": 10_001}), 400, "10000"),
        (json!({"filter": "", "metrics": ["safety"], "base_url": "http://evil"}), 403, "evil"),
        (json!({"ids": ["00000000000000000000000000000000"], "metrics": ["safety"]}), 404, "no rollout"),
    ] {
        let (got, error) = graded.ask(what.clone());
        let message = error["error"]["message"].as_str().unwrap_or_default();
        assert!(got == status && message.contains(part), "{what}: {got} {error}");
    }
    assert_eq!(graded.viewed.server.get("/api/view/jobs").1, json!([]));
    let without = Viewed::start();
    let view = without.open_usual();
    let (status, error) =
        without.server.post(&format!("/api/view/{view}/grade"), json!({"filter": "", "metrics": ["safety"]}));
    assert_eq!((status, &error["error"]["code"]), (409, &json!("no_grader")));
}
