"""Rollyard: the yard between inference engines and a trainer in LLM reinforcement learning.

`Tokenizer` and `MultiTurnLossMaskGenerator` make tokens and masks of conversations, `Rollout` holds one to
the token, `tensor_dict` and `training_batch` lay many out as arrays that numpy, torch and JAX share without a
copy. `Client` and `AsyncClient` write rollouts to a server and lease groups from it;
`RolloutStorageConfig` hands them over as files without one. Importing this starts nothing, so a process may
fork afterwards.
"""

from rollyard._rollyard import Drift, MaskedTokens, Rollout, RolloutMetadata, Tokenizer, __version__
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
    StorageError,
    TemplateError,
    TokenizerError,
    UnauthorizedError,
    UnknownError,
)
from rollyard.masks import MultiTurnLossMaskGenerator
from rollyard.rollouts import Message, RolloutBatch, RolloutGroup, resolve_metadata
from rollyard.storage import (
    FileRolloutReader,
    FileRolloutWriter,
    InMemoryRolloutQueue,
    InMemoryRolloutReader,
    InMemoryRolloutWriter,
    RolloutReader,
    RolloutStorageConfig,
    RolloutWriter,
    StorageType,
)
from rollyard.tensors import (
    balance,
    concat_padded_tensors,
    digest,
    pack,
    pack_tensors,
    split_padded_tensors,
    tensor_dict,
    training_batch,
)

__all__ = [
    "AsyncClient",
    "AsyncLease",
    "BatchError",
    "Books",
    "Client",
    "Done",
    "Drift",
    "Fate",
    "FileRolloutReader",
    "FileRolloutWriter",
    "FullError",
    "Group",
    "InMemoryRolloutQueue",
    "InMemoryRolloutReader",
    "InMemoryRolloutWriter",
    "Lease",
    "LeaseLostError",
    "LeaseStatus",
    "MaskError",
    "MaskedTokens",
    "Message",
    "MultiTurnLossMaskGenerator",
    "NoAnswerError",
    "NotReachableError",
    "RefusedError",
    "RejectedRollout",
    "Rollout",
    "RolloutBatch",
    "RolloutError",
    "RolloutGroup",
    "RolloutMetadata",
    "RolloutReader",
    "RolloutStorageConfig",
    "RolloutWriter",
    "RollyardError",
    "RunStats",
    "ServerError",
    "StorageError",
    "StorageType",
    "TemplateError",
    "Tokenizer",
    "TokenizerError",
    "UnauthorizedError",
    "UnknownError",
    "WriteManyResult",
    "WriteResult",
    "__version__",
    "balance",
    "concat_padded_tensors",
    "digest",
    "pack",
    "pack_tensors",
    "resolve_metadata",
    "split_padded_tensors",
    "tensor_dict",
    "training_batch",
]
