"""Runs workflows at the pace that keeps what they make fresh."""

from __future__ import annotations

import json
import os
import sys
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict

from rollyard import _rollyard, tensors
from rollyard._rollyard import Rollout, Tokenizer
from rollyard.agent_tasks import AgentTasks
from rollyard.agents import AgentWorkflow, agent_name, is_agent
from rollyard.bridge import EpisodeLoop
from rollyard.builtin import SingleTurnWorkflow
from rollyard.engines import InferenceEngine
from rollyard.errors import ExecutorError, WorkflowError
from rollyard.importing import class_name
from rollyard.resolve import resolve_workflow
from rollyard.tensors import TensorDict

if TYPE_CHECKING:
    from typing_extensions import Self

# Without the words that JSON lacks. To make one for every prompt takes as long as to use it.
_STRICT = json.JSONEncoder(allow_nan=False)

Accept = Callable[[TensorDict], bool]


class ExecutorStats(TypedDict):
    """A look at everything. The unit is the group: one prompt with all its episodes."""

    submitted: int
    enqueued: int
    running: int
    accepted: int
    rejected: int
    stale: int
    """Of those rejected, for their age."""
    failed: int
    ready: int
    """Accepted and not yet taken."""
    version: int
    capacity: int
    """Groups that may be begun now."""
    paused: bool
    oldest_running_secs: float


@dataclass(frozen=True)
class EpisodeSample:
    """One sequence to train on, and what people want to see of it."""

    sample_idx: int
    """Which of the group."""
    reward: float
    rollout: Rollout | None
    """To the token; `None` where the engine only speaks text."""
    messages: list[dict[str, Any]]
    """The conversation, where the workflow told it."""
    text: tuple[str, str] | None
    """Prompt and completion, where they are known without a tokenizer."""
    segments: list[tuple[int, int]]
    """How many sampled tokens, and the version that sampled them."""
    extra: dict[str, Any]


@dataclass(frozen=True)
class EpisodeGroup:
    """What came of one prompt."""

    task_id: int
    data: dict[str, Any]
    """As JSON can say it."""
    is_eval: bool
    samples: list[EpisodeSample]


class RunningTask(TypedDict):
    """A group that runs, for whoever looks for what holds the others up."""

    id: int
    age_secs: float
    started_version: int
    group_size: int
    members_done: int
    attempts_failed: int
    is_eval: bool


