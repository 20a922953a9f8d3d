"""Loss masks as slime makes them, on `transformers`: what ours are compared with, in words and in speed.

Tokens are counted off, not proven; so these masks are wrong where a token reaches over a boundary, and the
tests that use them look for just that case when ours refuse.
"""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]
Masked = tuple[list[int], list[int]]

DUMMY: Message = {"role": "user", "content": "FOR CALCULATING LOSS MASK ONLY"}
HEADER = "<|im_start|>assistant\n"
THINK = "<think>\n"
END = "<|im_end|>"


class ReferenceMasks:
    """Masks of one type for one `transformers` tokenizer."""

    def __init__(self, tokenizer: Any, kind: str) -> None:
        self.tokenizer = tokenizer
        self.kind = kind
        added = tokenizer.added_tokens_decoder
        self.special = {number for number, token in added.items() if token.special}
        if kind not in ("qwen", "qwen3"):
            return
        one = self.ids([DUMMY])
        two = self.ids([DUMMY, DUMMY])
        self.block_len = len(two) - len(one)
        self.system_len = len(one) - self.block_len
        self.generation_len = len(self.ids([DUMMY], add_generation_prompt=True)) - len(one)

    def ids(self, messages: list[Message], tools: Any = None, **kwargs: Any) -> list[int]:
        return list(
            self.tokenizer.apply_chat_template(
                messages, tools=tools, tokenize=True, return_dict=False, **kwargs
            )
        )

    def get_loss_mask(self, messages: list[Message], tools: Any = None) -> Masked:
        masked: Masked = getattr(self, f"_{self.kind}")(messages, tools)
        return masked

    def _qwen(self, messages: list[Message], tools: Any) -> Masked:
        out: Masked = ([], [])
        for nth, message in enumerate(messages):
            ids = self.ids([message], tools if nth == 0 else None)
            if nth > 0 and message["role"] != "system":
                ids = ids[self.system_len :]
            self._add(out, message, ids)
        return out

    def _qwen3(self, messages: list[Message], tools: Any) -> Masked:
        out: Masked = ([], [])
        before = len(self.ids([DUMMY]))
        nth = 0
        while nth < len(messages):
            end = nth + 1
            while messages[nth]["role"] == "tool" and end < len(messages) and messages[end]["role"] == "tool":
                end += 1
            turn = messages[nth:end]
            if nth == 0:
                ids = self.ids([*turn, DUMMY], tools)[: -self.block_len]
            else:
                ids = self.ids([DUMMY, *turn])[before:]
            self._add(out, turn[0], ids)
            nth = end
        return out

    def _add(self, out: Masked, message: Message, ids: list[int]) -> None:
        trained = message["role"] == "assistant" and message.get("step_loss_mask", 1) == 1
        given = self.generation_len if trained else len(ids)
        out[0].extend(ids)
        out[1].extend([0] * given + [1] * (len(ids) - given))

    def _qwen3_5(self, messages: list[Message], tools: Any) -> Masked:
        text = self.tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        trained = bytearray(len(text))
        cursor = 0
        for message in messages:
            if message["role"] != "assistant":
                continue
            start = text.index(HEADER, cursor) + len(HEADER)
            end = text.index(END, start) + len(END)
            if text[end : end + 1] == "\n":
                end += 1
            cursor = end
            if message.get("step_loss_mask", 1) == 1:
                if text.startswith(THINK, start):
                    start += len(THINK)
                trained[start:end] = b"\1" * (end - start)
        mask = [int(any(trained[start:end])) for start, end in encoded["offset_mapping"]]
        return list(encoded["input_ids"]), mask

    def _auto(self, messages: list[Message], tools: Any) -> Masked:
        """By rendering prefixes: what comes after the prompt of each answer, up to its end-of-turn token."""
        text = self.tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        spans = prefix_spans(self.tokenizer, messages, tools, text)
        if spans is None:
            raise ValueError("a prefix of the conversation does not render to a prefix of the text")
        return list(encoded["input_ids"]), self.painted(encoded, spans)

    def painted(self, encoded: Any, spans: list[tuple[int, int]]) -> list[int]:
        """1 on the tokens of the spans, without the space that follows the last special token of each."""
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        mask = [0] * len(ids)
        for start, end in spans:
            inside = [at for at, (a, b) in enumerate(offsets) if a >= start and b <= end and b > a]
            specials = [nth for nth, at in enumerate(inside) if ids[at] in self.special]
            after = inside[specials[-1] + 1 :] if specials else []
            if specials and not self.tokenizer.decode([ids[at] for at in after]).strip():
                inside = inside[: specials[-1] + 1]
            for at in inside:
                mask[at] = 1
        return mask

    def _distill_qwen(self, messages: list[Message], tools: Any) -> Masked:
        prompt = self.ids(messages[:1], tools, add_generation_prompt=True)
        answer = self.tokenizer(messages[-1]["content"], add_special_tokens=False)["input_ids"]
        trained = int(messages[-1].get("step_loss_mask", 1) == 1)
        return prompt + answer, [0] * len(prompt) + [trained] * len(answer)


def prefix_spans(oracle: Any, messages: list[Message], tools: Any, text: str) -> list[tuple[int, int]] | None:
    """The characters of each answer that is trained on, or `None` where a prefix does not render to one."""
    spans = []
    for nth, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        try:
            asked = oracle.apply_chat_template(
                messages[:nth], tools=tools, tokenize=False, add_generation_prompt=True
            )
            said = oracle.apply_chat_template(messages[: nth + 1], tools=tools, tokenize=False)
        except Exception:
            return None
        if not (text.startswith(asked) and text.startswith(said)):
            return None
        if message.get("step_loss_mask", 1) == 1:
            spans.append((len(asked), len(said)))
    return spans
