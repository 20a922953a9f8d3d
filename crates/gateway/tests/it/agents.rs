//! Programs that only know `OPENAI_BASE_URL`, as workflows.

use crate::scripted::{Echo, tokenizer};
use rollyard_engine::episode::{Context, Data, EpisodeError, Trajectory, Workflow};
use rollyard_engine::generate::SharedEngine;
use rollyard_engine::reward::reward_fn;
use rollyard_gateway::agent::{AgentRecipe, AgentWorkflow, CommandAgent, Desk};
use rollyard_gateway::model::{ANY_NAME, ModelSettings};
use rollyard_gateway::session::export::Style;
use serde_json::json;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn desk() -> Arc<Desk> {
    let (context_tokens, grammar) = (None, None);
    let aliases = vec![ANY_NAME.to_owned()];
    Desk::new(ModelSettings {
        name: "echo".to_owned(),
        aliases,
        tokenizer: tokenizer(),
        context_tokens,
        grammar,
    })
}

/// `how` is what agent.py is told on its command line.
async fn workflow(desk: &Arc<Desk>, how: &str, recipe: AgentRecipe) -> AgentWorkflow {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agent.py");
    let agent = CommandAgent::new(&format!("python3 {} {how}", script.display())).unwrap();
    recipe.build(Arc::clone(desk), None).await.unwrap().with(Arc::new(agent))
}

