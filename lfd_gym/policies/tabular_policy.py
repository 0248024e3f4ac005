"""Stable-Baselines3 policies over a table of action probabilities. Importing this module imports torch.

They work wherever Stable-Baselines3 and `imitation` take a policy. Two things differ from networks on purpose: actions
are drawn with the policy's own generator, not torch's global one, and `save` writes a file that can be read without
running any code from it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.features.tiles import TileGrid
from lfd_gym.files import replacing_file
from lfd_gym.policies.policies import sample_rows
from lfd_gym.validation import FloatArray, IntArray, policy_array

try:
    import torch as th
    from stable_baselines3.common.policies import BasePolicy
except ImportError as error:
    raise ImportError(
        "policies for Stable-Baselines3 need the 'imitation' extra: pip install 'lfd-gym[imitation]'"
    ) from error

_FORMAT = "lfd_gym.TabularPolicy/1"


class TabularPolicy(BasePolicy):
    """π(a|x) from a table with a row for every state, or for every tile of a grid over observations.

    Parameters
    ----------
    observation_space
        ``Discrete(n)``: observations are states; or a `Box` of shape (n,): observations are one-hot vectors of states,
        or, with a ``grid``, points of the box that the grid covers.
    action_space
        ``Discrete(A)``.
    probabilities
        (n, A) rows are distributions over actions.
    rng
        Seeds the generator with which the policy draws its actions.
    grid
        Tiles over the observations; row k of the table is that of tile k.

    Examples
    --------
    >>> import gymnasium as gym
    >>> import numpy as np
    >>> table = np.array([[1.0, 0.0], [0.25, 0.75]])
    >>> spaces = gym.spaces.Discrete(2), gym.spaces.Discrete(2)
    >>> policy = TabularPolicy(*spaces, table, np.random.default_rng(0))
    >>> policy.predict(np.array([0, 1, 1]), deterministic=True)[0]
    array([0, 1, 1])
    """

    probabilities: th.Tensor

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        probabilities: ArrayLike,
        rng: np.random.Generator,
        grid: TileGrid | None = None,
    ) -> None:
        super().__init__(observation_space, action_space)
        n_states = _n_states(observation_space) if grid is None else grid.n_tiles
        self.grid = grid
        if not isinstance(action_space, gym.spaces.Discrete):
            raise ValueError(f"action_space must be Discrete, got {action_space}")
        table = policy_array("probabilities", probabilities, n_states, int(action_space.n))
        self.register_buffer("probabilities", th.tensor(table, dtype=th.float64))
        self.rng = np.random.default_rng(rng.integers(2**63))

    @property
    def table(self) -> FloatArray:
        """(n, A) the probabilities."""
        return np.asarray(self.probabilities.cpu().numpy())

    def action_probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return the (n, A) distributions over actions for a batch of observations."""
        return np.asarray(self.table[self.states(np.asarray(observations))])

    def states(self, observations: NDArray[Any]) -> IntArray:
        """Return the states that observations stand for, or refuse those that stand for none."""
        n_states = len(self.probabilities)
        if self.grid is not None:
            return self.grid.index(observations)
        if isinstance(self.observation_space, gym.spaces.Box):
            hot = observations == 1
            wrong = (hot.sum(axis=1) != 1) | ((observations != 0).sum(axis=1) != 1)
            if wrong.any():
                raise ValueError(f"observation {observations[wrong][0]} is not the one-hot vector of a state")
            return np.asarray(hot.argmax(axis=1))
        states = observations.astype(np.int64)
        wrong = (states != observations) | (states < 0) | (states >= n_states)
        if wrong.any():
            raise ValueError(f"observation {observations[wrong][0]} is not one of the states 0 to {n_states - 1}")
        return states

    def _predict(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        rows = self.action_probabilities(observation.cpu().numpy())
        actions = rows.argmax(axis=1) if deterministic else sample_rows(rows, self.rng)
        return th.as_tensor(actions)

    def forward(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        """Return actions for a batch of observations."""
        return self._predict(observation, deterministic)

    def save(self, path: str | Path) -> None:
        """Write the table, the spaces and the state of the generator to one ``.npz`` file without pickled objects."""
        description = {
            "format": _FORMAT,
            "one_hot": isinstance(self.observation_space, gym.spaces.Box),
            "rng": self.rng.bit_generator.state,
        }
        arrays: dict[str, Any] = {"probabilities": self.table, "description": np.array(json.dumps(description))}
        if self.grid is not None:
            space: Any = self.observation_space
            arrays |= {"low": self.grid.low, "high": self.grid.high, "counts": np.array(self.grid.counts)}
            arrays |= {"space_low": space.low, "space_high": space.high}
        with replacing_file(path, overwrite=True) as unfinished, open(unfinished, "wb") as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | Path, device: Any = "cpu") -> TabularPolicy:
        """Read what `save` wrote: the same probabilities, and the same actions drawn from there on."""
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        if "description" not in arrays or "probabilities" not in arrays:
            raise ValueError(f"{path} is not a policy saved by TabularPolicy")
        description = json.loads(str(arrays["description"]))
        if description.get("format") != _FORMAT:
            raise ValueError(f"{path} has format {description.get('format')!r}, not {_FORMAT!r}")
        table = arrays["probabilities"]
        n_states, n_actions = table.shape
        observations: gym.Space[Any] = gym.spaces.Discrete(n_states)
        grid = None
        if "counts" in arrays:
            grid = TileGrid(arrays["low"], arrays["high"], arrays["counts"].tolist())
            observations = gym.spaces.Box(arrays["space_low"], arrays["space_high"], dtype=arrays["space_low"].dtype)
        elif description["one_hot"]:
            observations = gym.spaces.Box(0.0, 1.0, (n_states,))
        policy = cls(observations, gym.spaces.Discrete(n_actions), table, np.random.default_rng(0), grid)
        policy.rng.bit_generator.state = description["rng"]
        return policy.to(device)


def _n_states(space: gym.Space[Any]) -> int:
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return int(space.n)
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
        return space.shape[0]
    raise ValueError(f"observation_space must be Discrete (from 0 on) or a Box of one-hot vectors, got {space}")
