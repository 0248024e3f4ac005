"""Demonstrations: what an expert saw and did, as flat arrays.

With m trajectories and N actions in all, trajectory k owns the actions ``offsets[k]:offsets[k + 1]`` and the
observations ``offsets[k] + k : offsets[k + 1] + k + 1``: one observation before each action, and the last one after
all of them. There is no discount here: it belongs to the problem that the demonstrations are used for.

Actions may be unknown (motion capture, another robot): then "action" above reads "step".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import check_fields, checked
from lfd_gym.demonstrations.columns import (
    flag_column,
    frozen,
    read_only,
    reward_column,
    same,
    space_column,
    state_column,
)
from lfd_gym.demonstrations.provenance import Provenance
from lfd_gym.spaces import check_pairs, check_space
from lfd_gym.validation import IntArray, batch_of_numbers, numbers

if TYPE_CHECKING:
    from imitation.data.types import Trajectory, Transitions
    from minari import MinariDataset


class Episode(NamedTuple):
    """One trajectory: views of T + 1 observations, T actions and T rewards (None if unknown), and how it ended.

    The state of the simulator that it began in may be known, too.
    """

    observations: NDArray[Any]
    actions: NDArray[Any] | None
    rewards: NDArray[Any] | None
    terminated: bool
    truncated: bool
    initial_state: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Demonstrations:
    """Trajectories of an expert. Immutable: the arrays are read-only copies.

    Parameters
    ----------
    observations
        (N + m, …) elements of the space.
    actions
        (N, …); None if they are not known.
    offsets
        (m + 1,) where each trajectory's actions begin; the last entry is N.
    terminated, truncated
        (m,) whether the process came to its end, and whether something outside it (a time limit) cut it short.
        Trajectories with neither are fragments that simply stop.
    observation_space, action_space
        `Box`, `Discrete`, `MultiDiscrete` or `MultiBinary`, counted from 0. There need not be a space of actions that
        are not known: None.
    rewards
        (N,) floats, if known.
    horizon
        The number of actions after which every trajectory was cut by design; None if there is no such number or it is
        not known. It sharpens the confidence radius of `feature_expectations`.
    provenance
        Where the trajectories come from.
    initial_states
        (m, …) the states of a simulator that the trajectories began in, where observations do not tell; None if they
        are not known.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from lfd_gym import Demonstrations
    >>> demos = Demonstrations(
    ...     observations=[0, 1, 2, 0, 1],
    ...     actions=[1, 1, 0],
    ...     offsets=[0, 2, 3],
    ...     terminated=[True, False],
    ...     truncated=[False, True],
    ...     observation_space=gym.spaces.Discrete(3),
    ...     action_space=gym.spaces.Discrete(2),
    ... )
    >>> demos
    Demonstrations(2 trajectories, 3 transitions, Discrete(3) -> Discrete(2))
    >>> demos[1].observations
    array([0, 1])
    """

    observations: NDArray[Any]
    actions: NDArray[Any] | None
    offsets: IntArray
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any] | None
    rewards: NDArray[Any] | None = None
    horizon: int | None = None
    provenance: Provenance = field(default_factory=Provenance)
    initial_states: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        offsets = frozen(batch_of_numbers("offsets", self.offsets), np.int64)
        if offsets.ndim != 1 or offsets.size == 0 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise ValueError("offsets must be a vector that starts at 0 and never falls")
        n_trajectories, n_transitions = offsets.size - 1, int(offsets[-1])
        columns = {
            "observations": space_column(
                "observations", self.observations, n_transitions + n_trajectories, self.observation_space
            ),
            "actions": self._action_column(n_transitions),
            "terminated": flag_column("terminated", self.terminated, n_trajectories),
            "truncated": flag_column("truncated", self.truncated, n_trajectories),
            "rewards": reward_column(self.rewards, n_transitions),
            "initial_states": state_column(self.initial_states, n_trajectories),
            "offsets": offsets,
        }
        check_pairs(self.observation_space, self.action_space)
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        self._check_horizon()

    def _action_column(self, length: int) -> NDArray[Any] | None:
        if self.actions is not None:
            return space_column("actions", self.actions, length, self.action_space)
        if self.action_space is not None:
            check_space("action_space", self.action_space)
        return None

    def _check_horizon(self) -> None:
        if self.horizon is None:
            return
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int | np.integer) or self.horizon < 1:
            raise ValueError(f"horizon must be an integer of at least 1, got {self.horizon!r}")
        lengths = self.lengths
        wrong = (lengths > self.horizon) | (~self.terminated & (lengths != self.horizon))
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(
                f"horizon is {self.horizon}, but trajectory {k} has {lengths[k]} actions and "
                f"{'is' if self.terminated[k] else 'is not'} terminated: without termination a trajectory "
                "runs to the horizon"
            )

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def n_transitions(self) -> int:
        """N, the number of actions, known or not."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> IntArray:
        """(m,) number of actions of each trajectory."""
        return np.diff(self.offsets)

    @property
    def trajectory_indices(self) -> IntArray:
        """(N,) the trajectory that each action belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def acted_on(self) -> NDArray[Any]:
        """(N, …) the observation on which each action was taken: all but the last one of each trajectory."""
        return np.asarray(self.observations[np.arange(self.n_transitions) + self.trajectory_indices])

    def actions_for(self, who: str) -> NDArray[Any]:
        """Return the actions; refuse ``who``, a learner or a format that needs them, if they are not known."""
        if self.actions is None:
            raise ValueError(f"{who} needs actions, but these demonstrations have none: {self}")
        return self.actions

    def __len__(self) -> int:
        return len(self.terminated)

    def __getitem__(self, k: int) -> Episode:
        if not -len(self) <= k < len(self):
            raise IndexError(f"there is no trajectory {k}: there are {len(self)}")
        k %= len(self)
        start, stop = int(self.offsets[k]), int(self.offsets[k + 1])
        return Episode(
            self.observations[start + k : stop + k + 1],
            None if self.actions is None else self.actions[start:stop],
            None if self.rewards is None else self.rewards[start:stop],
            bool(self.terminated[k]),
            bool(self.truncated[k]),
            None if self.initial_states is None else self.initial_states[k],
        )

    def __iter__(self) -> Iterator[Episode]:
        return (self[k] for k in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether everything is the same, bit by bit."""
        if not isinstance(other, Demonstrations):
            return NotImplemented
        return all(same(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by the columns, so that those of the copy are read-only too."""
        return type(self), tuple(getattr(self, part.name) for part in fields(self))

    def __repr__(self) -> str:
        spaces = f"{self.observation_space} -> {'unknown actions' if self.actions is None else self.action_space}"
        return f"Demonstrations({len(self)} trajectories, {self.n_transitions} transitions, {spaces})"

    # -- making -------------------------------------------------------------------------------------------------------

    @classmethod
    @checked
    def from_episodes(
        cls,
        episodes: Iterable[Episode],
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any] | None,
        horizon: int | None = None,
        provenance: Provenance | None = None,
    ) -> Demonstrations:
        """Join trajectories, which must agree on dtypes and on whether there are actions and rewards.

        Whole numbers as rewards become floats. Initial states are kept if they are known of every trajectory.
        """
        parts = [_checked_episode(k, e) for k, e in enumerate(episodes)]
        if not parts:
            raise ValueError("episodes must hold at least one trajectory")
        columns: dict[str, Any] = {}
        for name in ("observations", "actions", "rewards"):
            pieces = [getattr(part, name) for part in parts]
            _check_alike(name, pieces)
            columns[name] = None if pieces[0] is None else read_only(np.concatenate(pieces))
        states = [part.initial_state for part in parts]
        return cls(
            **columns,
            offsets=np.cumsum([0] + [len(part.observations) - 1 for part in parts]),
            terminated=np.array([part.terminated for part in parts], dtype=bool),
            truncated=np.array([part.truncated for part in parts], dtype=bool),
            observation_space=observation_space,
            action_space=action_space,
            horizon=horizon,
            provenance=provenance or Provenance(),
            initial_states=None if any(state is None for state in states) else np.stack(states),  # type: ignore[arg-type]
        )

    @checked
    def select(self, trajectories: ArrayLike) -> Demonstrations:
        """Return the trajectories with the given indices, e.g. ``demos.select(range(5))``."""
        chosen = np.asarray(trajectories)
        if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
            raise ValueError(f"trajectories must be a vector of integers, got {trajectories!r}")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(self)):
            raise IndexError(f"trajectories must lie in [0, {len(self)}), got {chosen.min()} to {chosen.max()}")
        chosen = chosen.astype(np.int64)
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        moved = self.offsets[chosen] + chosen - offsets[:-1] - np.arange(chosen.size)
        seen = np.arange(offsets[-1] + chosen.size) + np.repeat(moved, lengths + 1)
        return replace(
            self,
            observations=read_only(self.observations[seen]),
            actions=None if self.actions is None else read_only(self.actions[rows]),
            offsets=offsets,
            terminated=self.terminated[chosen],
            truncated=self.truncated[chosen],
            rewards=None if self.rewards is None else read_only(self.rewards[rows]),
            initial_states=None if self.initial_states is None else self.initial_states[chosen],
        )

    @staticmethod
    @checked
    def concatenate(parts: Sequence[Demonstrations]) -> Demonstrations:
        """Join demonstrations over the same spaces; a horizon or provenance that differs becomes unknown."""
        if len(parts) == 0:
            raise ValueError("parts must hold at least one set of demonstrations")
        first = parts[0]
        for part in parts:
            if (part.observation_space, part.action_space) != (first.observation_space, first.action_space):
                raise ValueError(f"parts must be over the same spaces to be joined, got {first} and {part}")
        return Demonstrations.from_episodes(
            [episode for part in parts for episode in part],
            first.observation_space,
            first.action_space,
            first.horizon if all(part.horizon == first.horizon for part in parts) else None,
            first.provenance if all(part.provenance == first.provenance for part in parts) else None,
        )

    def with_provenance(self, **parts: Any) -> Demonstrations:
        """Return the same trajectories with some parts of the `Provenance` set, e.g. ``policy="optimal"``."""
        return replace(self, provenance=replace(self.provenance, **parts))

    def without_actions(self) -> Demonstrations:
        """Return the same trajectories without their actions, e.g. to learn from what was seen alone."""
        return replace(self, actions=None)

    # -- files and other libraries ------------------------------------------------------------------------------------

    @checked
    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write one ``.npz`` file, all or nothing; see `lfd_gym.demonstrations.files` for the format."""
        from lfd_gym.demonstrations import files as demonstration_files

        demonstration_files.save(self, path, overwrite)

    @staticmethod
    @checked
    def load(path: str | Path, max_bytes: int | None = None) -> Demonstrations:
        """Read what `save` wrote. No content of the file can run code.

        Parameters
        ----------
        path
            The file; a `lfd_gym.files.FileContentError` says what is wrong with it.
        max_bytes
            What its arrays may take in memory; by default 1 GiB, or a hundred times the size of the file if that is
            more.
        """
        from lfd_gym.demonstrations import files as demonstration_files

        return demonstration_files.load(path, max_bytes)

    def to_imitation(self) -> list[Trajectory]:
        """Return `imitation` trajectories (with rewards, if they are known); see `interop_imitation`."""
        from lfd_gym.demonstrations import interop_imitation

        return interop_imitation.to_trajectories(self)

    def to_transitions(self) -> Transitions:
        """Return `imitation`'s flattened transitions (with rewards, if they are known)."""
        from lfd_gym.demonstrations import interop_imitation

        return interop_imitation.to_transitions(self)

    def save_imitation(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the folder that `imitation.data.serialize.save` writes, all or nothing."""
        from lfd_gym.demonstrations import interop_imitation

        interop_imitation.save_dataset(self, path, overwrite)

    @staticmethod
    def from_imitation(
        source: Sequence[Trajectory] | Transitions | str | Path,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        horizon: int | None = None,
    ) -> Demonstrations:
        """Take over trajectories, flattened transitions in their original order, or the folder of a saved dataset.

        `imitation` does not tell a time limit from an end: terminal trajectories of ``horizon`` actions count as cut,
        unless their infos say otherwise. `interop_imitation` says what becomes of the infos. Nothing in a saved dataset
        can run code.
        """
        from lfd_gym.demonstrations import interop_imitation

        return interop_imitation.to_demonstrations(source, observation_space, action_space, horizon)

    def to_minari(self, dataset_id: str, **metadata: Any) -> MinariDataset:
        """Create a local Minari dataset; see `interop_minari.create_dataset` for the metadata."""
        from lfd_gym.demonstrations import interop_minari

        return interop_minari.create_dataset(self, dataset_id, **metadata)

    @staticmethod
    def from_minari(dataset: MinariDataset | str) -> Demonstrations:
        """Take over a Minari dataset, or the local one of that name."""
        from lfd_gym.demonstrations import interop_minari

        return interop_minari.from_dataset(dataset)


def _checked_episode(k: int, parts: Sequence[Any]) -> Episode:
    """Return trajectory ``k`` with its columns as arrays, which must be of one length."""
    try:
        episode = Episode(*parts)
    except TypeError:
        raise TypeError(
            f"episodes[{k}] must be a lfd_gym Episode or its five or six parts, (observations, actions, rewards, "
            f"terminated, truncated, initial_state), with None for what is not known, got {len(parts)}: {parts!r:.80}"
        ) from None
    seen = numbers(f"observations of episodes[{k}]", episode.observations)
    done = None if episode.actions is None else numbers(f"actions of episodes[{k}]", episode.actions)
    gained = None if episode.rewards is None else numbers(f"rewards of episodes[{k}]", episode.rewards)
    for name, column in (("observations", seen), ("actions", done), ("rewards", gained)):
        if column is not None and column.ndim == 0:
            raise ValueError(f"{name} of episodes[{k}] must have one row for each, got {column}")
    if len(seen) == 0 or (done is not None and len(seen) != len(done) + 1):
        found = f"{len(seen)}" if done is None else f"{len(seen)} and {len(done)}"
        raise ValueError(
            f"trajectory {k} must have one more observation than actions, got {found}: the last one is what was seen "
            "after the last action; if that was not recorded, leave out the last action"
        )
    if gained is not None and gained.dtype.kind in "biu":
        gained = gained.astype(np.float64)
    terminated = _flag(f"terminated of episodes[{k}]", episode.terminated)
    truncated = _flag(f"truncated of episodes[{k}]", episode.truncated)
    return Episode(seen, done, gained, terminated, truncated, episode.initial_state)


def _flag(name: str, value: Any) -> bool:
    """Return one flag of an episode. Texts and NaN, as tables hold them, would count as true."""
    array = np.asarray(value)
    if array.ndim == 0 and array.dtype.kind in "biuf" and array in (0, 1):
        return bool(array)
    found = f"an array of shape {array.shape}" if array.ndim else f"{value!r:.80}"
    raise ValueError(f"{name} must be True or False, one for the whole episode, got {found}")


def _check_alike(name: str, pieces: Sequence[NDArray[Any] | None]) -> None:
    """Refuse columns that would have to be converted, or that only some trajectories have."""
    first = pieces[0]
    for k, piece in enumerate(pieces):
        if (piece is None) != (first is None):
            raise ValueError(
                f"trajectories 0 and {k} disagree on whether there are {name}: leave out those that have none, or give "
                "None for all"
            )
        if name != "rewards" and piece is not None and first is not None and piece.dtype != first.dtype:
            raise ValueError(
                f"trajectory {k} has other dtypes than trajectory 0: {name} of {piece.dtype}, not {first.dtype}; "
                f"convert all to one, e.g. by np.asarray(..., dtype=np.{np.result_type(piece, first)})"
            )
