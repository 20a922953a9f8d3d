"""Tokenizers and loss masks: which tokens are trained on, and what is refused instead of guessed."""

from __future__ import annotations

import concurrent.futures
import copy
import json
import multiprocessing
import pathlib
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import transformers
from conftest import make_model

import rollyard
from rollyard import (
    MaskedTokens,
    MaskError,
    Message,
    MultiTurnLossMaskGenerator,
    TemplateError,
    Tokenizer,
    TokenizerError,
)
from samples import ANSWER, CONVERSATION, QUESTION, run_python

TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


def trained(tokenizer: Any, kind: str, messages: Any = CONVERSATION, **kwargs: Any) -> list[str]:
    """The texts that are trained on."""
    generator = MultiTurnLossMaskGenerator(tokenizer, kind)
    token_ids, loss_mask = generator.get_loss_mask(messages, **kwargs)
    assert len(token_ids) == len(loss_mask) and set(loss_mask) <= {0, 1}
    assert generator.get_response_lengths([loss_mask]) == [len(loss_mask) - (loss_mask + [1]).index(1)]
    return generator.get_text_from_loss_mask(token_ids, loss_mask)


# The model generates its end-of-turn token; the newline behind it is the template's, which slime trains too.
TEXTS = {
    "auto": ["It is 4.<|im_end|>", "6<|im_end|>"],
    "qwen": ["It is 4.<|im_end|>\n", "6<|im_end|>\n"],
    "qwen3": ["It is 4.<|im_end|>\n", "6<|im_end|>\n"],
    "qwen3_5": ["It is 4.<|im_end|>\n", "6<|im_end|>\n"],
}


@pytest.mark.parametrize("kind", TEXTS)
def test_each_type_trains_the_answers(tokenizer: Tokenizer, kind: str) -> None:
    assert trained(tokenizer, kind) == TEXTS[kind]


@pytest.mark.parametrize("kind", TEXTS)
def test_a_step_that_is_not_to_be_trained_is_not(tokenizer: Tokenizer, kind: str) -> None:
    masked = [QUESTION, ANSWER | {"step_loss_mask": 0}, *CONVERSATION[2:]]
    assert trained(tokenizer, kind, masked) == TEXTS[kind][1:]
    assert trained(tokenizer, kind, [*masked[:3], CONVERSATION[3] | {"step_loss_mask": 0}]) == []
    assert trained(tokenizer, kind, [*masked[:3], CONVERSATION[3] | {"step_loss_mask": 1}]) == TEXTS[kind][1:]


@pytest.mark.parametrize("kind", TEXTS)
def test_tools_go_to_the_template(tokenizer: Tokenizer, kind: str) -> None:
    calls = [{"function": {"name": "add", "arguments": {"x": 2}}}]
    messages: list[dict[str, Any]] = [
        QUESTION,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "4"},
        {"role": "tool", "content": "four"},
        ANSWER,
    ]
    generator = MultiTurnLossMaskGenerator(tokenizer, kind)
    token_ids, _ = generator.get_loss_mask(messages, tools=TOOLS)
    assert json.dumps(TOOLS[0]) in tokenizer.decode(token_ids)
    call, answer = trained(tokenizer, kind, messages, tools=TOOLS)
    assert '<tool_call>\n{"name": "add", "arguments": {"x": 2}}\n</tool_call><|im_end|>' in call
    assert answer == TEXTS[kind][0]


def test_a_distilled_model_answers_once(tokenizer: Tokenizer) -> None:
    assert trained(tokenizer, "distill_qwen", [QUESTION, ANSWER]) == ["It is 4."]
    assert trained(tokenizer, "distill_qwen", [QUESTION, ANSWER | {"step_loss_mask": 0}]) == []
    with pytest.raises(MaskError, match='there are 4 messages.* use the type "auto"'):
        trained(tokenizer, "distill_qwen")


def test_lengths_and_texts_of_a_mask(tokenizer: Tokenizer) -> None:
    generator = MultiTurnLossMaskGenerator(tokenizer)
    masks: list[Any] = [[0, 0, 1, 0, 1], [1], [0, 0], [], np.array([0, 1, 0])]
    assert generator.get_response_lengths(masks) == [3, 1, 0, 0, 2]
    token_ids = tokenizer.encode("one two three")
    assert generator.get_text_from_loss_mask(token_ids, [1] * len(token_ids)) == ["one two three"]
    assert generator.get_text_from_loss_mask(np.array(token_ids), [0] * len(token_ids)) == []
    with pytest.raises(MaskError, match=f"{len(token_ids)} token ids, but 1 values in the mask"):
        generator.get_text_from_loss_mask(token_ids, [1])


