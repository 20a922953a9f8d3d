"""Generators: files that make rollouts of a data set for a run, and hooks that judge and shape its groups.

`BaseGenerator` goes through a data set with worker processes, `query_single_turn` and `math_reward` are what
it runs for mathematics, `register` marks what the server should find in a file, and `hooks` has the steps
that a group passes through where a file has none of its own.
"""

from rollyard.generator import hooks
from rollyard.generator.base import SAMPLING_PARAMS, TASK_TYPE, BaseGenerator, run_rollout
from rollyard.generator.chat import ChatClient, ChatError
from rollyard.generator.input import InputError
from rollyard.generator.registry import HOOKS, register
from rollyard.generator.rewards import get_rule_based_math_reward, math_reward
from rollyard.generator.turn import QueryError, query_single_turn

__all__ = [
    "HOOKS",
    "SAMPLING_PARAMS",
    "TASK_TYPE",
    "BaseGenerator",
    "ChatClient",
    "ChatError",
    "InputError",
    "QueryError",
    "get_rule_based_math_reward",
    "hooks",
    "math_reward",
    "query_single_turn",
    "register",
    "run_rollout",
]
