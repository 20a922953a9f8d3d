"""asyncio loops and Rust: a mailbox for each loop, and a loop in a thread for episodes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from typing import Any
from weakref import WeakKeyDictionary

from rollyard import workflow_context
from rollyard._rollyard import AgentCall, Episode, LoopWorkflow, Mailbox
from rollyard.agent_runner import AgentRunner
from rollyard.returned import WrongTypeError, parts_of, plain, told
from rollyard.workflow import RolloutWorkflow
from rollyard.workflow_context import WorkflowContext

_mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = WeakKeyDictionary()


def mailbox_of(loop: asyncio.AbstractEventLoop) -> Mailbox:
    """The mailbox of the loop, made when it is first needed."""
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = _mailboxes[loop] = Mailbox()
        loop.add_reader(mailbox.fileno(), mailbox.drain)
    return mailbox


async def run_episode(episode: Episode, workflow: RolloutWorkflow, engine: Any, data: dict[str, Any]) -> None:
    """Runs one episode to its end, and tells Rust how it ended, whatever that is."""
    run, task_id, sample_idx, attempt, is_eval, seed = episode.context
    workflow_context.set(WorkflowContext(is_eval, task_id, sample_idx, run, seed, attempt))
    try:
        episode.finish(*parts_of(await workflow.arun_episode(engine, data)))
    except WrongTypeError as error:
        episode.refuse(str(error))
    except asyncio.CancelledError:
        episode.fail("CancelledError: the episode was cancelled", True)
        raise
    except BaseException as error:
        # Even SystemExit ends only the episode that raised it.
        episode.fail(*told(error))


async def run_agent(call: AgentCall, agent: AgentRunner, data: dict[str, Any]) -> None:
    """The same for an agent."""
    try:
        call.finish(json.dumps(plain(await agent.call(data, json.loads(call.told)))))
    except asyncio.CancelledError:
        call.fail("CancelledError: the episode was cancelled", True)
        raise
    except BaseException as error:
        call.fail(*told(error))


class EpisodeLoop:
    """A thread with an asyncio loop on which episodes run, many at once."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._mailbox = Mailbox()
        _mailboxes[self._loop] = self._mailbox
        self._thread = threading.Thread(target=self._run, name="rollyard episodes", daemon=True)
        self._thread.start()

    def workflow(self, workflow: RolloutWorkflow, data: dict[str, Any]) -> LoopWorkflow:
        """The workflow on this data, for Rust to run as often as it has to."""
        return LoopWorkflow(self._mailbox, self._begin, self._cancel, workflow, data)

    def agent(self, agent: AgentRunner, data: dict[str, Any]) -> LoopWorkflow:
        """The same for an agent."""
        return LoopWorkflow(self._mailbox, self._begin_agent, self._cancel, agent, data)

    def close(self) -> None:
        """Cancels what is running, and ends the thread."""
        self.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def stop(self) -> None:
        """The same without waiting for the end."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _begin(self, number: int, episode: Episode, workflow: RolloutWorkflow, data: dict[str, Any]) -> None:
        # Episodes of a group share the data: one that takes something out of it must not take it from the
        # others.
        self._start(number, run_episode(episode, workflow, self._engine, dict(data)))

    def _begin_agent(self, number: int, call: AgentCall, agent: AgentRunner, data: dict[str, Any]) -> None:
        self._start(number, run_agent(call, agent, dict(data)))

    def _start(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[number] = self._loop.create_task(work)
        # Also of one that is cancelled before it has begun.
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    def _cancel(self, number: int) -> None:
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.add_reader(self._mailbox.fileno(), self._mailbox.drain)
        try:
            self._loop.run_forever()
        finally:
            self._mailbox.close()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
