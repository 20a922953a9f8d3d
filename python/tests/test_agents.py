"""Agents that only know where to ask, as workflows: here, in worker processes, and as programs."""

from __future__ import annotations

import os
import pathlib
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import actors
import pytest

import rollyard
from rollyard import AgentWorkflow, GenerationConfig, RolloutExecutor
from testengine import StartEngine, until

Open: TypeAlias = Callable[..., RolloutExecutor]


@pytest.fixture
def opened(start_engine: StartEngine, tokenizer: rollyard.Tokenizer) -> Iterator[Open]:
    """Executors on an engine whose tokens the tokenizer knows."""
    engine = rollyard.SGLangEngine(start_engine("--set", '{"vocabulary": 600}').url)
    with ExitStack() as stack:

        def open_executor(**settings: Any) -> RolloutExecutor:
            given: dict[str, Any] = {"consumer_batch_size": 8, "attempts": 1, "tokenizer": tokenizer}
            return stack.enter_context(RolloutExecutor(engine, **(given | settings)))

        yield open_executor


def only(executor: RolloutExecutor, data: dict[str, Any], agent: Any, **more: Any) -> rollyard.EpisodeSample:
    executor.submit(data, agent, **more)
    [group] = executor.wait_groups(1, timeout=60)
    [sample] = group.samples
    return sample


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize(
    ("returned", "reward"), [(0.25, 0.25), (3, 3.0), (True, 1.0), ({"reward": 0.5}, 0.5)]
)
def test_what_an_agent_returns_is_its_reward(
    opened: Open, processes: int, returned: Any, reward: float
) -> None:
    sample = only(opened(processes=processes), {"prompt": "2+2?", "returns": returned}, actors.Agent)
    assert sample.reward == reward
    assert sample.rollout is not None and sample.rollout.exact
    assert sample.rollout.episode_reward == reward and len(sample.rollout.response_tokens) == 8
    assert [message["role"] for message in sample.messages] == ["user", "assistant"]


@pytest.mark.parametrize("processes", [0, 1])
def test_an_agent_is_a_class_an_instance_a_function_or_a_name(opened: Open, processes: int) -> None:
    executor = opened(processes=processes)
    data = {"prompt": "2+2?", "returns": 0.5}
    assert only(executor, data, "actors.Agent").reward == 0.5
    assert only(executor, data, actors.Agent, workflow_kwargs={"bonus": 7}).reward == 7
    assert only(executor, data, AgentWorkflow("actors.Agent", agent_kwargs={"bonus": 8})).reward == 8
    batch = executor.rollout_batch([data] * 2, "actors.run", group_size=2)
    assert batch["rewards"].tolist() == [0, 1, 0, 1]
    assert only(executor, data, actors.run).reward == 0
    if processes == 0:
        assert only(executor, data, actors.Agent(bonus=9)).reward == 9
    else:
        with pytest.raises(rollyard.WorkflowError, match="cannot be given a Agent that is made already"):
            executor.submit(data, actors.Agent())


def test_a_conversation_is_one_sample_that_goes_on_token_by_token(opened: Open) -> None:
    data = {"prompt": "one", "more": ["two", "three"], "returns": 1}
    sample = only(opened(), data, actors.Agent)
    assert sample.rollout is not None and sample.rollout.exact
    assert [tokens for tokens, _ in sample.segments] == [8, 8, 8]
    assert len(sample.messages) == 6 and sample.extra["session"].startswith("s")


def test_answers_may_have_rewards_of_their_own(opened: Open) -> None:
    executor = opened()
    data = {"prompt": "one", "more": ["two", "three"], "each": True}
    executor.submit(data, AgentWorkflow(actors.Agent, style="individual", discount=0.5))
    [group] = executor.wait_groups(1, timeout=60)
    assert [sample.reward for sample in group.samples] == [1.0, 2.0, 2.0]


@pytest.mark.parametrize("processes", [0, 1])
def test_a_reward_function_judges_the_last_answer(opened: Open, processes: int) -> None:
    agent = AgentWorkflow(
        actors.solves, reward=actors.answer_length, gconfig=GenerationConfig(max_new_tokens=11)
    )
    assert only(opened(processes=processes), {"prompt": "2+2?", "wanted": "user\n2+2?"}, agent).reward == 11


@pytest.mark.parametrize("processes", [0, 1])
def test_an_agent_that_goes_wrong_says_how_and_the_others_go_on(opened: Open, processes: int) -> None:
    executor = opened(processes=processes)
    for how, told in actors.WRONG:
        task = executor.submit({"how": how}, actors.Bad)
        with pytest.raises(rollyard.EpisodeError, match=told):
            executor.wait_for_task(task, timeout=60)
    assert executor.wait_for_task(executor.submit({"how": "reject"}, actors.Bad), timeout=60) is None
    good = executor.wait_for_task(executor.submit({"how": "well"}, actors.Bad), timeout=60)
    assert good is not None and good["rewards"].tolist() == [1.0]


