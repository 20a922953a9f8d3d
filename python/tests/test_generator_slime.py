"""Generator files that were written for slime, where there is no slime."""

from __future__ import annotations

import json
import pathlib

from generating import AS_WRITTEN, Generate, items_of
from samples import run_python
from serving import ROOT, Serve
from testengine import TestEngine

SHIMS = """
import sys
import rollyard, rollyard.generator
assert not any(name.split(".")[0] in ("slime", "slime_plugins") for name in sys.modules)
try:
    import slime
except ImportError:
    pass
else:
    raise AssertionError("nothing is there before it is installed")
from rollyard import slime_modules
slime_modules.install()
slime_modules.install()
from slime.rollout.rm_hub import get_deepscaler_rule_based_reward
assert get_deepscaler_rule_based_reward("It is \\\\boxed{4}.", "4") == 1
assert get_deepscaler_rule_based_reward("<think>4</think> It is \\\\boxed{5}.", 4) == 0
assert get_deepscaler_rule_based_reward(None, "4") == get_deepscaler_rule_based_reward("", "4") == 0
import slime_plugins.rollout_buffer.generator.base_generator as base
from slime_plugins.rollout_buffer.generator.utils.default_func import (
    default_filter_item, default_get_group_data_meta_info, default_is_valid_group,
    default_normalize_group_data, default_pad_group_data, is_valid_reward,
)
assert base.BaseGenerator is rollyard.generator.BaseGenerator and base.TASK_TYPE == "math"
silent = {"reward": 1, "messages": [{"role": "assistant", "content": " "}]}
answered = {"reward": 1, "messages": [{"role": "assistant", "content": "4"}]}
assert base.is_valid_group(("a", [answered, answered]), 2, "other") == (True, True)
assert base.is_valid_group(("a", [answered, silent]), 2) == (False, True)
assert default_is_valid_group(("a", [answered, answered]), 2) == (False, True)
assert default_pad_group_data is rollyard.generator.hooks.pad_group_data
try:
    import slime.ray
except ModuleNotFoundError as error:
    assert error.name == "slime.ray"
else:
    raise AssertionError("what is not ours is not there")
"""

REAL = """
import sys
sys.path.insert(0, {folder!r})
from rollyard import slime_modules
slime_modules.install()
import slime
assert slime.REAL
try:
    import slime.rollout
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("a real slime is not mended with parts of ours")
from slime_plugins.rollout_buffer.generator.base_generator import BaseGenerator
"""


def test_the_modules_are_there_once_they_are_installed() -> None:
    run_python(SHIMS)


def test_a_real_slime_comes_first(tmp_path: pathlib.Path) -> None:
    (tmp_path / "slime").mkdir()
    (tmp_path / "slime" / "__init__.py").write_text("REAL = True")
    run_python(REAL.format(folder=str(tmp_path)))


SLIME = """
import time
from slime.rollout.rm_hub import get_deepscaler_rule_based_reward
from slime_plugins.rollout_buffer.generator import base_generator
from slime_plugins.rollout_buffer.generator.base_generator import BaseGenerator, query_single_turn

TASK_TYPE = "test"

def reward(item):
    return get_deepscaler_rule_based_reward(item["messages"][-1]["content"], item["label"])

def run_rollout(data: dict):
    for key, value in data["sampling_params"].items():
        base_generator.SAMPLING_PARAMS[key] = value
    generator = BaseGenerator(
        data["remote_engine_url"],
        data["remote_buffer_url"],
        num_repeat_per_sample=int(data["num_repeat_per_sample"]),
        queue_size=1000000,
        max_tokens=int(data["sampling_params"]["max_tokens"]),
        num_process=int(data.get("num_process", 100)),
        task_type=data["task_type"],
        skip_instance_ids=data.get("skip_instance_ids", None),
    )
    generator.entry(data["input_file"], query_single_turn, reward, int(data.get("num_epoch", 1)))
"""


def test_a_file_written_for_slime_runs_as_it_is(serve: Serve, server: TestEngine, generate: Generate) -> None:
    yard = serve("--group-size", "2", *AS_WRITTEN)
    generation = generate(yard.url, server.url)
    generation.file.write_text(SLIME)
    server.set(answers=["The answer is \\boxed{3}."])
    generation.run(num_process=2)
    rewards = {uid: item["reward"] for uid, item in items_of(yard.url).items()}
    assert rewards == {f"{n}:0:{repeat}": float(n == 3) for n in range(6) for repeat in range(2)}


def test_the_examples_run(serve: Serve, server: TestEngine, generate: Generate) -> None:
    line = {"instance_id": 0, "prompt": "How many?", "label": "9 + 9 = 18\n#### 18"}
    server.set(answers=["It is \\boxed{17}.", "It is \\boxed{18}."])
    for name, messages in {"gsm": 2, "debate": 4}.items():
        yard = serve("--group-size", "2", *AS_WRITTEN)
        generation = generate(yard.url, server.url)
        generation.file = ROOT / "examples" / "generators" / f"{name}_generator.py"
        generation.write_lines([line])
        generation.run(num_process=2)
        items = items_of(yard.url)
        assert {len(item["messages"]) for item in items.values()} == {messages}, json.dumps(items)
        assert {item["reward"] for item in items.values()} == {float(name == "debate")}
    assert all(item["extra_info"]["first_reward"] == 0.0 for item in items.values())
