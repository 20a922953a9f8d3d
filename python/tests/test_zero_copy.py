"""Batches lie in memory that Rust made and that numpy, JAX and torch share; nothing is copied on the way."""

from __future__ import annotations

import gc
import resource
import threading
import weakref
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import pytest

import rollyard
from rollyard import (
    Rollout,
    concat_padded_tensors,
    digest,
    pack_tensors,
    split_padded_tensors,
    tensor_dict,
    training_batch,
)
from samples import make_rollout, make_rollouts

Array = npt.NDArray[Any]


def batches() -> dict[str, dict[str, Array]]:
    rollouts = make_rollouts(8)
    sequences = tensor_dict(rollouts)
    return {
        "tensor_dict": sequences,
        "training_batch": training_batch(rollouts, [1.0] * 8),
        "concat": concat_padded_tensors([sequences, sequences]),
        "split": split_padded_tensors(sequences)[3],
        "pack": pack_tensors(sequences, max_tokens=512)[0],
    }


NAMES = list(batches())


def owner_of(array: Array) -> Any:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base


@pytest.mark.parametrize("name", NAMES)
def test_an_array_shows_memory_of_rust(name: str) -> None:
    for key, array in batches()[name].items():
        assert type(owner_of(array)).__name__ == "Owner", key
        assert array.ctypes.data % 64 == 0, key
        assert array.flags.c_contiguous and array.flags.aligned and array.flags.writeable, key


@pytest.mark.parametrize("name", NAMES)
def test_numpy_and_jax_share_the_memory(name: str) -> None:
    kinds = set()
    for key, array in batches()[name].items():
        assert np.from_dlpack(array).ctypes.data == array.ctypes.data, key
        shared = jax.dlpack.from_dlpack(array)
        assert shared.unsafe_buffer_pointer() == array.ctypes.data, key
        np.testing.assert_array_equal(shared, array)
        kinds.add(array.dtype.name)
    assert {"int32", "float32"} <= kinds


def test_jax_shares_truths() -> None:
    mask = tensor_dict(make_rollouts(8))["attention_mask"]
    assert mask.dtype == bool
    assert jax.dlpack.from_dlpack(mask).unsafe_buffer_pointer() == mask.ctypes.data


@pytest.mark.parametrize("name", NAMES)
def test_torch_shares_the_memory(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed here; JAX shows the same")
    for key, array in batches()[name].items():
        for shared in (torch.from_numpy(array), torch.from_dlpack(array)):
            assert shared.data_ptr() == array.ctypes.data, key


def test_jax_arrays_that_come_back_are_memory_of_rust() -> None:
    # An array that XLA made itself would do too, but costs a second copy of the batch.
    given = {"x": jax.numpy.ones((64, 1000))}
    seen: list[int] = []
    shared = jax.dlpack.from_dlpack

    def watch(array: Array) -> Any:
        seen.append(array.ctypes.data)
        return shared(array)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.dlpack, "from_dlpack", watch)
        batch = concat_padded_tensors([given, given])
    assert seen == [batch["x"].unsafe_buffer_pointer()]


def test_what_is_written_is_seen_by_all() -> None:
    array = tensor_dict(make_rollouts(8))["input_ids"]
    shared = np.from_dlpack(array)
    array[3, 0] = 77
    assert shared[3, 0] == 77


VIEWS = ("tokens", "prompt_tokens", "response_tokens", "response_logprobs")


@pytest.mark.parametrize("name", VIEWS)
def test_a_rollout_is_looked_at_in_place(name: str) -> None:
    rollout = make_rollout()
    first, second = getattr(rollout, name), getattr(rollout, name)
    assert first.ctypes.data == second.ctypes.data
    assert owner_of(first) is rollout
    assert not first.flags.writeable
    assert np.from_dlpack(first).ctypes.data == first.ctypes.data


def test_prompt_and_response_are_parts_of_the_tokens() -> None:
    rollout = make_rollout(prompt=2, response=3)
    start = rollout.tokens.ctypes.data
    assert (rollout.prompt_tokens.ctypes.data, rollout.response_tokens.ctypes.data) == (start, start + 8)
    # It may be shared, for nobody can change it.
    assert rollout.with_metadata(rollout.metadata) == rollout


def test_a_view_keeps_its_rollout_alive() -> None:
    tokens = make_rollout(prompt=10_000).tokens
    gc.collect()
    others = [make_rollout(prompt=10_000) for _ in range(50)]
    assert tokens[:10_000].tolist() == list(range(1, 10_001)) and len(others) == 50


def test_masked_tokens_are_looked_at_in_place() -> None:
    masked = rollyard.MaskedTokens([1, 2, 3], [0, 1, 1])
    assert masked.token_ids.ctypes.data == masked.token_ids.ctypes.data
    assert owner_of(masked.token_ids) is masked and not masked.token_ids.flags.writeable


def test_memory_lives_as_long_as_anybody_shows_it() -> None:
    rollouts = [make_rollout(prompt=1000, response=1000) for _ in range(100)]
    batch = tensor_dict(rollouts)
    row, shared = batch["input_ids"][7], jax.dlpack.from_dlpack(batch["input_ids"])
    expected = rollouts[7].tokens.tolist()
    del batch
    gc.collect()
    fresh = [tensor_dict(rollouts[:50], pad_token_id=n) for n in range(8)]
    assert row.tolist() == expected and np.asarray(shared[7]).tolist() == expected and len(fresh) == 8


def test_memory_is_freed_with_the_last_array() -> None:
    batch = tensor_dict(make_rollouts(8))
    # Rust's owner cannot be watched; the array right above it can, and it holds the only reference.
    watched = weakref.ref(batch["input_ids"].base)
    row = batch["input_ids"][0, 1:]
    del batch
    gc.collect()
    assert watched() is not None
    del row
    gc.collect()
    assert watched() is None


def test_batches_one_after_the_other_take_the_memory_of_one() -> None:
    # 80 MB each, 4 GB in all.
    rollouts = [make_rollout(prompt=100, response=9900)] * 400
    tensor_dict(rollouts)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(50):
        tensor_dict(rollouts)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 1 << 19


def test_a_rollout_is_looked_at_while_another_thread_reads_it() -> None:
    rollout = Rollout("", "", np.zeros(2_000_000, np.int32), [1])
    tokens, stop = rollout.tokens, threading.Event()
    digests: set[str] = set()

    def read() -> None:
        while not stop.is_set():
            digests.add(digest({"x": tokens}))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(20_000):
            assert rollout.tokens.size == 2_000_001
    finally:
        stop.set()
        reader.join()
    assert len(digests) == 1
