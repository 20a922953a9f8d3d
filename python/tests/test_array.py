"""Memory that numpy, JAX and torch share with Rust, without a copy."""

from __future__ import annotations

import gc
import pickle
import resource

import jax
import numpy as np
import numpy.typing as npt
import pytest

import rollyard

DTYPES = ("int32", "uint32", "int64", "float32", "bool")
SHAPES = (1, 17, (3, 5), (64, 1024), (2, 3, 4))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_array_is_aligned_contiguous_writable_and_zero(dtype: str, shape: int | tuple[int, ...]) -> None:
    array = rollyard.aligned_zeros(shape, dtype=dtype)
    assert array.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert array.dtype == np.dtype(dtype)
    assert array.ctypes.data % 64 == 0
    assert array.flags.c_contiguous and array.flags.aligned and array.flags.writeable
    assert not array.any()


def test_an_empty_array_is_an_array() -> None:
    assert rollyard.aligned_zeros((0, 7), dtype=np.float32).shape == (0, 7)


def test_the_memory_lives_as_long_as_an_array_shows_it() -> None:
    array = rollyard.aligned_zeros((1000, 1000), dtype="int32")
    array[7] = 7
    row, shared = array[7], jax.dlpack.from_dlpack(array)
    del array
    gc.collect()
    fresh = [rollyard.aligned_zeros((1000, 1000), dtype="int32") for _ in range(8)]
    assert (row == 7).all() and int(shared.sum()) == 7000
    assert not any(each.any() for each in fresh)


def test_the_memory_is_freed_when_no_array_shows_it() -> None:
    # 128 MB at a time, 6 GB in all.
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(50):
        rollyard.aligned_zeros((1 << 20, 16), dtype="int64").fill(1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 1 << 20


def test_jax_shares_the_memory() -> None:
    for dtype in ("int32", "uint32", "float32"):
        array: npt.NDArray[np.generic] = rollyard.aligned_zeros((64, 1024), dtype=dtype)
        array[:] = 1
        shared = jax.dlpack.from_dlpack(array)
        assert shared.unsafe_buffer_pointer() == array.ctypes.data, dtype
        assert shared.sum() == array.size


def test_torch_shares_the_memory() -> None:
    torch = pytest.importorskip(
        "torch", reason="torch is not installed here; JAX shows the same in this file"
    )
    for dtype in DTYPES:
        array = rollyard.aligned_zeros((64, 1024), dtype=dtype)
        for shared in (torch.from_numpy(array), torch.from_dlpack(array)):
            assert shared.data_ptr() == array.ctypes.data, dtype


def test_an_array_is_pickled_as_any_other() -> None:
    array = rollyard.aligned_zeros(5, dtype="float32")
    array[:] = range(5)
    assert (pickle.loads(pickle.dumps(array)) == array).all()


def test_what_cannot_be_made_is_refused_by_name() -> None:
    with pytest.raises(rollyard.BatchError, match="dtype is float64, but must be int32"):
        rollyard.aligned_zeros(3, dtype="float64")
    with pytest.raises(ValueError, match="no memory"):
        rollyard.aligned_zeros((1 << 40, 1 << 40), dtype="int32")
