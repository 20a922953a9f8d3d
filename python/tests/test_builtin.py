"""Workflows that run in Rust, and where what they make can go."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rollyard
import yarns
from rollyard import GenerationConfig, MultiTurnWorkflow, RolloutExecutor, SingleTurnWorkflow
from serving import Serve
from testengine import StartEngine

SHORT = GenerationConfig(max_new_tokens=8)


@pytest.fixture
def executor(start_engine: StartEngine) -> Iterator[RolloutExecutor]:
    # Tokens that the small tokenizer knows.
    server = start_engine("--set", '{"vocabulary": 600}')
    with (
        rollyard.SGLangEngine(server.url) as engine,
        RolloutExecutor(engine, consumer_batch_size=8, max_head_offpolicyness=None, attempts=1) as executor,
    ):
        yield executor


def test_a_prompt_is_asked_in_tokens_and_judged_in_rust(
    executor: RolloutExecutor, tokenizer: rollyard.Tokenizer
) -> None:
    workflow = SingleTurnWorkflow(SHORT, reward="math", tokenizer=tokenizer)
    prompts = [{"prompt": f"{n}+{n}?", "answer": 2 * n} for n in range(4)]
    batch = executor.rollout_batch(prompts, workflow, group_size=2)
    assert batch["input_ids"].shape[0] == 8
    assert batch["loss_mask"].sum() == 64 and batch["rewards"].dtype == np.float32
    assert len({row.tobytes() for row in batch["input_ids"]}) == 8
    prompt = batch["input_ids"][0][: int(np.argmax(batch["loss_mask"][0]))]
    assert "0+0?" in tokenizer.decode(prompt.tolist())


def test_a_reward_in_python_runs_in_a_worker_process(
    executor: RolloutExecutor, tokenizer: rollyard.Tokenizer
) -> None:
    workflow = SingleTurnWorkflow(SHORT, reward=yarns.reward_of_length, tokenizer=tokenizer)
    batch = executor.rollout_batch([{"prompt": "?", "bonus": 5}], workflow, group_size=2)
    assert batch["rewards"].tolist() == [13.0, 13.0]


def test_what_cannot_be_imported_or_understood_is_said_at_once(tokenizer: rollyard.Tokenizer) -> None:
    def local(*args: Any, **kwargs: Any) -> float:
        return 0.0

    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: SingleTurnWorkflow(reward=local), "it is not in a module; put it into one"),
        (lambda: SingleTurnWorkflow(reward="maths!"), "no reward is called"),
        (lambda: MultiTurnWorkflow(syntax="xml"), "unknown variant `xml`"),
        (lambda: SingleTurnWorkflow(GenerationConfig(temperature=float("nan"))), "cannot be written as JSON"),
    ]
    for make, expected in cases:
        with pytest.raises(rollyard.WorkflowError, match=expected):
            make()


def test_a_reward_that_is_no_number_fails_the_episode_by_name(
    executor: RolloutExecutor, tokenizer: rollyard.Tokenizer
) -> None:
    workflow = SingleTurnWorkflow(SHORT, reward="yarns.reward_nan", tokenizer=tokenizer)
    with pytest.raises(rollyard.EpisodeError, match="reward of yarns.reward_nan is NaN"):
        executor.rollout_batch([{"prompt": "?"}], workflow)


def test_a_model_calls_functions_of_python(start_engine: StartEngine) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "double", "arguments": '{"number": 21}'}}
    answers = [{"role": "assistant", "content": None, "tool_calls": [call]}, "It is \\boxed{42}."]
    server = start_engine("--set", json.dumps({"answers": answers}))
    workflow = MultiTurnWorkflow(SHORT, reward="math", tools=[yarns.double])
    with (
        rollyard.OpenAIEngine(server.url) as engine,
        RolloutExecutor(engine, attempts=1) as executor,
    ):
        executor.submit({"prompt": "2*21?", "answer": 42}, workflow)
        # Text makes no tensors, and is not lost for that.
        with pytest.raises(rollyard.BatchError, match="wait_groups has it"):
            executor.wait(1, timeout=60)
        [group] = executor.wait_groups(1, timeout=60)
    [sample] = group.samples
    assert [said["role"] for said in sample.messages] == ["user", "assistant", "tool", "assistant"]
    assert sample.messages[2]["content"] == "42"
    assert sample.reward == 1.0


def test_groups_go_to_a_yard_and_are_trained_from_there(
    start_engine: StartEngine, serve: Serve, tokenizer: rollyard.Tokenizer
) -> None:
    yard = serve("--group-size", "2", "--validate", "sized")
    server = start_engine("--set", '{"vocabulary": 600}')
    workflow = SingleTurnWorkflow(SHORT, tokenizer=tokenizer)
    for _ in range(2):
        with (
            rollyard.SGLangEngine(server.url) as engine,
            RolloutExecutor(engine, max_head_offpolicyness=None, yard=yard.url, keep=False) as executor,
        ):
            for n in range(3):
                executor.submit({"instance_id": f"i{n}", "prompt": f"{n}?"}, workflow, group_size=2)
            executor.idle()
            assert executor.stats()["accepted"] == 3 and executor.stats()["ready"] == 0
    with rollyard.Client(yard.url) as client:
        # The second executor made other rollouts of the same prompts.
        assert client.books().admitted == 12
        lease = client.lease(groups=6)
        assert lease is not None
        with lease:
            rollouts = lease.to_rollouts()
    assert len(rollouts) == 12 and all(rollout.response_tokens.size == 8 for rollout in rollouts)


def test_a_yard_that_is_not_there_is_said_before_anything_is_made(engine: rollyard.SGLangEngine) -> None:
    with pytest.raises(rollyard.ExecutorError, match="the yard cannot be reached"):
        RolloutExecutor(engine, yard="http://127.0.0.1:1")


def test_the_dump_is_also_an_archive_for_the_viewer(
    engine: rollyard.SGLangEngine, tmp_path: pathlib.Path
) -> None:
    with RolloutExecutor(
        engine, fileroot=tmp_path, experiment_name="e", trial_name="t", max_head_offpolicyness=None
    ) as executor:
        executor.rollout_batch([{"reward": 3}, {"reject": True}], yarns.Plain, group_size=2)
    lines = [json.loads(line) for line in (tmp_path / "e/t/rollouts.jsonl").read_text().splitlines()]
    told = sorted((line["attributes"]["sample_index"], line["attributes"]["status"]) for line in lines)
    assert told == [(0, "accepted"), (0, "accepted"), (1, "rejected"), (1, "rejected")]


def test_answers_are_compared_by_what_they_mean() -> None:
    for answer, truth, same in [
        ("1/2", "0.5", True),
        ("\\frac{1}{2}", "0.6", False),
        ("{1,2}", "{2,1}", True),
    ]:
        assert rollyard.verify_answer(answer, truth) is same
    assert rollyard.extract_answer("so \\boxed{\\frac{1}{2}}.") == "\\frac{1}{2}"
    assert rollyard.extract_answer("I do not know") is None
