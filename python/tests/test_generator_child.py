"""Generator files as the server uses them: looked at, asked about groups, and run."""

from __future__ import annotations

import copy
import json
import pathlib
import re
import struct
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from rollyard.generator import HOOKS, child
from serving import ROOT

EXAMPLES = ROOT / "examples" / "generators"


def write(folder: pathlib.Path, code: str, *, name: str = "sample_generator.py") -> str:
    file = folder / name
    file.write_text(textwrap.dedent(code))
    return str(file)


def item(number: int, reward: float) -> dict[str, Any]:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    return {"uid": f"u{number}", "instance_id": "i", "messages": messages, "reward": reward, "old": [1]}


def group(number: int = 0, *, stage: str = "full", rewards: tuple[float, ...] = (0, 1)) -> dict[str, Any]:
    items = [item(n, reward) for n, reward in enumerate(rewards)]
    return {"group": number, "instance_id": "i", "stage": stage, "min_size": 2, "items": items}


def order(*hooks: str, **changes: Any) -> dict[str, Any]:
    sizes = {"group_size": 2, "min_valid_group_size": 2, "valid_items": 1}
    fixed = {"task_type": "test", "hooks": list(hooks), "skip": [], "defaults": {}}
    return {**fixed, **sizes, **changes}


INSPECTED = {
    "plain": ("TASK_TYPE = 'a'\ndef run_rollout(data): pass", "a", None),
    "no task": ("def run_rollout(data): pass", None, r"no TASK_TYPE, which names the task"),
    "an odd task": ("TASK_TYPE = 3\ndef run_rollout(data): pass", None, r"no TASK_TYPE"),
    "no function": ("TASK_TYPE = 'a'", "a", r"no run_rollout\(data\), which makes the rollouts"),
    "no Python": ("TASK_TYPE = 'a'\ndef run rollout", None, r"line 2 is not Python: "),
    "raises": ("\n1 / 0", None, r"importing it raised ZeroDivisionError: .* \(sample_generator.py:2\)"),
    "exits": ("import sys; sys.exit(3)", None, r"importing it raised SystemExit: 3"),
    "imports nothing": (
        "import not_there",
        None,
        r"importing it raised ModuleNotFoundError: No module named",
    ),
}


@pytest.mark.parametrize("name", INSPECTED)
def test_a_file_is_told_by_what_it_offers(tmp_path: pathlib.Path, name: str) -> None:
    code, task_type, problem = INSPECTED[name]
    path = write(tmp_path, code)
    told = child.inspect_file(path)
    assert (told["task_type"], told["hooks"]) == (task_type, [])
    if problem is None:
        assert told["problem"] is None
    else:
        assert re.match(problem, told["problem"]) and told["problem"].endswith(path), told["problem"]


def test_a_missing_file_is_a_problem() -> None:
    assert child.inspect_file("/no_generator.py")["problem"].endswith(
        "No such file or directory: /no_generator.py"
    )


def test_registered_functions_are_found_under_any_name(tmp_path: pathlib.Path) -> None:
    path = write(
        tmp_path,
        """
        from rollyard.generator import register

        @register()
        def go(data): pass

        @register.hook
        def filter_item(item, task_type): return True
        """,
        name="sorting_generator.py",
    )
    assert child.inspect_file(path) == {"task_type": "sorting", "hooks": ["filter_item"], "problem": None}
    unknown = write(tmp_path, "from rollyard.generator import register\n@register.hook\ndef pad(): pass")
    assert "pad is no hook; there are get_group_data_meta_info, is_valid_group" in str(
        child.inspect_file(unknown)["problem"]
    )
    bare = write(tmp_path, "from rollyard.generator import register\n@register\ndef go(data): pass")
    assert "write @register()" in str(child.inspect_file(bare)["problem"])


def test_the_examples_are_generators() -> None:
    assert child.inspect_file(str(EXAMPLES / "gsm_generator.py")) == {
        "task_type": "gsm",
        "hooks": [],
        "problem": None,
    }
    told = child.inspect_file(str(EXAMPLES / "debate_generator.py"))
    assert told == {"task_type": "debate", "hooks": list(HOOKS), "problem": None}