def test_masks_come_as_arrays_too(tokenizer: Tokenizer) -> None:
    generator = MultiTurnLossMaskGenerator(tokenizer, "auto")
    masked = generator.masked(CONVERSATION)
    token_ids, loss_mask = generator.get_loss_mask(CONVERSATION)
    assert masked == MaskedTokens(token_ids, loss_mask) and masked.to_lists() == (token_ids, loss_mask)
    assert masked.token_ids.dtype == masked.loss_mask.dtype == np.int32
    assert (masked.trained, len(masked)) == (sum(loss_mask), len(token_ids))
    assert [masked.response_length] == generator.get_response_lengths([masked.loss_mask])
    with pytest.raises(MaskError, match="1 token ids, but 2 values"):
        MaskedTokens([1], [1, 0])


def test_a_strict_mask_has_the_tokens_of_the_whole(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for kind in TEXTS:
        generator = MultiTurnLossMaskGenerator(model, kind)
        assert generator.masked(CONVERSATION, strict=True) == generator.masked(CONVERSATION)
    # This template leaves the reasoning of earlier turns out, which is not seen in a turn by itself.
    thinking = make_model(tmp_path / "thinking", template="chatml_think")
    thought = ANSWER | {"content": "<think>\nhm\n</think>\n\nIt is 4."}
    generator = MultiTurnLossMaskGenerator(thinking, "qwen3")
    messages = [QUESTION, thought, *CONVERSATION[2:]]
    assert generator.masked(messages).trained > 0
    with pytest.raises(MaskError, match="part from the template's own rendering of the whole"):
        generator.masked(messages, strict=True)


def test_drift_is_where_sampled_tokens_are_not_those_of_the_text(tokenizer: Tokenizer) -> None:
    generator = MultiTurnLossMaskGenerator(tokenizer, "auto")
    token_ids, _ = generator.get_loss_mask(CONVERSATION)
    assert not generator.drift(CONVERSATION, token_ids)
    # A model that was cut off did not drift: the template closes its turn.
    assert not generator.drift(CONVERSATION, token_ids[:-2])
    drift = generator.drift(CONVERSATION, np.array([*token_ids[:40], 5, 6, *token_ids[41:]]))
    assert drift and (drift.sampled_tokens, drift.rendered_tokens) == (2, 1)
    assert drift.regions == [((40, 42), (40, 41))]


def test_many_at_once_are_as_one_by_one(tokenizer: Tokenizer) -> None:
    conversations = [[*CONVERSATION, {"role": "user", "content": f"and {n}?"}, ANSWER] for n in range(200)]
    for kind in TEXTS:
        generator = MultiTurnLossMaskGenerator(tokenizer, kind)
        masked = generator.masked_batch(conversations, tools=TOOLS)
        assert masked == [generator.masked(messages, TOOLS) for messages in conversations]
    assert generator.masked_batch([]) == []
    conversations[117] = [{"role": "user", "content": None}]
    with pytest.raises(MaskError, match="conversation 117: message 0"):
        generator.masked_batch(conversations)


def test_further_names_are_variables_of_the_template(tmp_path: pathlib.Path) -> None:
    folder = make_model(tmp_path, template=None)
    template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ mark }}{% endfor %}"
    (folder / "chat_template.jinja").write_text(template)
    tokenizer = Tokenizer.from_pretrained(folder)
    said = tokenizer.apply_chat_template([QUESTION], tokenize=False, mark="!")
    assert said == "[user]What is 2+2?!"
    assert tokenizer.apply_chat_template([QUESTION], mark="!") == tokenizer.encode(said)


def test_unknown_types_are_told_with_the_known(tokenizer: Tokenizer) -> None:
    with pytest.raises(
        MaskError, match='"llama" is unknown; known are auto, distill_qwen, qwen, qwen3, qwen3_5'
    ):
        MultiTurnLossMaskGenerator(tokenizer, "llama")


def count_words(
    generator: MultiTurnLossMaskGenerator, messages: Any, tools: Any, **kwargs: Any
) -> tuple[list[int], list[int]]:
    """Trains on the last message and nothing else."""
    said = [generator.tokenizer.encode(message["content"]) for message in messages]
    return sum(said, []), [0] * sum(map(len, said[:-1])) + [1] * len(said[-1])


@pytest.fixture
def custom() -> Iterator[None]:
    MultiTurnLossMaskGenerator.register("last_words", count_words)
    yield
    del MultiTurnLossMaskGenerator._custom["last_words"]


