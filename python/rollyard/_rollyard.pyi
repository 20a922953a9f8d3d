"""The native part: what is in python/src."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

__version__: str
__all__ = [
    "AgentCall",
    "AgentDesk",
    "AgentPlan",
    "AgentWorkflow",
    "Answer",
    "BuiltInWorkflow",
    "Call",
    "Catalog",
    "Drift",
    "Engine",
    "Episode",
    "Executor",
    "FolderReader",
    "FolderWriter",
    "Host",
    "HostedWorkflow",
    "Lines",
    "LoopWorkflow",
    "Mailbox",
    "MaskedTokens",
    "Masks",
    "ModelResponse",
    "Replay",
    "Rollout",
    "RolloutMetadata",
    "RolloutWithAdvantage",
    "RolloutWithCount",
    "Task",
    "Tokenizer",
    "__version__",
    "agent_needs_python",
    "balance",
    "concat",
    "digest",
    "extract_answer",
    "item_of",
    "needs_python",
    "pack",
    "plan",
    "record",
    "recorded",
    "reference_of",
    "response_len",
    "rollout_of",
    "rollouts_of",
    "sequences",
    "split",
    "split_lease",
    "split_sample",
    "stamp",
    "training",
    "verify_answer",
]

_Given = tuple[str, str, list[int], npt.NDArray[np.uint8]]
_Made = tuple[str, str, list[int], npt.NDArray[np.uint8]]
_Messages = Sequence[Mapping[str, Any]]
_Tools = Sequence[Mapping[str, Any]] | None

@final
class Tokenizer:
    """Text to tokens and back, and conversations as the model's own template writes them."""

    @staticmethod
    def from_pretrained(dir: str | PathLike[str]) -> Tokenizer:
        """Loads the files of a model's folder."""
    @staticmethod
    def from_files(tokenizer_json: str, tokenizer_config: str = "{}") -> Tokenizer:
        """The same from the text of `tokenizer.json` and `tokenizer_config.json`."""
    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str: ...
    @overload
    def apply_chat_template(
        self,
        messages: _Messages,
        tools: _Tools = None,
        add_generation_prompt: bool = False,
        tokenize: Literal[True] = True,
        *,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        continue_final_message: bool | str | None = None,
        **kwargs: Any,
    ) -> list[int]: ...
    @overload
    def apply_chat_template(
        self,
        messages: _Messages,
        tools: _Tools = None,
        add_generation_prompt: bool = False,
        *,
        tokenize: Literal[False],
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        continue_final_message: bool | str | None = None,
        **kwargs: Any,
    ) -> str: ...
    def token_to_id(self, token: str) -> int | None: ...
    def id_to_token(self, id: int) -> str | None: ...
    def get_added_vocab(self) -> dict[str, int]:
        """Tokens that are found as a whole wherever they stand, and their ids."""
    def special_token(self, name: str) -> str | None:
        """The content of a special token by its name, such as `eos_token`."""
    @property
    def template_names(self) -> list[str]: ...
    @property
    def path(self) -> str:
        """`fast`, or `tokenizers` with the reason why not."""
    def __len__(self) -> int: ...
    def __copy__(self) -> Tokenizer: ...
    def __deepcopy__(self, _memo: Any, /) -> Tokenizer: ...

@final
class MaskedTokens:
    """A conversation as tokens, and which of them are trained on."""

    def __new__(cls, token_ids: Any, loss_mask: Any) -> MaskedTokens: ...
    @property
    def token_ids(self) -> npt.NDArray[np.int32]: ...
    @property
    def loss_mask(self) -> npt.NDArray[np.int32]: ...
    @property
    def response_length(self) -> int:
        """From the first trained token to the end."""
    @property
    def trained(self) -> int:
        """How many tokens are trained on."""
    def to_lists(self) -> tuple[list[int], list[int]]:
        """Ids and mask as plain lists."""
    def __len__(self) -> int: ...
    def __copy__(self) -> MaskedTokens: ...
    def __deepcopy__(self, _memo: Any, /) -> MaskedTokens: ...