# The body of a hook, and what becomes of a full group of the rewards 0 and 1.
REVIEWED: dict[str, tuple[str, str, Any]] = {
    "valid": ("is_valid_group", "return True", "rows"),
    "valid and finished": ("is_valid_group", "return True, True", "rows"),
    "finished": (
        "is_valid_group",
        "return False, True",
        {"invalid": "is_valid_group said the group is finished and not valid"},
    ),
    "neither": ("is_valid_group", "return False", "invalid"),
    "no verdict": (
        "is_valid_group",
        "return 'yes'",
        {"failed": "is_valid_group returned a str, not a bool or (valid, finished)"},
    ),
    "raises": (
        "is_valid_group",
        "raise ValueError('no')",
        r"is_valid_group raised ValueError: no \(sample_generator.py:2\)",
    ),
    "exits": (
        "filter_item",
        "raise SystemExit(1)",
        r"filter_item raised SystemExit: 1 \(sample_generator.py:2\)",
    ),
    "interrupts": ("filter_item", "raise KeyboardInterrupt", r"filter_item raised KeyboardInterrupt \("),
    "is async": ("filter_item", "return iter([])", r"filter_item returned a list_iterator, not a bool"),
    "keeps none": ("filter_item", "return False", {"too_few_valid": True}),
    "bare items": ("normalize_group_data", "return args[0][1]", "rows"),
    "no items": (
        "normalize_group_data",
        "return None",
        {"failed": "normalize_group_data returned None, not (instance_id, items)"},
    ),
    "texts": ("normalize_group_data", "return ['a', 'b']", r"normalize_group_data returned a list of 2, not"),
    "NaN": (
        "normalize_group_data",
        "args[0][1][1]['reward'] = float('nan'); return args[0]",
        {"failed": "the reward of 'u1' is nan after the hooks, which is no finite number"},
    ),
    "no reward": (
        "normalize_group_data",
        "del args[0][1][0]['reward']; return args[0]",
        r"the reward of 'u0' is None after the hooks",
    ),
    "made of nothing": ("transform_group", "return [{}]", r"the reward of 'u0#new1' is None after the hooks"),
    "no JSON": (
        "normalize_group_data",
        "args[0][1][0]['x'] = object(); return args[0]",
        {"failed": "the field 'x' is no JSON after the hooks: object is no JSON type"},
    ),
    "odd": (
        "pad_group_data",
        "return args[0][1] * 3 + args[0][1][:1]",
        r"pad_group_data returned 7 items, not a m",
    ),
    "empty": ("pad_group_data", "return []", r"pad_group_data returned 0 items, not a multiple of 2"),
    "all gone": ("transform_group", "return []", {"failed": "no items are left of the group"}),
    "twins": (
        "transform_group",
        "return [{'uid': 'x', 'reward': 1}, {'uid': 'x', 'reward': 1}]",
        {"failed": "two items have the uid 'x' after the hooks"},
    ),
}


@pytest.mark.parametrize("name", REVIEWED)
def test_a_group_is_judged_by_what_its_hook_does(tmp_path: pathlib.Path, name: str) -> None:
    hook, body, expected = REVIEWED[name]
    path = write(tmp_path, f"def {hook}(*args):\n    {body}\n")
    # Shaping by defaults would only be in the way of hooks that come before.
    [told] = child.review(path, 1.0, order(hook, skip=["pad_group_data"]), [group()])
    assert told.pop("group") == 0
    if isinstance(expected, dict):
        assert told == expected
    elif expected in ("rows", "invalid"):
        assert list(told) == [expected], told
    else:
        assert re.match(expected, told["failed"]), told


def test_a_growing_group_waits_unless_it_is_finished(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "def is_valid_group(group, size, task):\n    return False, len(group[1]) > size")
    growing = [group(0, stage="growing"), group(1, stage="growing", rewards=(0, 1, 1))]
    waiting, invalid = child.review(path, 1.0, order("is_valid_group"), growing)
    assert waiting == {"group": 0, "waiting": True} and "invalid" in invalid
    # The default rule may still come to hold.
    [told] = child.review(path, 1.0, order(), [group(stage="growing", rewards=(1, 1))])
    assert told == {"group": 0, "waiting": True}
    [told] = child.review(path, 1.0, order(), [group(rewards=(1, 1))])
    assert told == {"group": 0, "invalid": "all rewards are equal"}


