"""`start_rollout`: the trainer says what it wants generated.

The payload is slime's, and one knob of ours: the yard has to keep what was trained on since the last
checkpoint, or a trainer that comes back from it could not have it again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from rollyard import errors
from rollyard.client.address import Address
from rollyard.client.blocking import Client
from rollyard.client.calls import post
from rollyard.client.flow import Flow, Request, ask
from rollyard.client.persist import persist
from rollyard.client.site import Site
from rollyard.slime.address import buffer_url

NUM_PROCESS_DEFAULT = 100
NUM_EPOCH_DEFAULT = 3


def start_rollout(api_base_url: str, args: Any, metadata: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """Starts the rollouts of this training, or finds them started; gives the server's answer.

    `metadata` is that of slime's data buffer: for each step the instances that were finished, which are not
    generated again. Waits for as long as the server is not there; a refusal is raised at once.
    """
    address = Address.of(api_base_url)
    with Client(address.server, run=address.run, retries=1) as client:
        return client._do(start(client._site, args, metadata))


def start(site: Site, args: Any, metadata: Mapping[str, Iterable[Any]]) -> Flow[dict[str, Any]]:
    def once() -> Flow[dict[str, Any]]:
        kept = yield from keep_commits_now(site)
        payload = start_payload(args, metadata)
        payload["keep_commits"] = max(kept, payload["keep_commits"])
        answer = yield from ask(site, post(f"/runs/{quote(site.run, safe='')}/start_rollout", payload))
        told: dict[str, Any] = answer.json(site)
        return told

    return (yield from persist(once, what="starting the rollouts", retries=None))


def keep_commits_now(site: Site) -> Flow[int]:
    """What the run keeps already: somebody who set it higher than a trainer needs had a reason."""
    try:
        answer = yield from ask(site, Request("GET", site.run_path))
    except errors.UnknownError:
        return 0
    return int(answer.json(site)["config"]["keep_commits"])


def start_payload(args: Any, metadata: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """What is sent to `/start_rollout`, from slime's arguments."""
    # One commit for each step since the checkpoint, and one for the step that is generated ahead of training.
    keep_commits = max(2, (getattr(args, "save_interval", None) or 0) + 2)
    return {
        "num_process": getattr(args, "rollout_num_process", None) or NUM_PROCESS_DEFAULT,
        "num_epoch": getattr(args, "num_epoch", None) or NUM_EPOCH_DEFAULT,
        "remote_engine_url": engine_url(args),
        "remote_buffer_url": buffer_url(args),
        "task_type": args.rollout_task_type,
        "input_file": args.prompt_data,
        "num_repeat_per_sample": args.n_samples_per_prompt,
        "max_tokens": args.rollout_max_response_len,
        "sampling_params": {
            "max_tokens": args.rollout_max_response_len,
            "temperature": args.rollout_temperature,
            "top_p": args.rollout_top_p,
        },
        "tokenizer_path": args.hf_checkpoint,
        "skip_instance_ids": list(itertools.chain.from_iterable(metadata.values())),
        "keep_commits": keep_commits,
    }


def engine_url(args: Any) -> str:
    host = str(args.sglang_router_ip)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"http://{host}:{args.sglang_router_port}"
