"""A workflow of one's own: the model answers, is told when it was wrong, and tries once more.

    python examples/python_workflow.py http://127.0.0.1:30000 models/Qwen2.5-0.5B-Instruct

The first argument is an SGLang server, the second the folder of the model that it serves.
"""

from __future__ import annotations

import argparse
from typing import Any

from rollyard import (
    GenerationConfig,
    InferenceEngine,
    Interaction,
    ModelRequest,
    RolloutExecutor,
    RolloutWorkflow,
    SGLangEngine,
    Tokenizer,
    stats,
    workflow_context,
)

QUESTIONS = [{"question": f"What is {a} times {b}?", "answer": str(a * b)} for a in (3, 7) for b in (6, 8)]
TURNS_MAX = 2


class TryAgain(RolloutWorkflow):
    """Right at once is worth 1, right at the second try less, and wrong nothing."""

    def __init__(self, *, tokenizer: Tokenizer, gconfig: GenerationConfig) -> None:
        self.tokenizer = tokenizer
        self.gconfig = gconfig

    async def arun_episode(self, engine: InferenceEngine, data: dict[str, Any]) -> dict[str, Interaction]:
        # The seed is the same whenever and wherever this episode runs, and no other of its group has it.
        gconfig = self.gconfig.new(seed=workflow_context.get().seed)
        messages = [{"role": "user", "content": data["question"]}]
        turns: dict[str, Interaction] = {}
        for turn in range(TURNS_MAX):
            prompt = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True)
            response = await engine.agenerate(ModelRequest(input_ids=prompt, gconfig=gconfig))
            text = self.tokenizer.decode(response.output_tokens, skip_special_tokens=True)
            is_right = data["answer"] in text
            # Each turn is a row of its own. The next prompt is rendered anew from text, which may give other
            # tokens than were sampled; what is trained on is only what was sampled, after what was given.
            turns[f"turn-{turn}"] = Interaction(
                response, 0.5**turn if is_right else 0.0, messages=[*messages]
            )
            if is_right:
                break
            messages += [
                {"role": "assistant", "content": text},
                {"role": "user", "content": "That is wrong. Think again, and give the number."},
            ]
        # Kept apart for training and evaluation, because the scope is the episode's own.
        stats.get().scalar(turns=len(turns), right=is_right)
        return turns


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", help="address of an SGLang server")
    parser.add_argument("model", help="folder of the model that it serves")
    arguments = parser.parse_args()

    workflow = TryAgain(
        tokenizer=Tokenizer.from_pretrained(arguments.model), gconfig=GenerationConfig(max_new_tokens=32)
    )
    # The workflow is an object of this process. With processes=4 it would be a class that four others import,
    # and a crash or a busy loop in one of them would leave the rest alone.
    with SGLangEngine(arguments.engine) as engine, RolloutExecutor(engine, consumer_batch_size=4) as executor:
        batch = executor.rollout_batch(QUESTIONS, workflow, group_size=2)
    for name, tensor in batch.items():
        print(f"{name:15} {tensor.dtype!s:8} {tensor.shape}")
    for name, summary in stats.export()["rollout"].items():
        print(f"{name}: {summary['mean']:.2f} on average of {summary['count']} episodes")


if __name__ == "__main__":
    main()