def test_one_bad_group_leaves_the_others_alone(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "def filter_item(item, task):\n    return 1 / item['reward'] > 0 or item['old']")
    groups = [group(n, rewards=(n % 2, 0.5)) for n in range(10)]
    before = copy.deepcopy(groups)
    told = child.review(path, 1.0, order("filter_item"), groups)
    assert [answer["group"] for answer in told] == list(range(10)) and groups == before
    assert ["failed" if n % 2 == 0 else "rows" for n in range(10)] == [list(answer)[1] for answer in told]


def test_rows_say_only_what_has_changed(tmp_path: pathlib.Path) -> None:
    path = write(
        tmp_path,
        """
        import copy, numpy

        def normalize_group_data(group):
            for item in group[1]:
                item["raw_reward"], item["reward"] = item["reward"], numpy.float32(item["reward"] / 2)
                item["old"].append(2)
                del item["messages"]
            return group

        def pad_group_data(group, size):
            own = {**group[1][0], "uid": "own"}
            new = {"reward": 0.5, "text": "made"}
            return group[0], [group[1][1], *copy.deepcopy(group[1]), *group[1], own, new, {"reward": 0}]
        """,
    )
    hooks = ("normalize_group_data", "pad_group_data")
    [told] = child.review(path, 1.0, order(*hooks), [group()])
    assert "rows" in told, told
    rows = told["rows"]
    one = {"reward": 0.5, "raw_reward": 1, "old": [1, 2]}
    # Equal to what it was, and so not said.
    zero = {"raw_reward": 0, "old": [1, 2]}
    said = [(row["member"], row["set"]) for row in rows]
    assert said == [
        (1, one),
        (0, zero),
        (1, one | {"uid": "u1#pad1", "padded": True}),
        (0, zero | {"uid": "u0#pad2", "padded": True}),
        (1, one | {"uid": "u1#pad3", "padded": True}),
        (None, {"uid": "own", "instance_id": "i", "reward": 0.0, **zero}),
        (None, {"uid": "u0#new4", "instance_id": "i", "reward": 0.5, "text": "made"}),
        (None, {"uid": "u0#new5", "instance_id": "i", "reward": 0}),
    ]
    assert [row["unset"] for row in rows] == [["messages"]] * 5 + [[]] * 3


def test_transforming_alone_is_all_the_shaping(tmp_path: pathlib.Path) -> None:
    path = write(
        tmp_path,
        """
        def transform_group(group, task_type):
            return [{**item, "uid": f"{item['uid']}/{n}", "reward": 7} for item in group[1] for n in range(3)]

        def filter_item(item, task_type):
            return not item["uid"].endswith("/0")
        """,
    )
    [alone] = child.review(path, 1.0, order("transform_group"), [group()])
    assert [row["set"]["reward"] for row in alone["rows"]] == [7] * 6
    # With another hook, the defaults come after it; but a group that is large enough is not scaled.
    [shaped] = child.review(path, 1.0, order("transform_group", "filter_item"), [group()])
    assert [row["set"]["reward"] for row in shaped["rows"]] == [0.0] * 4


def test_a_group_too_short_to_be_padded_is_no_failure_of_the_hook(tmp_path: pathlib.Path) -> None:
    code = (
        "from rollyard.generator import hooks\ndef pad_group_data(*args): return hooks.pad_group_data(*args)"
    )
    path = write(tmp_path, code)
    for asked in (order("pad_group_data", group_size=5), order(group_size=5)):
        [told] = child.review(path, 1.0, asked, [group()])
        assert told == {"group": 0, "invalid": "2 items cannot be padded to 5 by one copy of each"}


def test_a_changed_file_is_loaded_again(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "def is_valid_group(*_): return True")
    stamped = order("is_valid_group")
    assert "rows" in child.review(path, 1.0, stamped, [group()])[0]
    # As long as before, and within the same second.
    write(tmp_path, "def is_valid_group(*_): return 0, 1")
    assert "rows" in child.review(path, 1.0, stamped, [group()])[0]
    assert "invalid" in child.review(path, 1.5, stamped, [group()])[0]
    write(tmp_path, "def is_valid_group(")
    [told] = child.review(path, 2.0, stamped, [group()])
    assert told["failed"].startswith("line 1 is not Python") and told["failed"].endswith(path)
    write(tmp_path, "")
    [told] = child.review(path, 3.0, stamped, [group()])
    assert told == {"group": 0, "failed": f"there is no is_valid_group: {path}"}


