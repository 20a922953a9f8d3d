"""Rollyard: the yard between inference engines and a trainer in LLM reinforcement learning.

`Tokenizer` and `MultiTurnLossMaskGenerator` make tokens and masks of conversations, `Rollout` holds one to
the token, `tensor_dict` and `training_batch` lay many out as arrays that numpy, torch and JAX share without a
copy. `Client` and `AsyncClient` write rollouts to a server and lease groups from it. Importing this starts
nothing, so a process may fork afterwards.
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
    TemplateError,
    TokenizerError,
    UnauthorizedError,
    UnknownError,
)
from rollyard.masks import MultiTurnLossMaskGenerator
from rollyard.rollouts import Message, RolloutBatch, RolloutGroup
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
    RolloutWithAdvantage,
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
    "FullError",
    "Group",
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
    "RolloutWithAdvantage",
    "RollyardError",
    "RunStats",
    "ServerError",
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
    "split_padded_tensors",
    "tensor_dict",
    "training_batch",
    "trim_and_pad",
]
