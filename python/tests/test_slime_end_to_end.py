"""The whole way: a start, a generator with hooks, an engine, a trainer, its charts, and its return."""

from __future__ import annotations

import logging
import pathlib
import sys
from typing import Any

import pytest

from rollyard import Client
from rollyard.slime import generate_rollout
from serving import Serve
from slimetrainer import DataBuffer, make_args, uids_of
from testengine import StartEngine

EPOCHS, INSTANCES, REPEATS, BATCH = 2, 4, 2, 2

GENERATOR = """
from rollyard.generator import BaseGenerator, query_single_turn, register

@register("whole")
def run_rollout(data):
    generator = BaseGenerator.from_payload(data)
    generator.entry(data["input_file"], query_single_turn, reward, int(data["num_epoch"]))

def reward(item):
    return 0.25 if item["instance_id"] == "i0" else 0.75

@register.hook
def is_valid_group(group, min_valid_group_size, task_type):
    return len(group[1]) >= min_valid_group_size, len(group[1]) >= min_valid_group_size

@register.hook
def filter_item(item, task_type):
    return item["reward"] >= 0

@register.hook
def normalize_group_data(group):
    for item in group[1]:
        item["raw_reward"], item["reward"] = item["reward"], item["reward"] * 4
    return group

@register.hook
def pad_group_data(group, group_size):
    return group

@register.hook
def get_group_data_meta_info(temp_data):
    rewards = [item["reward"] for items in temp_data.values() for item in items]
    return {"total_samples": len(rewards), "avg_reward": sum(rewards) / max(len(rewards), 1), "from": "hook"}
"""


def test_a_start_leads_to_samples_and_charts_and_a_trainer_that_comes_back(
    serve: Serve,
    start_engine: StartEngine,
    model: pathlib.Path,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = start_engine("--dialect", "openai", "--answer", "Four.")
    generators = tmp_path / "generators"
    generators.mkdir()
    (generators / "whole_generator.py").write_text(GENERATOR)
    server = serve("--generators", str(generators), "--python", sys.executable, "--root", str(tmp_path))
    lines = [f'{{"instance_id": "i{n}", "prompt": "2+2?", "label": "4"}}\n' for n in range(INSTANCES)]
    (tmp_path / "prompts.jsonl").write_text("".join(lines))
    port = int(engine.url.rpartition(":")[2])
    args = make_args(
        server.url,
        tmp_path,
        rollout_task_type="whole",
        num_epoch=EPOCHS,
        sglang_router_port=port,
        hf_checkpoint=str(model),
        loss_mask_type="auto",
    )
    caplog.set_level(logging.INFO)
    buffer = DataBuffer()
    trained = [generate_rollout(args, step, buffer) for step in range(2)]
    for sample in (sample for groups in trained for group in groups for sample in group):
        check(sample)
    told = [record.message for record in caplog.records if "rollout/no_filter/avg_reward" in record.message]
    assert len(told) == 2, caplog.messages

    # The trainer dies after its second step, and its last checkpoint is that of the first.
    resumed = DataBuffer(metadata={"0": buffer.get_metadata()["0"]})
    later = [generate_rollout(args, step, resumed) for step in range(1, EPOCHS * INSTANCES // BATCH)]
    uids = [uid for groups in [trained[0], *later] for uid in uids_of(groups)]
    made = [f"i{n}:{e}:{r}" for n in range(INSTANCES) for e in range(EPOCHS) for r in range(REPEATS)]
    assert sorted(uids) == sorted(made)
    with Client(server.url) as client:
        books = client.books()
        assert {client.fate(uid).step for uid in uids_of(later[-1])} == {len(later)}
    assert books.balanced and books.trained == len(made), books


def check(sample: Any) -> None:
    assert sample.status.value == "completed" and sample.response == "Four."
    raw = 0.25 if sample.index == "i0" else 0.75
    assert (sample.reward, sample.metadata["raw_reward"]) == (raw * 4, raw)
    assert len(sample.loss_mask) == sample.response_length and 1 in sample.loss_mask
    assert sample.metadata["label"] == "4" and sample.metadata["finish_reason"] == "stop"
