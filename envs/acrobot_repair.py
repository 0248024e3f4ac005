"""Acrobot of Gymnasium 0.29 beside NumPy 2.

Its integrator ``rk4`` asks for ``np.float_``, which NumPy 2 has dropped, so that no step of it works. Newer versions of
Gymnasium do not ask for it, but those that `imitation` and older Stable-Baselines3 need do.
"""

from __future__ import annotations

from types import FunctionType, SimpleNamespace

import numpy as np
from gymnasium.envs.classic_control import acrobot


def repair_acrobot() -> None:
    """Let Acrobot step where it cannot; where it can, do nothing.

    The code of ``rk4`` stays as Gymnasium wrote it. It alone is given a NumPy that has the name: nothing else in the
    process sees a difference.
    """
    original = acrobot.rk4
    if hasattr(np, "float_") or "float_" not in original.__code__.co_names or original.__globals__ is not vars(acrobot):
        return
    names = {**vars(acrobot), "np": SimpleNamespace(**vars(np), float_=np.float64)}
    acrobot.rk4 = FunctionType(original.__code__, names, original.__name__)
