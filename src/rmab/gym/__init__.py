"""Gymnasium environments of all tasks: `import rmab.gym` registers them (extra `rmab[gym]`).

Environments are `rmab/NAME-v0` for each task, for example `rmab/cpap-v0`, and `rmab/task-v0` for a file or a custom task.
Use `gymnasium.make` for one round, and `gymnasium.make_vec` for many rounds in compiled code.
"""

from rmab.common import require

require("gym", "rmab.gym")

import gymnasium as _gymnasium

from rmab.gym.env import RmabEnv
from rmab.gym.learners import play
from rmab.gym.scores import ScoreAction, VectorScoreAction
from rmab.gym.vector import RmabVectorEnv
from rmab.tasks.registry import TASKS as _TASKS

__all__ = ["RmabEnv", "RmabVectorEnv", "ScoreAction", "VectorScoreAction", "play"]

for _name in (*_TASKS, "task"):
    if f"rmab/{_name}-v0" not in _gymnasium.registry:
        _gymnasium.register(
            id=f"rmab/{_name}-v0",
            entry_point="rmab.gym.env:RmabEnv",
            vector_entry_point="rmab.gym.vector:RmabVectorEnv",
            kwargs={} if _name == "task" else {"task": _name},
        )
