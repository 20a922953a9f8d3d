"""Tensor dicts: arrays by name, whose first dimension is the rows of a batch.

Functions take numpy, torch or JAX arrays and give back the kind they were given; what is made here lies in
memory that all three share without a copy. The work is done in Rust, without the GIL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from rollyard import _rollyard
from rollyard._rollyard import Rollout
from rollyard.errors import BatchError

TensorDict = dict[str, Any]
Array = npt.NDArray[Any]
Side = Literal["right", "left"]

_Given = tuple[str, str, list[int], npt.NDArray[np.uint8]]
_Made = tuple[str, str, list[int], npt.NDArray[np.uint8]]
# Bytes, type and shape, as the kind of array that the caller has.
_Back = Callable[[Array, str, list[int]], Any]


class _Layout(TypedDict):
    max_tokens: int | None
    pad_token_id: int
    pad_to_multiple: int | None
    pad_to: int | None
    padding_side: str


def concat_padded_tensors(tensor_dicts: Sequence[Mapping[str, Any]], pad_value: float = 0.0) -> TensorDict:
    """All dicts below each other, every further dimension padded on the right to the longest.

    Types are kept. `attention_mask` and `loss_mask` are padded with 0 and `versions` with -1, everything else
    with `pad_value`. Dicts with other keys than the first are an error that names them; `[]` gives `{}`.
    """
    given = [_given(tensors) for tensors in tensor_dicts]
    made = _rollyard.concat([arrays for arrays, _ in given], pad_value)
    return _dict(made, given[0][1] if given else {})


def split_padded_tensors(batch: Mapping[str, Any], sizes: Sequence[int] | None = None) -> list[TensorDict]:
    """The inverse: parts of so many rows each, one by default, cut to the longest row of each part.

    `attention_mask` says how long a row is, and tensors that run along it are cut with it.
    """
    given, backs = _given(batch)
    parts = _rollyard.split(given, None if sizes is None else list(sizes))
    return [_dict(part, backs) for part in parts]


def pack(lengths: Iterable[int], *, max_tokens: int) -> list[list[int]]:
    """Which sequences go together so that no bin has more than `max_tokens`: first-fit decreasing.

    Nothing is lost or split; a sequence longer than the budget is an error that names it.
    """
    return _rollyard.plan([int(length) for length in lengths], max_tokens)


def pack_tensors(batch: Mapping[str, Any], *, max_tokens: int) -> list[TensorDict]:
    """The rows of a padded batch without their padding, in bins of at most `max_tokens`.

    Each bin has its rows one after the other, `cu_seqlens` for where they begin, and `position_ids`.
    """
    given, backs = _given(batch)
    return [_dict(flat, backs) for flat in _rollyard.pack(given, max_tokens)]


def balance(lengths: Iterable[int], ranks: int, *, equal_size: bool = False) -> list[list[int]]:
    """The rows of each rank, by Karmarkar and Karp's method: sums differ by at most the largest length.

    `equal_size` gives every rank as many rows. Equal input gives equal output, on every rank.
    """
    return _rollyard.balance([int(length) for length in lengths], ranks, equal_size)


def tensor_dict(
    rollouts: Sequence[Rollout],
    *,
    max_tokens: int | None = None,
    pad_token_id: int = 0,
    pad_to_multiple: int | None = None,
    pad_to: int | None = None,
    padding_side: Side = "right",
) -> TensorDict:
    """Rollouts as `input_ids, attention_mask, loss_mask, logprobs, versions, rewards`.

    Values sit on the token they belong to; `logprobs` is there if the rollouts have them.
    """
    layout = _layout(max_tokens, pad_token_id, pad_to_multiple, pad_to, padding_side)
    return _dict(_rollyard.sequences(list(rollouts), layout))


def training_batch(
    rollouts: Sequence[Rollout],
    advantages: Iterable[float],
    *,
    max_tokens: int | None = None,
    pad_token_id: int = 0,
    pad_to_multiple: int | None = None,
    pad_to: int | None = None,
    padding_side: Side = "right",
    oldest_version: int | None = None,
) -> TensorDict:
    """Rollouts with their advantages as `input_ids, attention_mask, position_ids, loss_masks, loss_weights,
    policy_logprobs, temperature, top_k, truncated`.

    A row is prompt and response trimmed to `max_tokens`. Tokens sampled with weights older than
    `oldest_version` stay in the row, but not in the loss. A row that would train nothing is an error.
    """
    layout = _layout(max_tokens, pad_token_id, pad_to_multiple, pad_to, padding_side)
    weights = [float(value) for value in advantages]
    return _dict(_rollyard.training(list(rollouts), weights, layout, oldest_version))


def digest(batch: Mapping[str, Any]) -> str:
    """A number for names, types, shapes and every byte, for ranks to check that they hold the same batch."""
    return _rollyard.digest(_given(batch)[0])


def _layout(
    max_tokens: int | None, pad_token_id: int, pad_to_multiple: int | None, pad_to: int | None, side: str
) -> _Layout:
    return {
        "max_tokens": max_tokens,
        "pad_token_id": pad_token_id,
        "pad_to_multiple": pad_to_multiple,
        "pad_to": pad_to,
        "padding_side": side,
    }


def _given(tensors: Mapping[str, Any]) -> tuple[list[_Given], dict[str, _Back]]:
    """The arrays as bytes, and how to give each back as what its owner has."""
    given: list[_Given] = []
    backs: dict[str, _Back] = {}
    for key, tensor in tensors.items():
        array, dtype, backs[str(key)] = _numpy(tensor)
        if array.dtype.hasobject:
            raise BatchError(f"{key!r} is of type {dtype}, which is no type of numbers")
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        given.append((str(key), dtype, list(array.shape), array.reshape(-1).view(np.uint8)))
    return given, backs


def _numpy(tensor: Any) -> tuple[Array, str, _Back]:
    """The tensor as numpy sees it, the name of its type, and the way back."""
    if type(tensor) is np.ndarray:
        return tensor, _name_of(tensor.dtype), _as_numpy
    module = type(tensor).__module__.partition(".")[0]
    if module == "torch":
        import torch

        tensor = tensor.detach().cpu()
        # numpy has no bfloat16: its bits travel as whole numbers.
        bits = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
        return bits.numpy(), str(tensor.dtype).removeprefix("torch."), _as_torch
    if module in ("jax", "jaxlib"):
        return np.asarray(tensor), str(tensor.dtype), _as_jax
    array = np.asarray(tensor)
    return array, _name_of(array.dtype), _as_numpy


@lru_cache(maxsize=64)
def _name_of(dtype: np.dtype[Any]) -> str:
    """numpy spells it out anew every time, which takes longer than all the rest."""
    return str(dtype)


def _as_numpy(array: Array, dtype: Any, shape: list[int]) -> Array:
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    typed: Array = array.view(dtype).reshape(shape)
    return typed


def _as_torch(array: Array, dtype: str, shape: list[int]) -> Any:
    import torch

    if dtype == "bfloat16":
        return torch.from_numpy(_as_numpy(array, "int16", shape)).view(torch.bfloat16)
    return torch.from_numpy(_as_numpy(array, dtype, shape))


def _as_jax(array: Array, dtype: str, shape: list[int]) -> Any:
    import jax

    typed = _as_numpy(array, dtype, shape)
    if dtype == "bfloat16":
        # numpy cannot say it in DLPack.
        return jax.device_put(typed, jax.devices("cpu")[0])
    return jax.dlpack.from_dlpack(typed)


BACKS: dict[str, _Back] = {"numpy": _as_numpy, "torch": _as_torch, "jax": _as_jax}
"""The ways back by whose arrays they give."""


def _dict(made: list[_Made], backs: Mapping[str, _Back] | None = None) -> TensorDict:
    backs = backs or {}
    # What was not given, such as `cu_seqlens`, is of the kind that was.
    usual: _Back = next(iter(backs.values()), _as_numpy)
    made_by_key: TensorDict = {}
    for key, dtype, shape, array in made:
        back = backs.get(key, usual)
        made_by_key[key] = back(array, dtype, shape)
    return made_by_key
