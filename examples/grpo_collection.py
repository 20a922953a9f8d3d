"""Groups for GRPO: collected ahead of the trainer, filtered, normalised, and never staler than allowed.

    python examples/grpo_collection.py http://127.0.0.1:30000 models/Qwen2.5-0.5B-Instruct

The first argument is an SGLang server, the second the folder of the model that it serves. Nothing is trained
here: put your step where `train` is, and your transfer of weights where `publish` says.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import rollyard
from rollyard import stats, workflow_context

GROUPS_PER_STEP = 4
GROUP_SIZE = 8
STALENESS_MAX = 2
THINGS = ["a mutex", "a B-tree", "gradient clipping", "a bloom filter", "backpressure", "a lease"]


class Prompts:
    """Begun again whenever it ends, in another order each time, as a DataLoader of torch would."""

    def __init__(self, *, seed: int) -> None:
        self.random = random.Random(seed)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for thing in self.random.sample(THINGS, len(THINGS)):
            yield {"messages": [{"role": "user", "content": f"What is {thing}? One short sentence."}]}


class Brief(rollyard.RolloutWorkflow):
    """An answer that ends within the limit is worth 1, one that is cut off 0. Put your verifier here."""

    def __init__(self, *, tokenizer: rollyard.Tokenizer, gconfig: rollyard.GenerationConfig) -> None:
        self.tokenizer = tokenizer
        self.gconfig = gconfig

    async def arun_episode(self, engine: rollyard.InferenceEngine, data: dict[str, Any]) -> dict[str, Any]:
        prompt = self.tokenizer.apply_chat_template(data["messages"], add_generation_prompt=True)
        gconfig = self.gconfig.new(seed=workflow_context.get().seed)
        response = await engine.agenerate(rollyard.ModelRequest(input_ids=prompt, gconfig=gconfig))
        reward = float(response.stop_reason == "stop")
        stats.get().scalar(reward=reward, tokens=response.output_len)
        return rollyard.Interaction(response, reward).to_tensor_dict()


def is_varied(group: rollyard.tensors.TensorDict) -> bool:
    """Where all members earn the same, every advantage is 0 and there is nothing to learn."""
    return bool(group["rewards"].std() > 0)


def advantages(batch: rollyard.tensors.TensorDict) -> npt.NDArray[np.float32]:
    """Each reward against those of its group, on every token that was sampled."""
    # The rows of a group are next to each other, and `incomplete="replace"` below keeps groups whole.
    rewards = batch["rewards"].reshape(-1, GROUP_SIZE)
    normal = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, keepdims=True) + 1e-6)
    spread: npt.NDArray[np.float32] = normal.reshape(-1, 1) * batch["loss_mask"]
    return spread


def train(step: int, batch: rollyard.tensors.TensorDict, version: int) -> None:
    learnt = advantages(batch)
    behind = version - batch["versions"][batch["loss_mask"] == 1].min()
    print(
        f"step {step}: {learnt.shape[0]} rows of {learnt.shape[1]}, reward {batch['rewards'].mean():.2f}, "
        f"advantages {learnt.min():.2f} to {learnt.max():.2f}, oldest token {behind} versions behind"
    )


def publish(executor: rollyard.RolloutExecutor, version: int) -> None:
    """What is being generated is interrupted, and goes on with the new weights from the token it was at."""
    executor.engine.pause()
    # The engine loads the weights here. Tokens have the version that sampled them, also within one answer.
    executor.set_version(version)
    executor.engine.resume()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", help="address of an SGLang server")
    parser.add_argument("model", help="folder of the model that it serves")
    parser.add_argument("--steps", type=int, default=4)
    arguments = parser.parse_args()

    tokenizer = rollyard.Tokenizer.from_pretrained(arguments.model)
    workflow = Brief(tokenizer=tokenizer, gconfig=rollyard.GenerationConfig(max_new_tokens=32))
    prompts = Prompts(seed=0)
    with (
        rollyard.SGLangEngine(arguments.engine) as engine,
        rollyard.RolloutExecutor(
            engine,
            consumer_batch_size=GROUPS_PER_STEP,
            max_head_offpolicyness=STALENESS_MAX,
            incomplete="replace",
        ) as executor,
    ):
        for step in range(arguments.steps):
            batch = executor.prepare_batch(
                prompts, workflow, group_size=GROUP_SIZE, should_accept_fn=is_varied
            )
            train(step, batch, executor.get_version())
            publish(executor, step + 1)
        counts = executor.stats()
    print(", ".join(f"{counts[name]} {name}" for name in ("accepted", "rejected", "stale", "failed")))
    print(stats.export()["rollout"])


if __name__ == "__main__":
    main()