async fn run(
    workflow: &AgentWorkflow,
    engine: &Arc<Echo>,
    data: &str,
    sample_idx: u32,
) -> Result<Option<Trajectory>, EpisodeError> {
    let run = "r".into();
    let context = Context { run, task_id: 7, sample_idx, attempt: 0, is_eval: false, seed: 100 };
    let engine: SharedEngine = Arc::clone(engine) as _;
    workflow.run_episode(&engine, &Data::parse(data).unwrap(), &context).await
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_gone(pid: &str) -> bool {
    // A process that has ended and was not yet waited for counts as gone.
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_asked_is_its_rollout_to_the_token() {
    let (desk, engine) = (desk(), Echo::new(true));
    let workflow = workflow(&desk, "chat {prompt} 'and then?'", AgentRecipe::default()).await;
    let data = json!({"prompt": "it's $(late)", "reward": 0.25, "id": "q1", "env_name": "sums"}).to_string();
    let trajectory = run(&workflow, &engine, &data, 0).await.unwrap().unwrap();
    let [sample] = trajectory.samples.try_into().unwrap();
    let rollout = sample.rollout.unwrap();
    assert!(rollout.is_exact());
    assert_eq!((rollout.episode_reward, sample.reward), (0.25, 0.25));
    assert_eq!((&*rollout.env_name, &*rollout.env_example_id), ("sums", "q1"));

    let [first, second] = engine.prompts().try_into().unwrap();
    assert_eq!(rollout.prompt_tokens(), first);
    // The second prompt goes on from the first with what was sampled, and nothing else.
    let tokens = [rollout.prompt_tokens(), rollout.response_tokens()].concat();
    assert!(tokens.starts_with(&second) && tokens.len() > second.len());
    let said: Vec<String> = sample.messages.iter().map(|message| message.get().to_owned()).collect();
    assert_eq!(said.len(), 4);
    assert!(said[1].contains("You said it's $(late)") && said[3].contains("You said and then?"), "{said:?}");
    // Turns that the agent gives no seed have one of their own.
    assert_eq!(engine.seeds(), [Some(100), Some(101)]);
    desk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_anthropics_is_recorded_too() {
    let (desk, engine) = (desk(), Echo::new(true));
    let workflow = workflow(&desk, "claude hello", AgentRecipe::default()).await;
    let trajectory = run(&workflow, &engine, "{}", 0).await.unwrap().unwrap();
    assert_eq!(trajectory.samples[0].reward, 1.0);
    assert_eq!(trajectory.samples[0].rollout.as_ref().unwrap().prompt_tokens(), engine.prompts()[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_rewards_of_their_own() {
    let (desk, engine) = (desk(), Echo::new(true));
    let recipe = AgentRecipe { style: Style::Individual, discount: 0.5, ..AgentRecipe::default() };
    let workflow = workflow(&desk, "each one two three", recipe).await;
    let trajectory = run(&workflow, &engine, "{}", 0).await.unwrap().unwrap();
    let rewards: Vec<f64> = trajectory.samples.iter().map(|sample| sample.reward).collect();
    // 0 + 0.5 * (1 + 0.5 * 2), 1 + 0.5 * 2, 2
    assert_eq!(rewards, [1.0, 2.0, 2.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reward_function_judges_the_last_answer_and_needs_no_last_line() {
    let (desk, engine) = (desk(), Echo::new(true));
    let mut workflow = workflow(&desk, "chat one two", AgentRecipe::default()).await;
    workflow.plan.reward = Some(reward_fn("length", |judged| {
        assert!(judged.prompt.contains("<|im_start|>user\ntwo<|im_end|>"), "{}", judged.prompt);
        assert_eq!((judged.completion, judged.messages.len()), ("You said two", 4));
        judged.completion.len() as f64
    }));
    let trajectory = run(&workflow, &engine, r#"{"reward": "no number"}"#, 0).await.unwrap().unwrap();
    assert_eq!(trajectory.samples[0].reward, 12.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_goes_wrong_says_how() {
    let (desk, engine) = (desk(), Echo::new(true));
    for (how, expect) in [
        ("crashes", "the agent failed: it ended with exit status: 1: the agent has had enough"),
        ("never", "the agent never asked; does it use OPENAI_BASE_URL"),
        ("says 'I am done'", "the last line of the agent is \"I am done\", but must be its reward"),
        ("says nan", "the reward of the agent is NaN"),
        (
            "says '{\"rewards\": {\"chatcmpl-s0-0\": 1}}'",
            "interaction_id is \"chatcmpl-s0-0\", but the session has no such answer",
        ),
        ("{repo}", "the agent's command has a place {repo}, but the data has no such field"),
    ] {
        let workflow = workflow(&desk, how, AgentRecipe::default()).await;
        let error = run(&workflow, &engine, "{}", 0).await.unwrap_err().to_string();
        assert!(error.starts_with(expect), "{how}: {error}");
    }
    let workflow = workflow(&desk, "says null", AgentRecipe::default()).await;
    assert!(run(&workflow, &engine, "{}", 0).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_out_of_time_is_killed_with_its_children() {
    let (desk, engine) = (desk(), Echo::new(true));
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mut recipe = AgentRecipe::default();
    recipe.budget.secs = 3.0;
    let workflow = workflow(&desk, &format!("hangs {}", pids.display()), recipe).await;
    let error = run(&workflow, &engine, "{}", 0).await.unwrap_err();
    assert_eq!(error.to_string(), "the episode did not end within 3 s");
    for pid in std::fs::read_to_string(&pids).unwrap().split(' ') {
        until("the agent is gone", || is_gone(pid)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_desk_that_is_closed_leaves_no_agent_and_no_port() {
    let (desk, engine) = (desk(), Echo::new(true));
    let folder = tempfile::tempdir().unwrap();
    let files = ["dropped", "closed"].map(|name| folder.path().join(name));
    let mut episodes = Vec::new();
    for file in &files {
        let workflow = workflow(&desk, &format!("hangs {}", file.display()), AgentRecipe::default()).await;
        let engine = Arc::clone(&engine);
        episodes.push(tokio::spawn(async move { run(&workflow, &engine, "{}", 0).await }));
    }
    let pids = |at: usize| std::fs::read_to_string(&files[at]).unwrap_or_default();
    until("both run", || pids(0).contains(' ') && pids(1).contains(' ')).await;
    let [address] = desk.addresses().try_into().unwrap();
    let closed = episodes.pop().unwrap();
    let dropped = episodes.pop().unwrap();
    dropped.abort();
    for pid in pids(0).split(' ') {
        until("the agent of a dropped episode is gone", || is_gone(pid)).await;
    }
    assert!(pids(1).split(' ').all(|pid| !is_gone(pid)));
    TcpStream::connect(address).unwrap();

    desk.close().await;
    let error = closed.await.unwrap().unwrap_err().to_string();
    assert_eq!(error, "the executor was closed");
    for pid in pids(1).split(' ') {
        until("the agent of a closed desk is gone", || is_gone(pid)).await;
    }
    assert!(TcpStream::connect(address).is_err());
    let workflow = workflow(&desk, "says 1", AgentRecipe::default()).await;
    assert_eq!(run(&workflow, &engine, "{}", 0).await.unwrap_err().to_string(), "the engine is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn episodes_at_once_do_not_mix() {
    let (desk, engine) = (desk(), Echo::new(true));
    let workflow = workflow(&desk, "chat {prompt} {prompt}", AgentRecipe::default()).await;
    let episodes = (0..4).map(|nth| {
        let (workflow, engine) = (workflow.clone(), Arc::clone(&engine));
        let data = json!({"prompt": format!("task {nth}"), "reward": nth}).to_string();
        tokio::spawn(async move { run(&workflow, &engine, &data, nth).await })
    });
    for (nth, episode) in episodes.collect::<Vec<_>>().into_iter().enumerate() {
        let trajectory = episode.await.unwrap().unwrap().unwrap();
        let [sample] = trajectory.samples.try_into().unwrap();
        assert_eq!(sample.reward, nth as f64);
        for message in &sample.messages {
            assert!(message.get().contains(&format!("task {nth}")), "{message}");
        }
    }
    assert_eq!(desk.addresses().len(), 1);
    // Another engine has a gateway of its own.
    run(&workflow, &Echo::new(true), r#"{"prompt": "p"}"#, 0).await.unwrap();
    assert_eq!(desk.addresses().len(), 2);
}

#[tokio::test]
async fn an_engine_that_only_speaks_text_is_refused_for_good() {
    let desk = desk();
    let workflow = workflow(&desk, "says 1", AgentRecipe::default()).await;
    let error = run(&workflow, &Echo::new(false), "{}", 0).await.unwrap_err();
    assert!(error.to_string().contains("this engine only speaks text"), "{error}");
    assert!(!error.may_pass());
}