class RolloutExecutor:
    """Runs workflows on an engine, as many at once as will still be fresh when they are trained on.

    At most `(max_head_offpolicyness + version + 1) * consumer_batch_size` groups are begun, counted from the
    version at the start, and never more than `max_concurrent_rollouts` run at once. What is taken is checked
    once more: nothing whose oldest token is more than `max_head_offpolicyness` versions behind is handed out;
    `None` is no bound.

    With `processes=0` episodes run on an asyncio loop in a thread of this process, and workflows and data may
    be any objects. With more, they run in so many processes of their own, which import workflows by name and
    survive each other's crashes.

    A workflow may also be an agent, with `async def run(data, …)`: it asks a gateway of this executor's own,
    which needs the `tokenizer`. `AgentWorkflow` says more about it, or runs a program.

    With `fileroot` every task is written down when it has ended, one line a sample, in
    `{fileroot}/{experiment_name}/{trial_name}/rollout/{version}/{task}.jsonl`, and all of them in
    `rollouts.jsonl` of that trial for the viewer; `tokenizer` makes text of tokens. With `yard`, the address
    of a server, every group that is accepted is written to its run before it counts. `keep=False` says that
    nobody will take what was accepted, because the yard or the files have it.
    """

    def __init__(
        self,
        engine: InferenceEngine,
        *,
        max_concurrent_rollouts: int | None = None,
        consumer_batch_size: int = 1,
        max_head_offpolicyness: int | None = 0,
        processes: int = 0,
        threads: int = 8,
        attempts: int = 3,
        incomplete: str = "accept",
        episode_timeout_secs: float | None = None,
        failures_in_a_row_max: int | None = None,
        run: str = "default",
        seed: int = 0,
        python: str | None = None,
        fileroot: str | os.PathLike[str] | None = None,
        experiment_name: str = "default",
        trial_name: str = "default",
        tokenizer: Tokenizer | None = None,
        dump_tokens: bool = False,
        yard: str | None = None,
        yard_run: str = "default",
        yard_token: str | None = None,
        keep: bool = True,
    ) -> None:
        if max_concurrent_rollouts is None:
            max_concurrent_rollouts = consumer_batch_size * ((max_head_offpolicyness or 0) + 1)
        config = {
            "run": run,
            "max_concurrent_rollouts": max_concurrent_rollouts,
            "consumer_batch_size": consumer_batch_size,
            "max_head_offpolicyness": max_head_offpolicyness,
            "attempts": attempts,
            "incomplete": incomplete,
            "episode_timeout_secs": episode_timeout_secs,
            "failures_in_a_row_max": failures_in_a_row_max,
            "seed": seed,
            "keep": keep,
            "yard": None
            if yard is None
            else {"url": yard, "run": yard_run, "token": yard_token, "patience_secs": 600.0},
            "dump": None
            if fileroot is None
            else {
                "fileroot": os.fspath(fileroot),
                "experiment": experiment_name,
                "trial": trial_name,
                "tokens": dump_tokens,
            },
        }
        self.engine = engine
        # An executor that comes after this one makes other rollouts of the same prompts.
        salt = uuid.uuid4().hex
        self._native = _rollyard.Executor(engine._native, json.dumps(config), tokenizer, salt)
        self._python = python
        self._loop: EpisodeLoop | None = None
        self._host: _rollyard.Host | None = None
        self._hosted: dict[tuple[str, str], _rollyard.HostedWorkflow] = {}
        self._built: dict[str, tuple[Tokenizer | None, _rollyard.BuiltInWorkflow]] = {}
        # For rewards and tools, where there are no other worker processes.
        self._functions: _rollyard.Host | None = None
        self._resolved: tuple[Any, Any, Any] | None = None
        self._agents = AgentTasks(engine, tokenizer)
        # Names that worker processes know to be agents, or not.
        self._known_agents: dict[str, AgentWorkflow | None] = {}
        self._feed: tuple[Any, Iterator[Any]] | None = None
        if processes > 0:
            self._host = _start_host(engine, processes, threads, python)
            engine._follow(self._host)
            _when_gone(self, engine._unfollow, self._host)

    def submit(
        self,
        data: Mapping[str, Any],
        workflow: Any,
        *,
        workflow_kwargs: Mapping[str, Any] | None = None,
        should_accept_fn: Accept | None = None,
        group_size: int = 1,
        is_eval: bool = False,
    ) -> int:
        """Puts a prompt into the queue, and gives the number of its task.

        The workflow is an instance, a class, or "module.Class"; it runs `group_size` times on the prompt.
        `should_accept_fn` is asked with the group's tensors. Evaluation is not paced.
        """
        task = self._task(data, workflow, workflow_kwargs, should_accept_fn, group_size, is_eval)
        return self._native.submit(task)

    def wait(self, count: int, *, timeout: float | None = None) -> TensorDict:
        """The `count` oldest groups that were accepted, below each other, as soon as there are so many.

        Arrays are of the kind that the workflow returned. Without a timeout it is an error at once if so many
        cannot come any more. What does not arrive in time is not lost: nothing is taken.
        """
        return _dict(self._native.wait(count, timeout))

    def wait_groups(self, count: int, *, timeout: float | None = None) -> list[EpisodeGroup]:
        """The same sample by sample, with rollouts to the token: for replay buffers, and for engines that
        only speak text.
        """
        return [_group(*group) for group in self._native.wait_groups(count, timeout)]

    def wait_for_task(self, task: int, *, timeout: float | None = None) -> TensorDict | None:
        """What came of one task; `None` if it was rejected, an error if it failed."""
        batch = self._native.wait_for_task(task, timeout)
        return None if batch is None else _dict(batch)

    def rollout_batch(
        self,
        data: Iterable[Mapping[str, Any]],
        workflow: Any,
        *,
        workflow_kwargs: Mapping[str, Any] | None = None,
        should_accept_fn: Accept | None = None,
        group_size: int = 1,
        is_eval: bool = False,
        timeout: float | None = None,
    ) -> TensorDict:
        """Runs these prompts and waits for all of them; those that were accepted, in their order."""
        tasks = [
            self._task(one, workflow, workflow_kwargs, should_accept_fn, group_size, is_eval) for one in data
        ]
        return _dict(self._native.rollout_batch(tasks, timeout))

    def prepare_batch(
        self,
        dataloader: Iterable[Any],
        workflow: Any,
        *,
        workflow_kwargs: Mapping[str, Any] | None = None,
        should_accept_fn: Accept | None = None,
        group_size: int = 1,
        dynamic_bs: bool = False,
        timeout: float | None = None,
    ) -> TensorDict:
        """A batch of `consumer_batch_size` groups for the trainer, while the queue is kept filled.

        The dataloader gives prompts or lists of prompts. It is begun again when it ends, and goes on from
        call to call where it was; an iterator is used up, and then the last batch has what is left. With
        `dynamic_bs` a batch ends when so many groups have ended, and has those of them that were accepted.
        """
        feed = self._feed_of(dataloader)

        def next_task() -> _rollyard.Task | None:
            data = next(feed, None)
            if data is None:
                return None
            return self._task(data, workflow, workflow_kwargs, should_accept_fn, group_size, False)

        return _dict(self._native.prepare_batch(next_task, dynamic_bs, timeout))

    def idle(self) -> None:
        """Waits until everything that was submitted has ended. If all of it failed, that is an error."""
        self._native.idle()

    def pause(self) -> None:
        """Nothing new is begun; what runs goes on. `engine.pause()` interrupts that too."""
        self._native.pause()

    def resume(self) -> None:
        self._native.resume()

    def set_version(self, version: int) -> None:
        """The engine has new weights. When this returns, everyone who samples knows."""
        if self._host is not None:
            self._host.set_version(version)
        self._native.set_version(version)

    def get_version(self) -> int:
        return self.stats()["version"]

    def cancel(self, task: int) -> bool:
        """Stops a task, wherever it is; false if it has ended."""
        return self._native.cancel(task)

    def stats(self) -> ExecutorStats:
        """A look at everything."""
        stats: ExecutorStats = json.loads(self._native.stats())
        return stats

    def running(self) -> list[RunningTask]:
        """What runs, the longest first."""
        tasks: list[RunningTask] = json.loads(self._native.running())
        return tasks

    def close(self) -> None:
        """Cancels what runs, and ends threads and processes. The engine stays open."""
        self._native.close()
        self._agents.close()
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        if self._host is not None:
            self.engine._unfollow(self._host)
            self._host.close()
        if self._functions is not None:
            self._functions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _task(
        self,
        data: Mapping[str, Any],
        workflow: Any,
        kwargs: Mapping[str, Any] | None,
        accept: Accept | None,
        group_size: int,
        is_eval: bool,
    ) -> _rollyard.Task:
        if not isinstance(data, Mapping):
            raise ExecutorError(f"data is a {type(data).__qualname__}, but must be a dict")
        native: (
            _rollyard.LoopWorkflow
            | _rollyard.HostedWorkflow
            | _rollyard.BuiltInWorkflow
            | _rollyard.AgentWorkflow
        )
        # For whoever keeps a record of the task; a workflow in this process has the objects themselves.
        write = _strict_json
        if isinstance(workflow, SingleTurnWorkflow):
            native = self._build(workflow)
        elif isinstance(workflow, AgentWorkflow) and workflow.command is not None:
            native = self._agents.program(workflow, workflow.command, self._function_host)
        elif self._host is not None:
            native = self._import(self._host, workflow, kwargs)
        else:
            native = self._here(workflow, kwargs, data)
            write = _any_json
        written = write(data, "data")
        judge = None if accept is None else lambda arrays, made: accept(_dict((arrays, made)))
        return self._native.task(native, written, group_size, judge, is_eval)

    def _build(self, workflow: SingleTurnWorkflow) -> _rollyard.BuiltInWorkflow:
        """One of Rust's, made once for many prompts."""
        recipe = workflow.recipe
        known, built = self._built.get(recipe, (None, None))
        if built is None or known is not workflow.tokenizer:
            host = self._function_host() if _rollyard.needs_python(recipe) else None
            built = _rollyard.BuiltInWorkflow(recipe, workflow.tokenizer, host)
            self._built[recipe] = (workflow.tokenizer, built)
        return built

    def _function_host(self) -> _rollyard.Host:
        """Worker processes for functions: those of the workflows, or one of its own."""
        if self._host is None and self._functions is None:
            self._functions = _start_host(self.engine, 1, 8, self._python)
            _when_gone(self, _rollyard.Host.close, self._functions)
        host = self._host or self._functions
        assert host is not None
        return host

    def _here(
        self, workflow: Any, kwargs: Mapping[str, Any] | None, data: Mapping[str, Any]
    ) -> _rollyard.LoopWorkflow | _rollyard.AgentWorkflow:
        """On the loop of this process."""
        if self._loop is None:
            self._loop = EpisodeLoop(self.engine)
            _when_gone(self, self._loop.stop)
        resolved = self._resolve(workflow, kwargs)
        if isinstance(resolved, AgentWorkflow):
            return self._agents.here(resolved, self._loop, data, self._function_host)
        return self._loop.workflow(resolved, dict(data))

    def _resolve(self, workflow: Any, kwargs: Mapping[str, Any] | None) -> Any:
        """A class is made once for many prompts, not once for each."""
        if self._resolved is None or self._resolved[0] is not workflow or self._resolved[1] is not kwargs:
            self._resolved = (workflow, kwargs, resolve_workflow(workflow, kwargs))
        return self._resolved[2]

    def _import(
        self, host: _rollyard.Host, workflow: Any, kwargs: Mapping[str, Any] | None
    ) -> _rollyard.HostedWorkflow | _rollyard.AgentWorkflow:
        agent = self._agent(host, workflow)
        if agent is not None:
            given = agent.agent_kwargs if agent.agent_kwargs is not None else kwargs
            return self._agents.hosted(agent, host, _strict_json(given or {}, "workflow_kwargs"))
        key = (class_name(workflow), _strict_json(kwargs or {}, "workflow_kwargs"))
        if key not in self._hosted:
            self._hosted[key] = host.workflow(*key)
        return self._hosted[key]

    def _agent(self, host: _rollyard.Host, workflow: Any) -> AgentWorkflow | None:
        """The agent that is meant, if one is; whether a name is one's the worker processes know."""
        if isinstance(workflow, AgentWorkflow):
            return workflow
        if not isinstance(workflow, str):
            if not is_agent(workflow):
                return None
            workflow = agent_name(workflow)
        if workflow not in self._known_agents:
            self._known_agents[workflow] = AgentWorkflow(workflow) if host.is_agent(workflow) else None
        return self._known_agents[workflow]

    def _feed_of(self, dataloader: Iterable[Any]) -> Iterator[Any]:
        if self._feed is None or self._feed[0] is not dataloader:
            self._feed = (dataloader, _prompts(dataloader))
        return self._feed[1]


