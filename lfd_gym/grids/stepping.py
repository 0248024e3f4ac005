"""What a step of a simulator costs, by what it is: a clock would not tell the same twice."""

from __future__ import annotations

from lfd_gym.envs.classic_control import ClassicControlModel
from lfd_gym.envs.simulator import SimulatorModel
from lfd_gym.envs.wrapped import WrappedModel
from lfd_gym.grids.tabulated import TabulatedSimulator
from lfd_gym.model.generative_model import GenerativeModel


def steps_in_compiled_code(simulator: GenerativeModel) -> bool:
    """Whether processes would only make the steps of a simulator slower."""
    return isinstance(simulator, ClassicControlModel | TabulatedSimulator)


def steps_pair_by_pair(simulator: GenerativeModel) -> bool:
    """Whether a simulator puts an environment into one state after the other, as those of MuJoCo and `seals` do.

    Classic control does not; of a simulator of somebody's own it is not known, and taken to step in batches.
    """
    if isinstance(simulator, WrappedModel):
        return steps_pair_by_pair(simulator.model)
    return isinstance(simulator, SimulatorModel) and not steps_in_compiled_code(simulator)