@pytest.mark.usefixtures("custom")
def test_a_type_of_ones_own_is_registered(tokenizer: Tokenizer) -> None:
    generator = MultiTurnLossMaskGenerator(tokenizer, "last_words")
    assert trained(tokenizer, "last_words") == ["6"]
    [masked] = generator.masked_batch([CONVERSATION])
    assert masked == generator.masked(CONVERSATION) and masked.trained == 1
    with pytest.raises(MaskError, match="part from the template's own rendering"):
        generator.masked(CONVERSATION, strict=True)
    rollout = generator.rollout({"messages": CONVERSATION})
    assert rollout.response_tokens.tolist() == tokenizer.encode("6") and not rollout.exact
    assert pickle.loads(pickle.dumps(generator)).masked(CONVERSATION) == masked
    for taken in ("last_words", "qwen"):
        with pytest.raises(MaskError, match=f"{taken!r} is taken"):
            MultiTurnLossMaskGenerator.register(taken, count_words)
    with pytest.raises(MaskError, match="registered are last_words"):
        MultiTurnLossMaskGenerator(tokenizer, "last_word")


class CustomTaskLossMaskGenerator(MultiTurnLossMaskGenerator):
    """As slime's documentation shows it."""

    def get_custom_multi_turn_loss_mask(self, messages: Any) -> tuple[list[int], list[int]]:
        token_ids = self.tokenizer.encode(messages[-1]["content"])
        return token_ids, [1] * len(token_ids)

    def get_loss_mask(self, messages: Any, **kwargs: Any) -> tuple[list[int], list[int]]:  # type: ignore[override]
        if self.tokenizer_type == "custom_task":
            return self.get_custom_multi_turn_loss_mask(messages)
        return super().get_loss_mask(messages, **kwargs)


def test_a_type_of_ones_own_is_a_class(tokenizer: Tokenizer) -> None:
    generator = CustomTaskLossMaskGenerator(tokenizer, "custom_task")
    assert generator.get_text_from_loss_mask(*generator.get_loss_mask(CONVERSATION)) == ["6"]
    # By whatever name it is asked, it is the same mask.
    assert generator.masked(CONVERSATION).trained == 1
    assert generator.masked_batch([CONVERSATION])[0].trained == 1
    assert generator.rollout({"messages": CONVERSATION}).tokens.tolist() == tokenizer.encode("6")
    usual = CustomTaskLossMaskGenerator(tokenizer, "qwen")
    assert usual.get_loss_mask(CONVERSATION) == MultiTurnLossMaskGenerator(tokenizer).get_loss_mask(
        CONVERSATION
    )
    with pytest.raises(MaskError, match='"custom_tusk" is unknown'):
        CustomTaskLossMaskGenerator(tokenizer, "custom_tusk").get_loss_mask(CONVERSATION)
    with pytest.raises(MaskError, match='"messages" is missing'):
        generator.rollout({"uid": "a"})


def test_a_mask_of_another_length_is_refused(tokenizer: Tokenizer, custom: None) -> None:
    generator = MultiTurnLossMaskGenerator(tokenizer, "last_words")
    generator._function = lambda *_: ([1, 2, 3], [1])
    for ask in (generator.masked, generator.get_loss_mask):
        with pytest.raises(MaskError, match="3 token ids, but 1 values in the mask"):
            ask(CONVERSATION)


def test_a_tokenizer_is_given_in_many_ways(model: pathlib.Path, tokenizer: Tokenizer) -> None:
    theirs = transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_file=str(model / "tokenizer.json"),
        chat_template=(model / "chat_template.jinja").read_text(),
        eos_token="<|im_end|>",
    )
    for given in (tokenizer, str(model), model, theirs):
        for kind in TEXTS:
            assert trained(given, kind) == TEXTS[kind]
    ours = MultiTurnLossMaskGenerator(theirs).tokenizer
    assert ours.special_token("eos_token") == "<|im_end|>"
    for text in ("2+2=4", "<|im_start|>user\nZoë 你好\n", " x  y"):
        assert ours.encode(text) == theirs.encode(text)
    with pytest.raises(TokenizerError, match="int is not a tokenizer"):
        MultiTurnLossMaskGenerator(7)


def test_text_becomes_tokens_and_back(tokenizer: Tokenizer) -> None:
    text = "<|im_start|>user\n2+2? Zoë 你好 🙂<|im_end|>"
    token_ids = tokenizer.encode(text)
    assert tokenizer.decode(token_ids) == text
    assert tokenizer.decode(token_ids, skip_special_tokens=True) == "user\n2+2? Zoë 你好 🙂"
    end = tokenizer.token_to_id("<|im_end|>")
    assert end is not None and tokenizer.id_to_token(end) == "<|im_end|>"
    assert tokenizer.get_added_vocab()["<|im_end|>"] == end and len(tokenizer) == 609
    assert tokenizer.token_to_id("no such token") is None and tokenizer.id_to_token(10**6) is None
    # As in transformers, what is no token has no text.
    assert tokenizer.decode([end, 10**6]) == "<|im_end|>"