def _prompts(dataloader: Iterable[Any]) -> Iterator[Any]:
    """One prompt after the other, from the beginning again where there is one."""
    again = not isinstance(dataloader, Iterator)
    while True:
        empty = True
        for batch in dataloader:
            for prompt in [batch] if isinstance(batch, Mapping) else batch:
                empty = False
                yield prompt
        if empty or not again:
            return


def _when_gone(executor: RolloutExecutor, function: Callable[..., None], *args: Any) -> None:
    """An executor that nobody closed leaves neither a thread nor processes behind."""
    # At exit the process ends them anyway.
    weakref.finalize(executor, function, *args).atexit = False


def _start_host(engine: InferenceEngine, processes: int, threads: int, python: str | None) -> _rollyard.Host:
    config = {
        "python": sys.executable if python is None else python,
        "processes": processes,
        "threads": threads,
        "engine": json.loads(engine._native.config),
        "sys_path": [folder for folder in sys.path if folder],
    }
    return _rollyard.Host(json.dumps(config))


def _strict_json(value: Mapping[str, Any], name: str) -> str:
    try:
        return _STRICT.encode(value)
    except (TypeError, ValueError) as error:
        raise WorkflowError(
            f"{name} cannot leave this process: {error}; "
            "give what JSON can say, or a workflow in Python with processes=0"
        ) from error


def _any_json(value: Mapping[str, Any], name: str) -> str:
    """What JSON can say of it; other objects by their type."""
    try:
        return _STRICT.encode(value)
    except (TypeError, ValueError):
        told = json.dumps(value, default=lambda other: f"<{type(other).__qualname__}>", skipkeys=True)
        # NaN and the infinities are Python's own words.
        return json.dumps(json.loads(told, parse_constant=str))


def _group(task_id: int, data: str, is_eval: bool, samples: list[_rollyard._Sample]) -> EpisodeGroup:
    told = [
        EpisodeSample(sample_idx, reward, rollout, json.loads(messages), text, segments, json.loads(extra))
        for sample_idx, reward, rollout, messages, extra, text, segments in samples
    ]
    return EpisodeGroup(task_id, json.loads(data), is_eval, told)


def _dict(batch: tuple[str, list[tensors._Made]]) -> TensorDict:
    arrays, made = batch
    return tensors._dict(made, {key: tensors.BACKS[arrays] for key, *_ in made})
