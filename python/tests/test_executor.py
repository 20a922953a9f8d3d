"""The executor on episodes of this process: paced, filtered, retried, cancelled."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rollyard
import yarns
from rollyard import RolloutExecutor, stats
from testengine import StartEngine, TestEngine, ask, until


@pytest.fixture
def executor(engine: rollyard.SGLangEngine) -> Iterator[RolloutExecutor]:
    with RolloutExecutor(
        engine, consumer_batch_size=4, max_head_offpolicyness=1, attempts=1, max_concurrent_rollouts=32
    ) as executor:
        yield executor


def test_groups_come_back_as_one_dict_in_the_order_they_were_submitted(executor: RolloutExecutor) -> None:
    for length in (8, 4, 6):
        kwargs = {"max_new_tokens": length}
        executor.submit({"reward": length}, yarns.Plain, workflow_kwargs=kwargs, group_size=2)
    batch = executor.wait(3, timeout=30)
    assert sorted(batch) == ["attention_mask", "input_ids", "logprobs", "loss_mask", "rewards", "versions"]
    assert batch["input_ids"].shape == (6, 11) and batch["input_ids"].dtype == np.int32
    assert sorted(batch["attention_mask"].sum(1)) == [7, 7, 9, 9, 11, 11]
    assert sorted(batch["rewards"]) == [4, 4, 6, 6, 8, 8]
    # Every member of a group has a seed of its own.
    assert len({row.tobytes() for row in batch["input_ids"]}) == 6
    assert executor.stats()["accepted"] == 3


def test_torch_comes_back_as_torch(executor: RolloutExecutor) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed here; JAX shows the same")

    class Torch(yarns.Plain):
        async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any]:
            row = await super().arun_episode(engine, data)
            assert row is not None
            return {key: torch.from_numpy(array) for key, array in row.items()}

    batch = executor.rollout_batch([{}] * 2, Torch())
    assert all(isinstance(tensor, torch.Tensor) for tensor in batch.values())


def test_jax_comes_back_as_jax(executor: RolloutExecutor) -> None:
    import jax

    class Jax(yarns.Plain):
        async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any]:
            row = await super().arun_episode(engine, data)
            assert row is not None
            return {key: jax.numpy.asarray(array) for key, array in row.items()}

    batch = executor.rollout_batch([{}] * 2, Jax())
    assert all(isinstance(tensor, jax.Array) for tensor in batch.values())


def test_interactions_are_rows_of_one_dict(executor: RolloutExecutor) -> None:
    batch = executor.rollout_batch([{}], yarns.Talk())
    assert batch["loss_mask"].sum(1).tolist() == [3, 5] and batch["rewards"].tolist() == [0, 1]


def test_groups_come_sample_by_sample_with_their_rollouts(executor: RolloutExecutor) -> None:
    task = executor.submit({"reward": 3}, yarns.Plain, group_size=2)
    [group] = executor.wait_groups(1, timeout=30)
    assert (group.task_id, group.data, group.is_eval) == (task, {"reward": 3}, False)
    assert [sample.sample_idx for sample in group.samples] == [0, 1]
    for sample in group.samples:
        assert sample.rollout is not None and sample.rollout.prompt_tokens.tolist() == [1, 2, 3]
        assert len(sample.rollout.response_tokens) == 8 and sample.segments == [(8, 0)]
        assert sample.reward == sample.rollout.episode_reward == 3


@pytest.mark.parametrize("processes", [0, 1])
def test_an_engine_that_only_speaks_text_gives_messages(start_engine: StartEngine, processes: int) -> None:
    engine = rollyard.OpenAIEngine(start_engine("--answer", "It is 4.").url)
    with RolloutExecutor(engine, consumer_batch_size=2, processes=processes) as executor:
        executor.submit({"question": "2+2?"}, yarns.Chats)
        [group] = executor.wait_groups(1, timeout=30)
        [sample] = group.samples
        assert sample.rollout is None and sample.reward == 0.25 and sample.extra == {"interaction": "only"}
        assert [message["content"] for message in sample.messages] == ["2+2?", "It is 4."]
        executor.submit({"question": "2+2?"}, yarns.Chats)
        with pytest.raises(rollyard.BatchError, match="only text, because the engine gives no tokens"):
            executor.wait(1, timeout=30)


def test_every_task_is_written_down(engine: rollyard.SGLangEngine, tmp_path: pathlib.Path) -> None:
    with RolloutExecutor(
        engine, fileroot=tmp_path, experiment_name="e", trial_name="t", consumer_batch_size=2, attempts=1
    ) as executor:
        executor.submit({"reward": 3}, yarns.Plain, group_size=2)
        executor.wait(1, timeout=30)
    [file] = tmp_path.glob("e/t/rollout/*/*.jsonl")
    assert file.relative_to(tmp_path).parts[:4] == ("e", "t", "rollout", "0")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["sample_idx"], line["reward"], line["prompt_len"], line["seqlen"]) for line in lines] == [
        (0, 3.0, 3, 11),
        (1, 3.0, 3, 11),
    ]


def test_what_is_rejected_is_none_and_no_failure(executor: RolloutExecutor) -> None:
    task = executor.submit({"reject": True}, yarns.Plain)
    assert executor.wait_for_task(task, timeout=30) is None
    # One of a group that takes something out of the data does not take it from the others.
    task = executor.submit({"reject": True}, yarns.Plain, group_size=3)
    assert executor.wait_for_task(task, timeout=30) is None
    counts = executor.stats()
    assert (counts["rejected"], counts["failed"]) == (2, 0)


def test_the_filter_sees_the_group_and_decides(executor: RolloutExecutor) -> None:
    def wanted(batch: dict[str, Any]) -> bool:
        assert batch["rewards"].shape == (2,)
        if batch["rewards"][0] == 3:
            raise ValueError("this one is odd")
        return bool(batch["rewards"].mean() > 1)

    data = [{"reward": reward} for reward in (1, 2, 3)]
    batch = executor.rollout_batch(data, yarns.Plain, should_accept_fn=wanted, group_size=2)
    assert batch["rewards"].tolist() == [2, 2]
    counts = executor.stats()
    assert (counts["accepted"], counts["rejected"], counts["failed"]) == (1, 1, 1)


@pytest.mark.parametrize(("data", "told"), yarns.WRONG)
def test_an_episode_that_goes_wrong_fails_by_itself(
    executor: RolloutExecutor, data: dict[str, Any], told: str
) -> None:
    bad = executor.submit(data, yarns.Bad)
    good = executor.submit({"reward": 5}, yarns.Plain)
    with pytest.raises(rollyard.EpisodeError, match=told):
        executor.wait_for_task(bad, timeout=30)
    batch = executor.wait_for_task(good, timeout=30)
    assert batch is not None and batch["rewards"].tolist() == [5]


def test_an_episode_that_never_ends_is_cancelled(engine: rollyard.SGLangEngine) -> None:
    cancelled = threading.Event()

    class Hangs(rollyard.RolloutWorkflow):
        async def arun_episode(self, engine: Any, data: dict[str, Any]) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                cancelled.set()

    with RolloutExecutor(engine, episode_timeout_secs=0.05, attempts=1) as executor:
        task = executor.submit({}, Hangs())
        with pytest.raises(rollyard.EpisodeError, match="did not end within 0.05 s"):
            executor.wait_for_task(task, timeout=30)
        assert cancelled.wait(timeout=30)


def test_cancelling_a_task_drops_its_requests(executor: RolloutExecutor, server: TestEngine) -> None:
    server.set(hang=True)
    task = executor.submit({}, yarns.Plain, group_size=4)
    until(lambda: server.counters()["in_flight"] == 4, what="the requests")
    [running] = executor.running()
    assert (running["id"], running["group_size"], running["members_done"]) == (task, 4, 0)
    assert executor.cancel(task) and not executor.cancel(task)
    until(lambda: server.counters()["in_flight"] == 0, what="their end")


def test_the_context_is_that_of_the_episode(executor: RolloutExecutor) -> None:
    trained = executor.submit({}, yarns.Told, group_size=3)
    evaluated = executor.submit({}, yarns.Told, is_eval=True)
    batch = executor.wait_for_task(trained, timeout=30)
    assert batch is not None
    assert batch["input_ids"][:, :4].tolist() == [[trained, n, 0, 0] for n in range(3)]
    assert batch["input_ids"][:, 5].tolist() == [0] * 3 and len(set(batch["input_ids"][:, 4])) == 3
    evaluation = executor.wait_for_task(evaluated, timeout=30)
    assert evaluation is not None
    assert evaluation["input_ids"][0, 3] == 1 and evaluation["input_ids"][0, 5] == 1


def test_what_workflows_record_is_summed_by_scope(executor: RolloutExecutor) -> None:
    stats.export()
    executor.rollout_batch([{"reward": r} for r in (1, 2, 6)], yarns.Plain)
    executor.rollout_batch([{"reward": 4}], yarns.Plain, is_eval=True)
    assert stats.export(reset=False)["rollout"]["reward"] == {"count": 3, "mean": 3, "min": 1, "max": 6}
    assert stats.export()["eval-rollout"]["reward"]["count"] == 1
    assert stats.export() == {}
    with pytest.raises(ValueError, match='"reward" of "rollout" is NaN'):
        stats.get().scalar(reward=float("nan"))


def test_the_pace_is_held_until_the_trainer_moves_on(executor: RolloutExecutor) -> None:
    executor.engine.set_version(0)
    for _ in range(20):
        executor.submit({}, yarns.Plain)
    until(lambda: executor.stats()["ready"] == 8, what="two batches")
    assert executor.stats()["enqueued"] == 12 and executor.stats()["running"] == 0
    executor.wait(4)
    executor.set_version(1)
    until(lambda: executor.stats()["accepted"] == 12, what="the third batch")
    assert executor.get_version() == executor.engine.get_version() == 1


def test_prepare_batch_feeds_itself_from_the_loader(executor: RolloutExecutor, server: TestEngine) -> None:
    loader = [[{"reward": n}, {"reward": n + 1}] for n in range(0, 6, 2)]
    seen: list[float] = []
    for step in range(3):
        batch = executor.prepare_batch(loader, yarns.Plain, group_size=2, timeout=30)
        assert batch["input_ids"].shape[0] == 8
        seen += batch["rewards"][::2].tolist()
        server.set(version=step + 1)
        executor.set_version(step + 1)
    # It goes on where it was, and begins again when it ends.
    assert sorted(seen) == sorted([n % 6 for n in range(12)])


def test_an_iterator_is_used_up_and_its_errors_are_told(executor: RolloutExecutor) -> None:
    batch = executor.prepare_batch(iter([{"reward": 1}] * 3), yarns.Plain, timeout=30)
    assert batch["rewards"].tolist() == [1, 1, 1]

    def breaks() -> Iterator[dict[str, Any]]:
        yield {"reward": 1}
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        executor.prepare_batch(breaks(), yarns.Plain, timeout=30)


def test_a_loader_and_a_filter_may_ask_the_engine_themselves(executor: RolloutExecutor) -> None:
    def loader() -> Iterator[dict[str, Any]]:
        for n in range(4):
            yield {"reward": executor.engine.generate(ask(n + 1)).output_len}

    def wanted(batch: dict[str, Any]) -> bool:
        return executor.engine.generate(ask(1)).output_len == 8

    batch = executor.prepare_batch(loader(), yarns.Plain, should_accept_fn=wanted, timeout=30)
    assert batch["rewards"].tolist() == [8] * 4


@pytest.mark.parametrize("processes", [0, 1])
def test_an_executor_that_nobody_closed_leaves_nothing_behind(
    engine: rollyard.SGLangEngine, processes: int
) -> None:
    before = {thread.name for thread in threading.enumerate()}
    executor = RolloutExecutor(engine, processes=processes)
    executor.rollout_batch([{}], "yarns.Plain")
    workers = [] if executor._host is None else executor._host.pids()
    del executor
    gc.collect()
    until(lambda: {thread.name for thread in threading.enumerate()} == before, what="the end of the thread")
    until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in workers), what="the workers' end")


def test_waiting_says_why_there_is_nothing(executor: RolloutExecutor) -> None:
    with pytest.raises(rollyard.NotEnoughError, match="2 results were asked for, but only 0 can still come"):
        executor.wait(2)
    with pytest.raises(rollyard.WaitTimeoutError, match="0 were ready after 0.01 s"):
        executor.wait(1, timeout=0.01)
    executor.submit({"how": "raise"}, yarns.Bad)
    with pytest.raises(rollyard.EpisodeError, match="all 1 tasks failed.*LookupError"):
        executor.wait(1)
    with pytest.raises(rollyard.ExecutorError, match="there is no task 99"):
        executor.wait_for_task(99)


def test_an_engine_that_is_gone_is_told_as_it_is() -> None:
    engine = rollyard.SGLangEngine("http://127.0.0.1:1", attempts=1)
    with (
        RolloutExecutor(engine, attempts=1) as executor,
        pytest.raises(rollyard.EpisodeError, match="EngineUnreachableError: the engine cannot be reached"),
    ):
        executor.rollout_batch([{}], yarns.Plain)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"consumer_batch_size": 0}, "consumer_batch_size|nonzero"),
    ({"incomplete": "perhaps"}, 'incomplete is "perhaps"'),
    ({"episode_timeout_secs": -1.0}, "episode_timeout_secs is -1"),
]


@pytest.mark.parametrize(("settings", "told"), BAD)
def test_an_executor_that_cannot_be_is_not_made(
    engine: rollyard.SGLangEngine, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(rollyard.ExecutorError, match=told):
        RolloutExecutor(engine, **settings)


def test_data_may_be_any_objects_in_this_process(executor: RolloutExecutor) -> None:
    class Image:
        pixels = 7

    class Looks(rollyard.RolloutWorkflow):
        async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any]:
            return yarns.tensors(await engine.agenerate(ask()), data["image"].pixels)

    assert executor.rollout_batch([{"image": Image()}], Looks())["rewards"].tolist() == [7]


def test_closing_ends_what_runs(engine: rollyard.SGLangEngine, server: TestEngine) -> None:
    server.set(hang=True)
    threads = threading.active_count()
    executor = RolloutExecutor(engine, max_concurrent_rollouts=8, consumer_batch_size=8)
    executor.submit({}, yarns.Plain, group_size=8)
    until(lambda: server.counters()["in_flight"] == 8, what="the requests")
    executor.close()
    until(lambda: server.counters()["in_flight"] == 0, what="their end")
    assert threading.active_count() == threads
    with pytest.raises(rollyard.ExecutorError, match="closed"):
        executor.submit({}, yarns.Plain)


INTERRUPTED = """
import sys
import rollyard, yarns
with rollyard.RolloutExecutor(rollyard.SGLangEngine(sys.argv[1])) as executor:
    executor.submit({}, yarns.Plain)
    print("waiting", flush=True)
    try:
        executor.wait(1)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_ctrl_c_ends_the_wait(start_engine: StartEngine) -> None:
    server = start_engine("--set", '{"hang": true}')
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", INTERRUPTED, server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings) as process:
        assert process.stdout is not None and process.stdout.readline() == "waiting\n"
        until(lambda: server.counters()["in_flight"] == 1, what="the request")
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(timeout=30) == 0
