//! The process of a generator: what it prints is heard, and nothing of it is left when it is stopped.

use rollyard_engine::generator::process::Process;
use rollyard_engine::lines::Printed;
use rollyard_test_engine::interpreter;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

/// Takes no notice of being asked to end, and neither does its worker.
const STUBBORN: &str = r#"
import signal, subprocess, sys, time
TASK_TYPE = "stubborn"
def run_rollout(data):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    worker = subprocess.Popen([sys.executable, "-c",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"],
        stdout=subprocess.PIPE)
    worker.stdout.readline()
    print(data["word"], file=sys.stderr)
    print("worker", worker.pid)
    time.sleep(600)
"#;

#[tokio::test]
async fn a_stopped_process_is_ended_with_its_workers_whatever_they_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stubborn_generator.py");
    std::fs::write(&file, STUBBORN).unwrap();
    let (heard, mut lines) = mpsc::channel(100);
    let printed = Printed::new(move |line| heard.try_send(line.to_owned()).unwrap());
    let payload = br#"{"word": "hello"}"#.to_vec();
    let process = Process::start(Some(&interpreter()), &file, payload, printed).unwrap();

    let mut said = Vec::new();
    let worker = loop {
        let line = tokio::time::timeout(Duration::from_secs(60), lines.recv()).await.unwrap().unwrap();
        if let Some(pid) = line.strip_prefix("worker ") {
            break format!("/proc/{pid}");
        }
        said.push(line);
    };
    assert!(Path::new(&worker).exists());
    let exit = process.wait(std::future::ready(())).await;
    assert_eq!((exit.code, exit.signal), (None, Some(9)), "{exit:?}");
    assert!(exit.last_lines.contains(&"hello".to_owned()), "{exit:?}, {said:?}");
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while std::fs::read_to_string(format!("{worker}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(std::time::Instant::now() < deadline, "{worker} is left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn an_interpreter_that_is_not_there_is_named() {
    let nowhere = Path::new("/nowhere/python");
    let error = Process::start(Some(nowhere), nowhere, Vec::new(), Printed::new(|_| ())).unwrap_err();
    assert!(
        error.to_string().contains("--python") && error.to_string().ends_with("/nowhere/python"),
        "{error}"
    );
}