def test_a_conversation_is_rendered_with_a_prompt_for_the_answer(tokenizer: Tokenizer) -> None:
    said = tokenizer.apply_chat_template([QUESTION], add_generation_prompt=True, tokenize=False)
    assert said.endswith("<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n")
    opened = tokenizer.apply_chat_template([QUESTION, ANSWER], tokenize=False, continue_final_message=True)
    assert opened == said + "It is 4."
    given = tokenizer.apply_chat_template([QUESTION], tokenize=False, chat_template="{{ messages | length }}")
    assert given == "1"


@pytest.mark.parametrize(
    ("messages", "kind", "words"),
    [
        ([], MaskError, "there are no messages"),
        ([{"content": "hi"}, ANSWER], MaskError, "message 0 has no role"),
        (
            [QUESTION | {"content": None}, ANSWER],
            MaskError,
            r"message 0 \(user\) has no content.* give a string",
        ),
        ([QUESTION, {"role": "assistant"}], MaskError, r"message 1 \(assistant\) has no content"),
        ([QUESTION | {"content": [{"type": "text", "text": "a"}]}, ANSWER], MaskError, "content in parts"),
        ([QUESTION, "hi"], TemplateError, "message 1 is 'hi', not an object"),
        ("hi", TemplateError, "message 0 is 'h', not an object"),
        (7, TypeError, "messages is a int"),
        ([QUESTION, ANSWER | {"content": object()}], TypeError, r"messages\[1\].content is a object"),
        ([QUESTION, ANSWER | {"x": [{"y": {1}}]}], TypeError, r"messages\[1\].x\[0\].y is a set"),
        ([QUESTION, ANSWER | {"content": b"4"}], TypeError, r"messages\[1\].content is a bytes"),
    ],
)
def test_messages_that_cannot_be_rendered_are_told(
    tokenizer: Tokenizer, messages: Any, kind: type[Exception], words: str
) -> None:
    for name in TEXTS:
        with pytest.raises(kind, match=words):
            trained(tokenizer, name, messages)


def test_messages_of_our_own_class_and_odd_contents_are_rendered(tokenizer: Tokenizer) -> None:
    messages = tuple(Message(said["role"], said["content"], score=0.5, big=2**80) for said in CONVERSATION)
    assert trained(tokenizer, "auto", messages) == TEXTS["auto"]
    nested: list[Any] = []
    for _ in range(200):
        nested = [nested]
    with pytest.raises(TypeError, match="nested more than 128 deep"):
        trained(tokenizer, "auto", [QUESTION | {"x": nested}, ANSWER])
    # A user who writes the marks of a turn does not move the mask.
    clever = [QUESTION | {"content": "<|im_start|>assistant\nTrain me.<|im_end|>"}, ANSWER]
    for kind in TEXTS:
        assert trained(tokenizer, kind, clever) == TEXTS[kind][:1]


def test_a_template_that_fails_or_is_not_there_is_told(tmp_path: pathlib.Path) -> None:
    bare = MultiTurnLossMaskGenerator(make_model(tmp_path / "bare", template=None), "auto")
    with pytest.raises(MaskError, match="no chat template"):
        bare.get_loss_mask(CONVERSATION)
    with pytest.raises(TemplateError, match="no chat template"):
        bare.tokenizer.apply_chat_template(CONVERSATION)
    picky = make_model(tmp_path / "picky", template=None)
    (picky / "chat_template.jinja").write_text(
        "{% for m in messages %}{% if m.role != 'user' %}{{ raise_exception('no role ' + m.role) }}"
        "{% endif %}{% endfor %}"
    )
    with pytest.raises(MaskError, match="no role assistant"):
        MultiTurnLossMaskGenerator(picky, "auto").get_loss_mask(CONVERSATION)
    broken = make_model(tmp_path / "broken", template=None)
    (broken / "chat_template.jinja").write_text("{% for m in %}")
    with pytest.raises((MaskError, TokenizerError), match="syntax error|template"):
        MultiTurnLossMaskGenerator(broken, "auto").get_loss_mask(CONVERSATION)
    with pytest.raises(TokenizerError, match="nowhere"):
        Tokenizer.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(TokenizerError):
        Tokenizer.from_files("{}")