@final
class Drift:
    """Where sampled tokens are not those that their text would give."""

    def __new__(cls, regions: list[tuple[tuple[int, int], tuple[int, int]]]) -> Drift: ...
    @property
    def sampled_tokens(self) -> int:
        """Sampled tokens that the text would not give."""
    @property
    def rendered_tokens(self) -> int:
        """Tokens of the text that were not sampled."""
    @property
    def regions(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Each place as ((start, end) in the sampled tokens, (start, end) in the text's)."""
    def __bool__(self) -> bool: ...

@final
class Masks:
    """A tokenizer with one of the built-in mask types."""

    def __new__(cls, tokenizer: Tokenizer, kind: str) -> Masks: ...
    @staticmethod
    def kinds() -> list[str]: ...
    def mask(self, messages: _Messages, tools: _Tools, kwargs: dict[str, Any] | None) -> MaskedTokens: ...
    def check_whole(
        self, messages: _Messages, tools: _Tools, kwargs: dict[str, Any] | None, masked: MaskedTokens
    ) -> None: ...
    def mask_all(
        self, conversations: Sequence[_Messages], tools: _Tools, kwargs: dict[str, Any] | None
    ) -> list[MaskedTokens]: ...
    def drift(
        self, messages: _Messages, token_ids: Any, tools: _Tools, kwargs: dict[str, Any] | None
    ) -> Drift: ...
    def texts(self, ids: Any, mask: Any) -> list[str]: ...

def response_len(mask: Any) -> int: ...

@final
class RolloutMetadata:
    """Where a rollout came from: attached by the worker after the environment is done."""

    def __new__(
        cls, worker_id: str = "", timestamp: float = 0.0, weight_step: int = -1, version: int = 1
    ) -> RolloutMetadata: ...
    @property
    def worker_id(self) -> str: ...
    @property
    def timestamp(self) -> float: ...
    @property
    def weight_step(self) -> int: ...
    @property
    def version(self) -> int: ...

@final
class Rollout:
    """One rollout to the token. It never changes; its arrays are views of memory that Rust holds."""

    def __new__(
        cls,
        env_name: str,
        env_example_id: str,
        prompt_tokens: Any,
        response_tokens: Any,
        response_logprobs: Any = None,
        token_rewards: Any = None,
        episode_reward: float = 0.0,
        temperature: float | None = None,
        top_k: int | None = None,
        is_truncated: bool = False,
        metadata: RolloutMetadata | None = None,
        correctness_reward: float | None = None,
        *,
        loss_mask: Any = None,
        versions: Any = None,
        exact: bool = True,
    ) -> Rollout: ...
    @staticmethod
    def from_item(
        item: Mapping[str, Any] | str | bytes,
        *,
        masks: Masks | Callable[[bytes], MaskedTokens] | None = None,
    ) -> Rollout:
        """The rollout of an item as the yard keeps it: with the tokens it carries, or else, where `masks` are
        given, with those of its messages."""
    @property
    def env_name(self) -> str: ...
    @property
    def env_example_id(self) -> str: ...
    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """The prompt and the response."""
    @property
    def prompt_tokens(self) -> npt.NDArray[np.int32]: ...
    @property
    def response_tokens(self) -> npt.NDArray[np.int32]: ...
    @property
    def response_logprobs(self) -> npt.NDArray[np.float32] | None:
        """One for each token of the response; `None` if the engine gave none."""
    @property
    def token_rewards(self) -> npt.NDArray[np.float32]:
        """The reward of each token of the response, written out."""
    @property
    def loss_mask(self) -> npt.NDArray[np.int32]:
        """1 on each token of the response that was sampled, written out."""
    @property
    def versions(self) -> npt.NDArray[np.int32]:
        """The weights each token of the response was sampled with, -1 where it was given, written out."""
    @property
    def version_runs(self) -> list[tuple[int, int]]:
        """The versions as pairs of a version and how many tokens it sampled."""
    @property
    def episode_reward(self) -> float: ...
    @property
    def temperature(self) -> float | None: ...
    @property
    def top_k(self) -> int | None: ...
    @property
    def is_truncated(self) -> bool: ...
    @property
    def correctness_reward(self) -> float | None: ...
    @property
    def metadata(self) -> RolloutMetadata: ...
    @property
    def exact(self) -> bool:
        """Whether the tokens are the ones that were sampled, not made again from text."""
    @property
    def turns(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """What was given and what was sampled, turn by turn, as (start, end) pairs in `tokens`."""
    @property
    def size_bytes(self) -> int:
        """Bytes it takes in memory."""
    def with_metadata(self, metadata: RolloutMetadata) -> Rollout:
        """The same rollout with other metadata; the original stays as it is."""
    def fill_metadata(self, batch: RolloutMetadata) -> Rollout:
        """The same rollout with the metadata of its batch, if it has none of its own."""
    def __len__(self) -> int: ...
    def __copy__(self) -> Rollout: ...
    def __deepcopy__(self, _memo: Any, /) -> Rollout: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...

def rollout_of(given: Any) -> Rollout:
    """Ours as it is; another's read by its attributes."""

def stamp(given: Any, stamp: RolloutMetadata) -> Rollout:
    """The rollout with what its own metadata does not say as `stamp` says it."""

def rollouts_of(
    items: Sequence[Mapping[str, Any] | str | bytes],
    versions: Sequence[int | None],
    masks: Masks | Callable[[bytes], MaskedTokens] | None,
) -> list[Rollout]: ...
def item_of(rollout: Rollout, uid: str, group_size: int) -> bytes: ...
def reference_of(item: bytes) -> bytes | None:
    """What stands for a rollout whose bytes are stored elsewhere; `None` if nothing can."""

def split_sample(content: bytes) -> tuple[int, bytes, list[bytes]] | None: ...
def split_lease(
    content: bytes,
) -> tuple[int, int, bytes, list[tuple[int, str, int, tuple[int, int] | None, list[bytes]]]] | None: ...
def concat(dicts: list[list[_Given]], pad_value: float) -> list[_Made]: ...
def split(dict: list[_Given], sizes: list[int] | None) -> list[list[_Made]]: ...
def plan(lengths: list[int], max_tokens: int) -> list[list[int]]: ...
def pack(dict: list[_Given], max_tokens: int) -> list[list[_Made]]: ...
def balance(costs: list[int], ranks: int, equal_size: bool) -> list[list[int]]: ...
def digest(dict: list[_Given]) -> str: ...
def sequences(rollouts: list[Rollout], layout: Mapping[str, Any]) -> list[_Made]: ...
def training(
    rollouts: list[Rollout],
    advantages: list[float],
    layout: Mapping[str, Any],
    oldest_version: int | None,
) -> list[_Made]: ...

@disjoint_base
class RolloutWithAdvantage:
    """A rollout, and how much better it was than the others of its group."""

    __match_args__ = ("rollout", "advantage")
    def __new__(cls, rollout: Any, advantage: float) -> RolloutWithAdvantage: ...
    @property
    def rollout(self) -> Rollout: ...
    @property
    def advantage(self) -> float: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...

@final
class RolloutWithCount(RolloutWithAdvantage):
    """The same, and how often it was used, this time included."""

    __match_args__ = ("rollout", "advantage", "usage_count", "weight_step")
    def __new__(
        cls, rollout: Any, advantage: float, usage_count: int = 0, weight_step: int = 0
    ) -> RolloutWithCount: ...
    @property
    def usage_count(self) -> int: ...
    @property
    def weight_step(self) -> int:
        """The step whose weights sampled it."""

@final
class Replay:
    """The native part of a replay buffer."""

    def __new__(cls, config: Mapping[str, Any]) -> Replay: ...
    def set_step(self, step: int, now: float) -> int: ...
    def rewind(self, step: int, now: float) -> int: ...
    def add(
        self, batches: Iterable[Any], loss_module: Any, clock: Callable[[], float], timeout: float
    ) -> int: ...
    def sample(self, now: float) -> list[RolloutWithCount] | None: ...
    def sample_batch(self, now: float, layout: Mapping[str, Any]) -> list[_Made] | None: ...
    def skip(self, now: float) -> int | None: ...
    def size(self) -> int: ...
    def stats(self) -> dict[str, Any]: ...
    def wait(self, seen: int, timeout: float) -> int: ...
    def wake(self) -> None: ...
    def after_fork(self) -> None: ...

_Problems = list[tuple[str, str]]
_Read = tuple[list[list[Rollout]], RolloutMetadata]

@final
class FolderWriter:
    """The end of a folder of rollout files that a worker holds."""

    def __new__(cls, place: str, files_max: int) -> FolderWriter: ...
    def write(
        self, groups: Sequence[Sequence[Rollout]], metadata: RolloutMetadata
    ) -> tuple[str, int, float, float, str | None]:
        """Gives name, size in bytes, seconds to encode and to publish, why old files could not be deleted."""
    def clear(self) -> None:
        """Deletes all files of rollouts."""

@final
class FolderReader:
    """The end of a folder of rollout files that a trainer holds."""

    def __new__(cls, place: str) -> FolderReader: ...
    def read_next(self) -> tuple[_Read | None, _Problems]:
        """The oldest batch that was not read yet, and what was found wrong on the way to it."""
    def read_all(self) -> tuple[list[_Read], _Problems]:
        """All batches that were not read yet."""
    @property
    def problems(self) -> _Problems:
        """The last thousand problems."""
    @property
    def problems_total(self) -> int:
        """How many there were in all."""

@final
class Lines:
    """Appends lines to a file, or puts them in a bucket as objects."""

    def __new__(cls, place: str, is_file: bool) -> Lines: ...
    def log(self, sample: Mapping[str, Any]) -> str | None:
        """Hands a sample over. Gives back what is wrong with the writing, when that is news."""
    def flush_soon(self) -> None:
        """Has what there is written, without waiting for it."""
    def flush(self) -> None:
        """Waits until everything is written."""
    def close(self) -> None:
        """Writes what there is and ends the thread. The next sample would start another one."""

@final
class ModelResponse:
    """What an engine answered, to the token. It never changes."""

    def __new__(
        cls,
        *,
        input_tokens: Any = None,
        output_tokens: Any = None,
        output_logprobs: Any = None,
        output_versions: Any = None,
        stop_reason: str = "stop",
        latency: float = 0.0,
        ttft: float = 0.0,
        text: str | None = None,
        message: Any = None,
        is_exact: bool = True,
    ) -> ModelResponse: ...
    @property
    def input_tokens(self) -> list[int]:
        """The prompt's tokens; empty where the engine only speaks text."""
    @property
    def output_tokens(self) -> list[int]:
        """Every token that was sampled, over all interruptions."""
    @property
    def output_logprobs(self) -> list[float]:
        """One for each token of the output."""
    @property
    def output_versions(self) -> list[int]:
        """The weights that each token of the output was sampled with; -1 if nobody knows."""
    @property
    def segments(self) -> list[tuple[int, int]]:
        """The same as pairs of how many tokens and their version, in order."""
    @property
    def stop_reason(self) -> Literal["stop", "length", "tool_calls", "abort"]: ...
    @property
    def latency(self) -> float:
        """Seconds until the answer was complete."""
    @property
    def ttft(self) -> float:
        """Seconds until the first token, or until the answer where the engine does not stream."""
    @property
    def text(self) -> str | None:
        """As the engine wrote it, where it did."""
    @property
    def message(self) -> dict[str, Any] | None:
        """The assistant's message as a chat engine wrote it."""
    @property
    def is_exact(self) -> bool:
        """These tokens are the ones that were sampled."""
    @property
    def input_len(self) -> int: ...
    @property
    def output_len(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...

@final
class Mailbox:
    """How Rust reaches an asyncio loop."""

    def __new__(cls) -> Mailbox: ...
    def fileno(self) -> int: ...
    def drain(self) -> None: ...
    def close(self) -> None: ...

@final
class Call:
    """A request under way."""

    def cancel(self) -> None: ...

@final
class Engine:
    """The native part of an engine."""

    def __new__(cls, config: str) -> Engine: ...
    @property
    def config(self) -> str: ...
    @property
    def version(self) -> int: ...
    def start(self, request: Any, session: str | None, mailbox: Mailbox, future: Any) -> Call: ...
    def generate(self, request: Any, session: str | None) -> ModelResponse: ...
    def set_version(self, version: int) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def servers(self) -> str: ...
    def capabilities(self) -> str: ...

@final
class Episode:
    """One episode that Python is to run."""

    @property
    def context(self) -> tuple[str, int, int, int, bool, int]: ...
    def finish(self, arrays: str, parts: Sequence[Any]) -> None: ...
    def fail(self, told: str, may_pass: bool) -> None: ...
    def refuse(self, found: str) -> None: ...

@final
class LoopWorkflow:
    """A workflow of Python's with the data of one task."""

    def __new__(cls, mailbox: Mailbox, begin: Any, cancel: Any, workflow: Any, data: Any) -> LoopWorkflow: ...

_Batch = tuple[str, list[_Made]]
_Sample = tuple[int, float, Rollout | None, str, str, tuple[str, str] | None, list[tuple[int, int]]]
_Group = tuple[int, str, bool, list[_Sample]]

@final
class Task:
    """A prompt with its workflow, to be submitted."""

@final
class Executor:
    """The native part of an executor."""

    def __new__(cls, engine: Engine, config: str, tokenizer: Tokenizer | None, salt: str) -> Executor: ...
    def task(
        self,
        workflow: LoopWorkflow | HostedWorkflow | BuiltInWorkflow | AgentWorkflow,
        data: str,
        group_size: int,
        accept: Callable[[str, list[_Made]], bool] | None,
        is_eval: bool,
    ) -> Task: ...
    def submit(self, task: Task) -> int: ...
    def idle(self) -> None: ...
    def wait(self, count: int, timeout: float | None) -> _Batch: ...
    def wait_groups(self, count: int, timeout: float | None) -> list[_Group]: ...
    def wait_for_task(self, id: int, timeout: float | None) -> _Batch | None: ...
    def rollout_batch(self, tasks: Sequence[Task], timeout: float | None) -> _Batch: ...
    def prepare_batch(
        self, next: Callable[[], Task | None], dynamic: bool, timeout: float | None
    ) -> _Batch: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def set_version(self, version: int) -> None: ...
    def cancel(self, id: int) -> bool: ...
    def stats(self) -> str: ...
    def running(self) -> str: ...
    def close(self) -> None: ...

@final
class BuiltInWorkflow:
    """A workflow that runs in Rust."""

    def __new__(cls, recipe: str, tokenizer: Tokenizer | None, host: Host | None) -> BuiltInWorkflow: ...

def needs_python(recipe: str) -> bool: ...
def verify_answer(answer: str, truth: str) -> bool:
    """Whether an answer means the same as the truth: numbers, sets, intervals, expressions, words."""

def extract_answer(text: str) -> str | None:
    """The final answer in a text: what is in the last box, or behind the usual words."""

@final
class HostedWorkflow:
    """A workflow that was imported by worker processes."""

@final
class Host:
    """Worker processes."""

    def __new__(cls, config: str) -> Host: ...
    def workflow(self, path: str, kwargs: str) -> HostedWorkflow: ...
    def is_agent(self, path: str) -> bool: ...
    def function(self, path: str) -> int: ...
    def call(self, function: int, arguments: str) -> str: ...
    def set_version(self, version: int) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def pids(self) -> list[int]: ...
    def close(self) -> None: ...

@final
class AgentDesk:
    """A gateway of an executor's own."""

    def __new__(cls, tokenizer: Tokenizer, model: str) -> AgentDesk: ...
    def plan(self, recipe: str, host: Host | None) -> AgentPlan: ...
    def addresses(self) -> list[str]: ...
    def close(self) -> None: ...

@final
class AgentPlan:
    """How agents are run."""

    def command(self, line: str) -> AgentWorkflow: ...
    def hosted(self, host: Host, path: str, kwargs: str, environment: bool | None) -> AgentWorkflow: ...
    def on_loop(self, workflow: LoopWorkflow) -> AgentWorkflow: ...

@final
class AgentWorkflow:
    """A workflow whose episodes are agents."""

@final
class AgentCall:
    """One run of an agent that Python is to make."""

    @property
    def told(self) -> str: ...
    def finish(self, value: str) -> None: ...
    def fail(self, told: str, may_pass: bool) -> None: ...

def agent_needs_python(recipe: str) -> bool: ...
def record(scope: str, name: str, value: float) -> None: ...
def recorded(reset: bool) -> str: ...

@final
class Catalog:
    def __new__(cls, places: list[str], cache: str | PathLike[str] | None = None) -> Catalog: ...
    def refresh(self) -> tuple[int, int]: ...
    def sql(self, sql: str) -> Answer: ...
    def search(
        self, wanted: tuple[str, bool, bool, list[str]], filter: str, hits_max: int | None
    ) -> list[tuple[str, int, str, int, int, str, int]]: ...
    def raw(self, id: str) -> bytes | None: ...

@final
class Answer:
    @property
    def names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def rows(self) -> list[tuple[Any, ...]]: ...
    def ipc(self) -> bytes: ...
