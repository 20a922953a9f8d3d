"""Loss masks: which tokens of a conversation are trained on.

The names are slime's, so that a program changes one import. What a mask is made of is proven, in Rust; a mask
that cannot be proven right is a `MaskError` that says where rendering and tokenisation part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rollyard._rollyard import Drift, MaskedTokens, Masks, Rollout, Tokenizer, response_len
from rollyard.errors import MaskError, TokenizerError

Messages = Sequence[dict[str, Any]]
Tools = Sequence[dict[str, Any]] | None
LossMask = tuple[list[int], list[int]]
# Takes the generator, messages and tools, and the variables of the template by name.
CustomMask = Callable[..., LossMask]


class MultiTurnLossMaskGenerator:
    """Makes masks of one type for one tokenizer.

    `tokenizer` is a `rollyard.Tokenizer`, a model's folder, or a tokenizer of `transformers`.
    `tokenizer_type` is `qwen`, `qwen3`, `qwen3_5`, `distill_qwen`, `auto` for any template, or a type of
    your own.
    """

    _custom: ClassVar[dict[str, CustomMask]] = {}

    def __init__(self, tokenizer: Any, tokenizer_type: str = "qwen") -> None:
        self.tokenizer = as_tokenizer(tokenizer)
        self.tokenizer_type = tokenizer_type
        self._function = self._custom.get(tokenizer_type)
        own_get = type(self).get_loss_mask is not MultiTurnLossMaskGenerator.get_loss_mask
        self._is_own = self._function is not None or own_get
        # A type of one's own renders and decodes as it likes; the built-in parts stand beside it.
        is_beside = self._is_own and tokenizer_type not in Masks.kinds()
        self.masks = self._built_in("auto" if is_beside else tokenizer_type)

    @classmethod
    def register(cls, name: str, function: CustomMask) -> None:
        """Adds a type: `function(generator, messages, tools)` returns token ids and a mask of 0 and 1."""
        if name in Masks.kinds() or name in cls._custom:
            raise MaskError(f"the mask type {name!r} is taken")
        cls._custom[name] = function

    def get_loss_mask(self, messages: Messages, tools: Tools = None, **kwargs: Any) -> LossMask:
        """Token ids, and a 1 for each that is trained on. Further names are variables of the template."""
        if self._function is not None:
            return MaskedTokens(*self._function(self, messages, tools, **kwargs)).to_lists()
        # A class that has types of its own, asked for one that it has not, must not get another's mask.
        masks = self.masks if self.tokenizer_type in Masks.kinds() else self._built_in(self.tokenizer_type)
        return masks.mask(messages, tools, kwargs).to_lists()

    def masked(
        self, messages: Messages, tools: Tools = None, *, strict: bool = False, **kwargs: Any
    ) -> MaskedTokens:
        """The same as arrays. `strict` also demands that the tokens are those of the whole conversation,
        rendered at once, which `qwen` and `qwen3` do not promise: they render each message by itself."""
        if self._is_own:
            masked = self._own(messages, tools, kwargs)
        else:
            masked = self.masks.mask(messages, tools, kwargs)
        if strict:
            self.masks.check_whole(messages, tools, kwargs, masked)
        return masked

    def masked_batch(
        self, conversations: Sequence[Messages], tools: Tools = None, **kwargs: Any
    ) -> list[MaskedTokens]:
        """Many at once, on all cores; the first that fails is named."""
        if self._is_own:
            return [self._own(messages, tools, kwargs) for messages in conversations]
        return self.masks.mask_all(list(conversations), tools, kwargs)

    def rollout(self, item: dict[str, Any] | str | bytes) -> Rollout:
        """The rollout of an item: with the tokens it carries, or else, and then not `exact`, with those of
        its messages."""
        return Rollout.from_item(item, masks=self.item_masks)

    @property
    def item_masks(self) -> Masks | Callable[[bytes], MaskedTokens]:
        """What `Rollout.from_item` makes tokens with."""
        return self._own_item if self._is_own else self.masks

    def drift(self, messages: Messages, token_ids: Any, tools: Tools = None, **kwargs: Any) -> Drift:
        """Where these sampled tokens are not those that the text would give; false if nowhere."""
        return self.masks.drift(messages, token_ids, tools, kwargs)

    def get_response_lengths(self, loss_masks: Sequence[Any]) -> list[int]:
        """For each mask, from its first 1 to the end; 0 if there is none."""
        return [response_len(mask) for mask in loss_masks]

    def get_text_from_loss_mask(self, token_ids: Any, loss_masks: Any) -> list[str]:
        """The text of each stretch of trained tokens."""
        return self.masks.texts(token_ids, loss_masks)

    def _built_in(self, kind: str) -> Masks:
        try:
            return Masks(self.tokenizer, kind)
        except MaskError as error:
            custom = f"; registered are {', '.join(sorted(self._custom))}" if self._custom else ""
            raise MaskError(f"{error}{custom}") from None

    def _own(self, messages: Messages, tools: Tools, kwargs: dict[str, Any]) -> MaskedTokens:
        # A class of one's own need not know of tools.
        given = kwargs if tools is None else {"tools": tools, **kwargs}
        return MaskedTokens(*self.get_loss_mask(messages, **given))

    def _own_item(self, item: bytes) -> MaskedTokens:
        told = json.loads(item)
        if not isinstance(told.get("messages"), list):
            raise MaskError('field "messages" is missing, of which tokens could be made')
        return self._own(told["messages"], told.get("tools"), {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tokenizer!r}, tokenizer_type={self.tokenizer_type!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.tokenizer, self.tokenizer_type))


def as_tokenizer(tokenizer: Any) -> Tokenizer:
    """A tokenizer of ours from a model's folder or from one of `transformers`."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, str) or hasattr(tokenizer, "__fspath__"):
        return Tokenizer.from_pretrained(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise TokenizerError(
            f"{type(tokenizer).__name__} is not a tokenizer; give a rollyard.Tokenizer, a model's folder, "
            "or a fast tokenizer of transformers"
        )
    config: dict[str, Any] = {
        name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)
    }
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = [{"name": name, "template": text} for name, text in template.items()]
    if template is not None:
        config["chat_template"] = template
    return Tokenizer.from_files(backend.to_str(), json.dumps(config))