@pytest.mark.parametrize("processes", [0, 1])
def test_an_agent_out_of_time_is_cancelled(opened: Open, processes: int) -> None:
    executor = opened(processes=processes)
    task = executor.submit({"how": "hang"}, AgentWorkflow(actors.Bad, timeout_secs=1.5))
    with pytest.raises(rollyard.EpisodeError, match=r"did not end within 1.5 s"):
        executor.wait_for_task(task, timeout=60)


def test_an_agent_that_reads_the_environment_has_its_process_to_itself(opened: Open) -> None:
    executor = opened(processes=2, max_concurrent_rollouts=16)
    batch = executor.rollout_batch([{"prompt": f"{n}?"} for n in range(8)], actors.ByEnvironment, timeout=60)
    assert batch["rewards"].tolist() == [1.0] * 8
    assert "OPENAI_API_KEY" not in os.environ or os.environ["OPENAI_API_KEY"][:3] != "sk-"
    with pytest.raises(rollyard.AgentWorkflowError, match="ByEnvironment.run takes none of base_url"):
        opened().submit({"prompt": "?"}, actors.ByEnvironment)


PROGRAM = """
import json, os, sys
from actors import blocking
data = json.load(sys.stdin)
told = blocking(os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"], sys.argv[1])
print(told["choices"][0]["message"]["content"])
print(json.dumps({"rewards": {told["id"]: data["worth"]}}))
"""


def test_a_program_is_an_agent_too(
    opened: Open, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "program.py").write_text(PROGRAM)
    agent = AgentWorkflow(command=f"{sys.executable} {tmp_path}/program.py {{prompt}}")
    executor = opened()
    sample = only(executor, {"prompt": "it's $(late)", "worth": 0.75}, agent)
    assert sample.reward == 0.75 and sample.messages[0]["content"] == "it's $(late)"
    failing = executor.submit({"prompt": "p"}, AgentWorkflow(command="echo no luck >&2; exit 3"))
    with pytest.raises(rollyard.EpisodeError, match="it ended with exit status: 3: no luck"):
        executor.wait_for_task(failing, timeout=60)


def is_gone(pid: int) -> bool:
    try:
        return ") Z " in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def test_a_closed_executor_leaves_no_program_and_no_port(opened: Open, tmp_path: pathlib.Path) -> None:
    executor = opened()
    assert executor._agents.addresses() == []
    executor.submit({}, AgentWorkflow(command=f"sleep 600 & echo $! > {tmp_path}/pid; wait"))
    pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), what="the pid"))
    [address] = executor._agents.addresses()
    host, port = address.split(":")
    socket.create_connection((host, int(port))).close()
    executor.close()
    until(lambda: is_gone(pid), what="the end of the program")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


WRONG_SETTINGS: list[tuple[Callable[[], Any], str]] = [
    (lambda: AgentWorkflow(), "give either an agent or a command"),
    (lambda: AgentWorkflow(actors.Agent, command="true"), "give either an agent or a command"),
    (lambda: AgentWorkflow(actors.Agent, reward="maht"), 'no reward is called "maht"'),
    (lambda: AgentWorkflow(actors.Agent, style="both"), "unknown variant `both`"),
    (lambda: AgentWorkflow(actors.Agent, gconfig=GenerationConfig(stop="x")), "stop is given, but an agent"),
    (lambda: AgentWorkflow(actors.Agent, timeout_secs=0), "budget.secs is 0, but must be above 0"),
]


@pytest.mark.parametrize(("make", "told"), WRONG_SETTINGS)
def test_settings_that_cannot_be_are_told(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(rollyard.WorkflowError, match=told):
        make()


def test_an_agent_that_cannot_be_run_says_what_it_needs(opened: Open) -> None:
    executor = opened()
    with pytest.raises(rollyard.AgentWorkflowError, match="NotAsync.run is not async"):
        executor.submit({}, actors.NotAsync)
    with pytest.raises(rollyard.WorkflowError, match="Agent cannot be made with color"):
        executor.submit({}, actors.Agent, workflow_kwargs={"color": "red"})
    with pytest.raises(rollyard.AgentWorkflowError, match="an agent needs the model's tokenizer"):
        opened(tokenizer=None).submit({}, actors.Agent)
    with pytest.raises(rollyard.WorkflowError, match="the agent's command is empty"):
        executor.submit({}, AgentWorkflow(command=" "))
