"""From the items of a lease to slime's samples: tokens, masks, rewards, and what stands beside them."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import pytest

import rollyard
from rollyard import Client, MultiTurnLossMaskGenerator
from rollyard.slime import Sample, generate_rollout
from samples import CONVERSATION, run_python
from serving import Serve
from slimetrainer import DataBuffer, make_args, make_items, serve_slime
from trainer import make_item

Items = list[dict[str, Any]]


class Yard:
    """A server on which one group of two is trained."""

    def __init__(self, serve: Serve, folder: pathlib.Path, model: pathlib.Path) -> None:
        self.url = serve_slime(serve, folder).url
        self._folder, self._model = folder, model

    def train(
        self, items: Items, *, size: int = 2, knobs: dict[str, Any] | None = None, **changes: Any
    ) -> Any:
        with Client(self.url) as client:
            client.configure(**(knobs or {}))
            client.write_many(items).raise_for_rejected()
        given = {"rollout_batch_size": 1, "n_samples_per_prompt": size, "hf_checkpoint": str(self._model)}
        args = make_args(self.url, self._folder, **(given | changes))
        [group] = generate_rollout(args, 0, DataBuffer(size))
        return {sample.prompt: sample for sample in group}


@pytest.fixture
def yard(serve: Serve, tmp_path: pathlib.Path, model: pathlib.Path) -> Yard:
    return Yard(serve, tmp_path, model)


def pair(*fields: dict[str, Any]) -> Items:
    """A group of two, with tokens unless the fields say otherwise."""
    return [item | more for item, more in zip(make_items(1), fields, strict=True)]


def test_sampled_tokens_are_trained_on_as_they_are(yard: Yard) -> None:
    facts = {"label": "4", "weight_versions": [-1, 7, 8], "loss_mask": [0, 0, 0, 1, 1]}
    items = pair(facts | {"extra_info": {"finish_reason": "length", "round_number": 1}}, {})
    got = yard.train(items)
    sample = got["i0:0:0"]
    assert isinstance(sample, Sample)
    assert (sample.index, sample.tokens, sample.response_length) == ("i0", [1, 2, 3, 4, 5], 3)
    assert (sample.loss_mask, sample.rollout_log_probs) == ([0, 1, 1], [-0.5, -0.25, -0.125])
    assert (sample.weight_versions, sample.label, sample.response) == (["7", "8"], "4", "The answer is 4.")
    assert sample.status is Sample.Status.TRUNCATED and sample.remove_sample is False
    assert sample.metadata == {"finish_reason": "length", "round_number": 1, "raw_reward": 0}
    # The pipeline has made rewards of one group comparable.
    assert [one.reward for one in got.values()] == pytest.approx([-1, 1])
    other = got["i0:0:1"]
    assert other.status is Sample.Status.COMPLETED and other.loss_mask == [1, 1, 1]
    assert other.metadata == {"source": "test", "raw_reward": 1}
    assert sample.group_index == other.group_index is not None


@pytest.mark.parametrize("kind", ["qwen", "qwen3", "auto"])
def test_text_gets_the_tokens_and_the_mask_of_the_given_type(
    yard: Yard, model: pathlib.Path, kind: str
) -> None:
    items = [make_item("i0", reward=n) | {"messages": CONVERSATION, "uid": str(n)} for n in range(2)]
    sample = yard.train(items, loss_mask_type=kind)["0"]
    tokens, mask = MultiTurnLossMaskGenerator(str(model), kind).get_loss_mask(CONVERSATION)
    length = len(mask) - mask.index(1)
    assert (sample.tokens, sample.response_length, sample.loss_mask) == (tokens, length, mask[-length:])
    assert sample.loss_mask[0] == 1 and 0 in sample.loss_mask
    assert sample.rollout_log_probs is None and sample.weight_versions == [] and sample.response == "6"


def test_a_batch_has_log_probs_of_all_or_none(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    got = yard.train([make_items(1)[0], make_item("i0", reward=1) | {"uid": "text"}])
    assert [sample.rollout_log_probs for sample in got.values()] == [None, None]
    assert any("'text'" in told and "log-probs" in told for told in caplog.messages)


def test_a_row_that_only_fills_up_has_no_part_in_the_loss(yard: Yard) -> None:
    knobs = {"group_size": 4, "pad": "mask", "min_valid_group_size_ratio": 0.75}
    items = make_items(1, size=4)[:3]
    with Client(yard.url) as client:
        client.configure(**knobs)
        client.write_many(items)
        client.close_group("i0")
    got = yard.train([], size=4)
    [filler] = [sample for uid, sample in got.items() if uid not in {item["uid"] for item in items}]
    assert filler.remove_sample and filler.loss_mask == [0, 0, 0] and filler.response_length == 3
    assert sum(sample.remove_sample for sample in got.values()) == 1


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no token is trained on": ({"loss_mask": [0, 0, 0, 0, 0]}, r"'i0:0:1'.* no token to train on"),
    "tokens contradict each other": ({"response_length": 9}, "i0:0:1.*only 5 tokens"),
}


@pytest.mark.parametrize(("fields", "message"), BAD.values(), ids=BAD.keys())
def test_a_rollout_that_cannot_be_trained_on_is_named_and_given_back(
    yard: Yard, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(rollyard.RolloutError, match=message):
        yard.train(pair({}, fields))
    with Client(yard.url) as client:
        assert (client.books().held, client.stats().leases_out) == (2, 0)


def test_messages_without_an_answer_are_named(yard: Yard) -> None:
    silent = {"messages": [{"role": "user", "content": "2+2?"}]}
    items = [make_item("i0", reward=n) | silent | {"uid": f"u{n}"} for n in range(2)]
    with pytest.raises(rollyard.RollyardError, match="u0"):
        yard.train(items)


def test_a_group_that_does_not_fit_is_named(yard: Yard) -> None:
    with pytest.raises(rollyard.RolloutError, match=r"'i0' has 2 rollouts.*--n-samples-per-prompt 3"):
        yard.train(make_items(1), size=3)


ANSWERS: list[tuple[list[dict[str, Any]], str]] = [
    ([], ""),
    ([{"role": "user", "content": "a"}], ""),
    ([{"role": "assistant", "content": "a"}, {"role": "tool", "content": "b"}], "a"),
    ([{"role": "assistant", "content": None, "tool_calls": []}], ""),
    (
        [{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
        "ab",
    ),
]


@pytest.mark.parametrize(("messages", "expected"), ANSWERS)
def test_the_response_is_the_last_answer(messages: list[dict[str, Any]], expected: str) -> None:
    assert rollyard.slime.convert.last_answer(messages) == expected


def test_a_sample_becomes_a_dict_and_comes_back() -> None:
    sample = Sample(
        prompt="u", tokens=[1, 2], response_length=1, loss_mask=[1], status=Sample.Status.TRUNCATED
    )
    told = sample.to_dict()
    assert told["status"] == "truncated" and Sample.from_dict(told) == sample
    assert pickle.loads(pickle.dumps(sample)) == sample
    # A field that only a newer slime has is not lost.
    again = Sample.from_dict(told | {"spec_info": {"spec_verify_ct": 3}})
    assert vars(again)["spec_info"] == {"spec_verify_ct": 3}
    assert sample.effective_response_length == 1 and Sample(response_length=4).effective_response_length == 4


# What stands in for slime here is its place in the import system, and a class with fewer fields than ours.
OF_SLIME = """
import sys, types
from dataclasses import dataclass
from enum import Enum

@dataclass
class Theirs:
    class Status(Enum):
        COMPLETED = "completed"
    index: object = None
    tokens: object = None
    status: Status = Status.COMPLETED

for name in ("slime", "slime.utils", "slime.utils.types"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["slime.utils.types"].Sample = Theirs
import rollyard.slime
from rollyard.slime.sample import make_sample
assert rollyard.slime.Sample is Theirs
print(make_sample("COMPLETED", {"index": 1, "tokens": [2], "weight_versions": ["3"]}))
"""


def test_where_slime_is_installed_its_own_class_is_used() -> None:
    assert run_python(OF_SLIME).startswith("Theirs(index=1, tokens=[2], status=<Status.COMPLETED")


LAZY = """
import sys
import rollyard.slime
print([name for name in ("torch", "aiohttp", "wandb", "tensorboardX", "slime") if name in sys.modules])
"""


def test_importing_it_imports_no_trainer() -> None:
    assert run_python(LAZY) == "[]"
