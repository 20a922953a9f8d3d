"""Rollyard: the yard between inference engines and a trainer in LLM reinforcement learning.

`Tokenizer` and `MultiTurnLossMaskGenerator` make tokens and masks of conversations, `Rollout` holds one to
the token, `tensor_dict` and `training_batch` lay many out as arrays that numpy, torch and JAX share without a
copy. `Client` and `AsyncClient` write rollouts to a server and lease groups from it;
`RolloutStorageConfig` hands them over as files without one. Importing this starts nothing, so a process may
fork afterwards.
"""

from rollyard._rollyard import (
    Drift,
    MaskedTokens,
    Rollout,
    RolloutMetadata,
    RolloutWithAdvantage,
    RolloutWithCount,
    Tokenizer,
    __version__,
)
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
    Sample,
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
    PacedError,
    RefusedError,
    ReplayError,
    RolloutError,
    RollyardError,
    ServerError,
    StorageError,
    TemplateError,
    TokenizerError,
    UnauthorizedError,
    UnknownError,
)
from rollyard.limiters import MinSize, Queue, SampleToInsertRatio
from rollyard.loader import ReplayDataLoader
from rollyard.masks import MultiTurnLossMaskGenerator
from rollyard.replay import ReplayBuffer, ReplayBufferConfig
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
from rollyard.training import (
    TrainingBatch,
    create_training_batch_from_rollouts,
    trim_and_pad,
)
from rollyard.worker import attach_metadata

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
    "MinSize",
    "MultiTurnLossMaskGenerator",
    "NoAnswerError",
    "NotReachableError",
    "PacedError",
    "Queue",
    "RefusedError",
    "RejectedRollout",
    "ReplayBuffer",
    "ReplayBufferConfig",
    "ReplayDataLoader",
    "ReplayError",
    "Rollout",
    "RolloutBatch",
    "RolloutError",
    "RolloutGroup",
    "RolloutMetadata",
    "RolloutReader",
    "RolloutStorageConfig",
    "RolloutWithAdvantage",
    "RolloutWithCount",
    "RolloutWriter",
    "RollyardError",
    "RunStats",
    "Sample",
    "SampleToInsertRatio",
    "ServerError",
    "StorageError",
    "StorageType",
    "TemplateError",
    "Tokenizer",
    "TokenizerError",
    "TrainingBatch",
    "UnauthorizedError",
    "UnknownError",
    "WriteManyResult",
    "WriteResult",
    "__version__",
    "attach_metadata",
    "balance",
    "concat_padded_tensors",
    "create_training_batch_from_rollouts",
    "digest",
    "pack",
    "pack_tensors",
    "resolve_metadata",
    "split_padded_tensors",
    "tensor_dict",
    "training_batch",
    "trim_and_pad",
]
