"""Rollyard: the yard between inference engines and a trainer in LLM reinforcement learning.

`Client` and `AsyncClient` write rollouts to a server and lease groups from it; `aligned_zeros` makes arrays
that torch and JAX share without a copy. Importing this starts nothing, so a process may fork afterwards.
"""

from rollyard._rollyard import __version__, aligned_zeros
from rollyard.client.awaited import AsyncClient, AsyncLease
from rollyard.client.blocking import Client, Lease
from rollyard.client.results import (
    Books,
    Done,
    Fate,
    Group,
    LeaseStatus,
    RejectedRollout,
    RunStats,
    WriteManyResult,
    WriteResult,
)
from rollyard.errors import (
    BatchError,
    FullError,
    LeaseLostError,
    MaskError,
    NoAnswerError,
    NotReachableError,
    RefusedError,
    RolloutError,
    RollyardError,
    ServerError,
    TemplateError,
    TokenizerError,
    UnauthorizedError,
    UnknownError,
)

__all__ = [
    "AsyncClient",
    "AsyncLease",
    "BatchError",
    "Books",
    "Client",
    "Done",
    "Fate",
    "FullError",
    "Group",
    "Lease",
    "LeaseLostError",
    "LeaseStatus",
    "MaskError",
    "NoAnswerError",
    "NotReachableError",
    "RefusedError",
    "RejectedRollout",
    "RolloutError",
    "RollyardError",
    "RunStats",
    "ServerError",
    "TemplateError",
    "TokenizerError",
    "UnauthorizedError",
    "UnknownError",
    "WriteManyResult",
    "WriteResult",
    "__version__",
    "aligned_zeros",
]
