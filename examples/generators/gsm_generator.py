"""School mathematics: one answer to each question, right or wrong by the number behind `####` in its label.

{"instance_id": "gsm_1", "prompt": "Tom has 3 apples …", "label": "… #### 7"}
"""

from typing import Any

from rollyard.generator import BaseGenerator, math_reward, query_single_turn, register

ASK = "\n\nThink step by step, and end with the answer in \\boxed{}."


def answer(client: Any, messages: list[dict[str, Any]], params: dict[str, Any]) -> Any:
    question = messages[-1]
    asked = [*messages[:-1], question | {"content": question["content"] + ASK}]
    return query_single_turn(client, asked, params)


@register("gsm")
def run_rollout(data: dict[str, Any]) -> None:
    generator = BaseGenerator.from_payload(data)
    generator.entry(data["input_file"], answer, math_reward, int(data.get("num_epoch", 1)))
