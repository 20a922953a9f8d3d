"""The native part: what is in python/src."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

__all__ = ["__version__", "aligned_zeros"]

__version__: str

def aligned_zeros(shape: int | Sequence[int], *, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros in memory that torch and JAX share without a copy: contiguous, writable, 64-byte aligned.

    `dtype` is int32, uint32, int64, float32 or bool.
    """