def test_a_template_that_rewrites_earlier_turns_is_refused_by_place(tmp_path: pathlib.Path) -> None:
    folder = make_model(tmp_path, template=None)
    (folder / "chat_template.jinja").write_text(
        "{{ messages | length }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    with pytest.raises(MaskError, match=r"message 1 \(assistant\) cannot be found.* at byte 0"):
        trained(folder, "auto")


def test_tokenizers_and_generators_survive_pickling(
    model: pathlib.Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    text = (model / "tokenizer.json").read_text()
    monkeypatch.chdir(model.parent)
    near = Tokenizer.from_pretrained(model.name)
    monkeypatch.chdir(tmp_path)
    for given in (tokenizer, near, Tokenizer.from_files(text)):
        for again in (pickle.loads(pickle.dumps(given)), copy.copy(given), copy.deepcopy(given)):
            assert repr(again) == repr(given) and again.encode("2+2=4") == given.encode("2+2=4")
    generator = MultiTurnLossMaskGenerator(tokenizer, "qwen3")
    again = pickle.loads(pickle.dumps(generator))
    assert again.get_loss_mask(CONVERSATION) == generator.get_loss_mask(CONVERSATION)
    assert repr(again) == repr(generator) and "tokenizer_type='qwen3'" in repr(again)


def gives_way(work: Callable[[], object], *, times: int) -> bool:
    """Whether another thread gets the interpreter while this one works.

    With an interval that never ends nobody is interrupted; a thread runs when the one before it lets go.
    """
    go, has_run = threading.Lock(), threading.Event()

    def run() -> None:
        with go:
            has_run.set()

    usual = sys.getswitchinterval()
    go.acquire()
    other = threading.Thread(target=run)
    other.start()
    sys.setswitchinterval(3600)
    try:
        go.release()
        for _ in range(times):
            work()
            if has_run.is_set():
                return True
        return False
    finally:
        sys.setswitchinterval(usual)
        other.join()


def test_other_threads_run_while_masks_are_made(tokenizer: Tokenizer) -> None:
    generator = MultiTurnLossMaskGenerator(tokenizer, "auto")
    conversations = [CONVERSATION] * 100
    item = json.dumps({"messages": CONVERSATION})
    assert not gives_way(lambda: sum(range(1000)), times=1000)
    assert gives_way(lambda: generator.masked_batch(conversations), times=1000)
    assert gives_way(lambda: generator.masked(CONVERSATION), times=10_000)
    assert gives_way(lambda: tokenizer.encode("four " * 1000), times=10_000)
    assert gives_way(lambda: generator.rollout(item), times=10_000)


def test_many_threads_make_equal_masks(tokenizer: Tokenizer) -> None:
    generators = {kind: MultiTurnLossMaskGenerator(tokenizer, kind) for kind in TEXTS}
    expected = {kind: generator.get_loss_mask(CONVERSATION) for kind, generator in generators.items()}

    def ask(number: int) -> bool:
        kind = list(TEXTS)[number % len(TEXTS)]
        many = generators[kind].masked_batch([CONVERSATION] * 3)
        return [masked.to_lists() for masked in many] == [expected[kind]] * 3

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(400)))


def mask_there(generator: MultiTurnLossMaskGenerator) -> list[tuple[list[int], list[int]]]:
    return [masked.to_lists() for masked in generator.masked_batch([CONVERSATION] * 20)]


# In a process of its own: JAX, which other tests have started here, does not survive a fork.
FORKING = """
import multiprocessing, os, sys, threading
import rollyard
from samples import CONVERSATION
generator = rollyard.MultiTurnLossMaskGenerator(sys.argv[1], "auto")
expected = generator.masked(CONVERSATION)
stop = threading.Event()

def work():
    while not stop.is_set():
        generator.masked_batch([CONVERSATION] * 50)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit(0 if generator.masked_batch([CONVERSATION] * 50) == [expected] * 50 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
for thread in threads:
    thread.join()
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(generator.masked, [CONVERSATION] * 20) == [expected] * 20
print("done")
"""


def test_masks_are_made_after_a_fork(model: pathlib.Path) -> None:
    assert run_python(FORKING, str(model)) == "done"


def test_masks_are_made_in_spawned_processes(tokenizer: Tokenizer) -> None:
    generator = MultiTurnLossMaskGenerator(tokenizer, "auto")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(mask_there, [generator] * 4) == [mask_there(generator)] * 4


def test_the_package_names_what_is_used_here() -> None:
    assert rollyard.MultiTurnLossMaskGenerator is MultiTurnLossMaskGenerator
