"""The rollout function: the groups of one step, from the yard into slime's data buffer.

The order is what makes it exact. A lease is taken; its samples go to the data buffer; then it is acked and
committed with the step. A trainer that dies before that finds the groups back in the run, and one that dies
after it gets them back by the rewind with which it begins again.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from rollyard.client.awaited import AsyncClient
from rollyard.slime.convert import to_samples
from rollyard.slime.metrics import log_raw_info
from rollyard.slime.session import Session, session_of
from rollyard.slime.waiting import wait_for_groups


def generate_rollout(args: Any, rollout_id: int, data_buffer: Any, evaluation: bool = False) -> Any:
    """`generate_agent_rollout` for callers that do not await: the function slime is given by its path."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(generate_agent_rollout(args, rollout_id, data_buffer, evaluation))
    return _run_beside(args, rollout_id, data_buffer, evaluation)


async def generate_agent_rollout(
    args: Any, rollout_id: int, data_buffer: Any, evaluation: bool = False
) -> Any:
    """`rollout_batch_size` groups of samples for the step `rollout_id`.

    `data_buffer` is slime's; groups that it holds already are used first.
    """
    if evaluation:
        raise NotImplementedError(
            "evaluation rollouts do not come from a yard; give slime a function for them with "
            "--eval-function-path, or evaluate checkpoints by themselves"
        )
    session = session_of(args, data_buffer)
    # One retry inside: it finds a lease whose answer was lost. All further ones are the session's to count.
    async with AsyncClient(session.address.server, run=session.address.run, retries=1) as client:
        await session.begin(client, args, rollout_id)
        await session.settle(client)
        # Slime's buffer counts groups, not samples.
        groups = args.rollout_batch_size - (data_buffer.get_buffer_length() or 0)
        if groups > 0:
            await _fetch(client, session, args, rollout_id, groups=groups)
    return data_buffer.get_samples(args.rollout_batch_size)


async def _fetch(client: AsyncClient, session: Session, args: Any, rollout_id: int, *, groups: int) -> None:
    lease = await wait_for_groups(client, groups, retries=session.retries)
    try:
        session.data_buffer.add_samples(to_samples(lease, args))
    except BaseException as error:
        await lease.__aexit__(type(error), error, error.__traceback__)
        raise
    session.owe(rollout_id, lease.id)
    if "finished_groups" in lease.meta:
        session.data_buffer.update_metadata({str(rollout_id): lease.meta["finished_groups"]})
    await session.settle(client)
    log_raw_info(args, [lease.meta], rollout_id)


def _run_beside(*given: Any) -> Any:
    """In a thread of its own, for a caller whose thread has an event loop already."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(generate_agent_rollout(*given))
    thread = threading.Thread(target=_run_to_end, args=(loop, task), name="rollyard-slime")
    thread.start()
    try:
        thread.join()
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    return task.result()


def _run_to_end(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    try:
        # The outcome, also a bad one, stays with the task for whoever waits.
        loop.run_until_complete(asyncio.wait([task]))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