METAS = {
    "a list": ("return [1]", "get_group_data_meta_info returned a list, not a dict"),
    "NaN": ("return {'a': float('nan')}", "get_group_data_meta_info returned what is no JSON: "),
    "an object": ("return {'a': object()}", "get_group_data_meta_info returned what is no JSON: "),
}


def test_meta_is_what_the_hook_gives(tmp_path: pathlib.Path) -> None:
    code = (
        "import numpy\ndef get_group_data_meta_info(groups): return {'size': numpy.int64(len(groups['i']))}"
    )
    path = write(tmp_path, code)
    assert child.meta(path, 1.0, {"i": [item(0, 1)]}) == {"size": 1}
    for stamp, (body, message) in enumerate(METAS.values(), 2):
        write(tmp_path, f"def get_group_data_meta_info(groups): {body}")
        with pytest.raises(TypeError, match=message):
            child.meta(path, stamp, {})


def test_the_debate_trains_on_the_second_answer_alone() -> None:
    path = str(EXAMPLES / "debate_generator.py")
    groups = [group()]
    for number, each in enumerate(groups[0]["items"]):
        each["messages"] += copy.deepcopy(each["messages"])
        each["extra_info"] = {"finish_reason": "stop", "first_reward": 0.0}
        assert each["reward"] == number
    [told] = child.review(path, 1.0, order(*HOOKS[1:]), groups)
    zero, one = told["rows"]
    assert (zero["set"]["reward"], one["set"]["reward"]) == pytest.approx((-1.0, 1.1))
    for row in told["rows"]:
        masks = [message.get("step_loss_mask") for message in row["set"]["messages"]]
        assert masks == [None, 0, None, None]


def frame(header: dict[str, Any]) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<IQ", len(text), 0) + text


def test_a_worker_process_answers_for_all_of_it(tmp_path: pathlib.Path) -> None:
    path = write(
        tmp_path, "TASK_TYPE = 'a'\ndef run_rollout(data): pass\ndef is_valid_group(*_): return True"
    )
    calls = {
        "inspect_file": [path],
        "review": [path, 1.0, order("is_valid_group"), [group()]],
        "meta": [path, 1.0, {}],
    }
    frames = [frame({"threads": 2, "engine": None, "sys_path": []})]
    for handle, (name, args) in enumerate(calls.items(), 1):
        load = {"kind": "function", "path": f"rollyard.generator.child.{name}"}
        frames.append(frame({"id": handle, "do": "load", "handle": handle, "load": load}))
        arguments = {"args": args, "kwargs": {}}
        frames.append(frame({"id": 10 + handle, "do": "call", "handle": handle, "arguments": arguments}))
    answers: dict[int, Any] = {}
    command = [sys.executable, "-m", "rollyard.host"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdin is not None and host.stdout is not None
        host.stdin.write(b"".join(frames))
        host.stdin.flush()
        while len(answers) < 1 + 2 * len(calls):
            header, body = struct.unpack("<IQ", host.stdout.read(12))
            reply = json.loads(host.stdout.read(header + body)[:header])
            answers[reply["id"]] = reply["answer"]
    assert answers[11]["value"] == {"task_type": "a", "hooks": ["is_valid_group"], "problem": None}
    assert [row["member"] for row in answers[12]["value"][0]["rows"]] == [0, 1]
    assert "get_group_data_meta_info" in answers[13]["raised"]["told"]


def run(path: str, payload: str = "{}") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rollyard.generator.child", "run", path]
    return subprocess.run(command, input=payload, capture_output=True, text=True, timeout=60, check=False)


RUNS = {
    "returns": ("print(data['a'], __name__)", 0, ""),
    "raises": ("raise ValueError('no')", 1, "ValueError: no"),
    "exits": ("import sys; sys.exit(4)", 4, ""),
}


def test_a_file_is_run_with_its_payload(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "X = 1", name="beside.py")
    for body, code, said in RUNS.values():
        path = write(tmp_path, f"import beside\nTASK_TYPE = 'a'\ndef run_rollout(data):\n    {body}")
        done = run(path, '{"a": 5}')
        assert done.returncode == code and said in done.stderr, done.stderr
        assert done.stdout == ("5 sample_generator\n" if code == 0 else "")
    broken = run(write(tmp_path, "TASK_TYPE = 'a'"))
    assert broken.returncode == 1 and "no run_rollout(data)" in broken.stderr
