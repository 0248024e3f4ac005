"""Demonstrations from and to the `imitation` library: trajectories, flattened transitions, saved datasets.

`imitation` marks every finished episode as ``terminal``, whether the process ended or a time limit cut it; which of the
two it was is written as ``"TimeLimit.truncated"`` into the info of the last step, as Stable-Baselines3 does. So

- ``truncated`` is terminal with that mark, ``terminated`` is terminal without it, and a fragment is not terminal;
- where infos were left out, as `imitation.data.rollout.rollout` does by default, a terminal trajectory that is as long
  as the ``horizon`` one gives counts as truncated: the cautious reading, since nothing is paid after an end;
- what is written here says in the last info of every trajectory how it ended, as ``"lfd_gym.end"``, so that reading it
  back guesses nothing;
- everything else in the infos is dropped: they hold arbitrary Python objects.

Flattened transitions are cut after each ``done`` or ``"lfd_gym.end"``, and where ``next_obs`` is not what comes next. A
fragment that happens to stop on what the next one starts from cannot be seen that way. So fragments over finitely many
observations, where this is likely, are refused unless they are marked, as is a piece longer than the ``horizon``.

Observations of Dict spaces (`DictObs`) are flattened, see `lfd_gym.spaces`.

A saved dataset is read with Arrow alone, see `imitation_datasets`; of the infos only the last of each trajectory is
looked at, as plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.demonstrations.demonstrations import Demonstrations, Episode
from lfd_gym.demonstrations.imitation_datasets import read_arrow, rows
from lfd_gym.files import check_own_folder, refusing, replacing_folder
from lfd_gym.spaces import array_space, to_array

if TYPE_CHECKING:
    from imitation.data.types import Trajectory, Transitions

_TRUNCATED = "TimeLimit.truncated"
#: What the folder of a dataset consists of.
_FILES = r"state\.json|dataset_info\.json|data-\d+-of-\d+\.arrow"
_END = "lfd_gym.end"  # [terminated, truncated]


def to_trajectories(demonstrations: Demonstrations) -> list[Trajectory]:
    """Return one `Trajectory` (`TrajectoryWithRew` if rewards are known) per trajectory; the arrays are views."""
    demonstrations.actions_for("imitation")
    types = _imitation_types()
    trajectories: list[Trajectory] = []
    for k, episode in enumerate(demonstrations):
        length = len(episode.observations) - 1
        if length == 0:
            raise ValueError(f"trajectory {k} has no actions, which imitation does not allow: leave it out with select")
        parts = {
            "obs": episode.observations,
            "acts": episode.actions,
            "infos": np.array([{} for _ in range(length - 1)] + [_last_info(episode)], dtype=object),
            "terminal": episode.terminated or episode.truncated,
        }
        if episode.rewards is None:
            trajectories.append(types.Trajectory(**parts))
        else:
            trajectories.append(types.TrajectoryWithRew(**parts, rews=episode.rewards))
    return trajectories


def to_transitions(demonstrations: Demonstrations) -> Transitions:
    """Return all trajectories as one `Transitions` (`TransitionsWithRew` if rewards are known)."""
    actions = demonstrations.actions_for("imitation")
    types = _imitation_types()
    before = np.arange(demonstrations.n_transitions) + demonstrations.trajectory_indices
    dones = np.zeros(demonstrations.n_transitions, dtype=bool)
    infos = np.array([{} for _ in range(demonstrations.n_transitions)], dtype=object)
    for k in np.flatnonzero(demonstrations.lengths > 0):
        last = demonstrations.offsets[k + 1] - 1
        dones[last] = demonstrations.terminated[k] or demonstrations.truncated[k]
        infos[last] = _last_info(demonstrations[int(k)])
    parts = {
        "obs": demonstrations.observations[before],
        "acts": actions,
        "infos": infos,
        "next_obs": demonstrations.observations[before + 1],
        "dones": dones,
    }
    if demonstrations.rewards is None:
        return types.Transitions(**parts)  # type: ignore[no-any-return]
    return types.TransitionsWithRew(**parts, rews=demonstrations.rewards)  # type: ignore[no-any-return]


def to_demonstrations(
    source: Sequence[Trajectory] | Transitions | str | Path,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    horizon: int | None = None,
) -> Demonstrations:
    """Take over what `imitation` made, in memory or saved.

    Parameters
    ----------
    source
        Trajectories; flattened transitions in their original order; or the folder that
        `imitation.data.serialize.save` wrote.
    observation_space, action_space
        Of the environment; `imitation` does not keep them.
    horizon
        Where a time limit cut trajectories, if it is known: terminal trajectories of that many actions count as cut. It
        becomes the demonstrations' own horizon if all that did not terminate have that length.
    """
    spaces = observation_space, action_space
    if isinstance(source, str | Path):
        table = read_arrow(Path(source))
        with refusing(source, f"does not hold trajectories of imitation over {observation_space}, {action_space}"):
            return _joined_episodes(_saved_episodes(table, *spaces, horizon), *spaces, horizon)
    if hasattr(source, "next_obs"):
        episodes = _joined_transitions(source, *spaces, horizon)
    else:
        episodes = [_episode(trajectory, *spaces, horizon) for trajectory in source]
    return _joined_episodes(episodes, *spaces, horizon)


def _joined_episodes(
    episodes: Sequence[Episode], observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int | None
) -> Demonstrations:
    seen = _with_end(array_space("observation_space", observation_space), episodes)
    lengths = np.array([len(episode.observations) - 1 for episode in episodes])
    cut = np.array([not episode.terminated for episode in episodes], dtype=bool)
    by_design = horizon is not None and bool((lengths <= horizon).all() and (lengths[cut] == horizon).all())
    return Demonstrations.from_episodes(
        episodes, seen, array_space("action_space", action_space), horizon if by_design else None
    )


def save_dataset(demonstrations: Demonstrations, path: str | Path, overwrite: bool = False) -> None:
    """Write the folder that `imitation.data.serialize.save` writes, all or nothing."""
    trajectories = to_trajectories(demonstrations)
    from imitation.data import serialize

    if overwrite:
        check_own_folder(path, _FILES, "dataset of imitation")
    with replacing_folder(path, overwrite) as unfinished:
        serialize.save(unfinished, trajectories)


def _imitation_types() -> Any:
    try:
        from imitation.data import types
    except ImportError as error:
        raise ImportError(
            "converting to imitation needs the 'imitation' extra: pip install 'lfd-gym[imitation]'"
        ) from error
    return types


def _with_end(space: gym.Space[Any], episodes: Sequence[Episode]) -> gym.Space[Any]:
    """Add to a `Discrete` space the absorbing state of its model, if that is where trajectories terminated.

    Trajectories of a generative model end on one state more than its environment shows.
    """
    if not isinstance(space, gym.spaces.Discrete):
        return space
    end = int(space.n)
    reached = any(episode.terminated and episode.observations[-1] == end for episode in episodes)
    elsewhere = any(
        (seen[: len(seen) - episode.terminated] == end).any()
        for episode, seen in ((episode, np.asarray(episode.observations)) for episode in episodes)
    )
    return gym.spaces.Discrete(end + 1) if reached and not elsewhere else space


def _array(space: gym.Space[Any], values: Any) -> NDArray[Any]:
    """Return a batch of observations or actions as one array; `imitation` keeps Dicts of arrays as `DictObs`."""
    parts = values.unwrap() if hasattr(values, "unwrap") else values
    if not isinstance(parts, Mapping):
        return np.asarray(parts)
    if not isinstance(space, gym.spaces.Dict):
        raise ValueError(
            f"trajectories hold Dicts of arrays, but the space is {space}: give the environment's own space"
        )
    return to_array(space, parts, len(values))


def _last_info(episode: Episode) -> dict[str, Any]:
    """Say how a trajectory ended, in imitation's words and, since these are ambiguous, in our own."""
    own = {_END: [episode.terminated, episode.truncated]}
    if not (episode.terminated or episode.truncated):
        return own
    return {_TRUNCATED: episode.truncated and not episode.terminated, **own}


def _own_end(info: Any) -> tuple[bool, bool] | None:
    """Return what `_last_info` said: (terminated, truncated)."""
    mark = info.get(_END) if isinstance(info, Mapping) else None
    if isinstance(mark, list | tuple) and len(mark) == 2 and all(isinstance(part, bool) for part in mark):
        return mark[0], mark[1]
    return None


def _ended(
    observations: Any, actions: Any, rewards: Any, terminal: bool, last_info: Any, horizon: int | None
) -> Episode:
    own = _own_end(last_info)
    if own is not None and any(own) and terminal:
        return Episode(observations, actions, rewards, *own)
    mark = last_info.get(_TRUNCATED) if isinstance(last_info, Mapping) else None
    truncated = bool(mark) if isinstance(mark, bool | np.bool_) else len(actions) == horizon
    return Episode(observations, actions, rewards, bool(terminal and not truncated), bool(terminal and truncated))


def _episode(
    trajectory: Any, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int | None
) -> Episode:
    """Read a trajectory in memory. Infos that would be decoded by being read are looked at as plain JSON only."""
    missing = [name for name in ("obs", "acts", "infos", "terminal") if not hasattr(trajectory, name)]
    if missing:
        raise TypeError(
            f"demonstrations must hold trajectories of imitation, got {trajectory!r:.80}, without {missing[0]}; for "
            "lists and arrays of your own there is lfd_gym.Demonstrations.from_episodes"
        )
    last_info: Any = None
    if isinstance(trajectory.infos, np.ndarray | list | tuple):
        last_info = trajectory.infos[-1]
    elif hasattr(trajectory.infos, "_encoded_list"):  # of a dataset that imitation has loaded
        last_info = _plain_json(trajectory.infos._encoded_list[-1])
    seen, done = _array(observation_space, trajectory.obs), _array(action_space, trajectory.acts)
    return _ended(seen, done, getattr(trajectory, "rews", None), trajectory.terminal, last_info, horizon)


def _plain_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _joined_transitions(
    transitions: Any, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int | None
) -> list[Episode]:
    """Cut after each done or mark, and wherever the next observation is not the one that follows."""
    before = _array(observation_space, transitions.obs)
    after = _array(observation_space, transitions.next_obs)
    actions = _array(action_space, transitions.acts)
    n = len(before)
    if n == 0:
        return []
    rewards = getattr(transitions, "rews", None)
    known = np.asarray(transitions.dones, dtype=bool) | [_own_end(info) is not None for info in transitions.infos]
    breaks = known[:-1] | (after[:-1] != before[1:]).any(axis=tuple(range(1, before.ndim)))
    starts = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    stops = np.concatenate([starts[1:], [n]])
    _check_fragments(observation_space, int((~known[stops[:-1] - 1]).sum()), len(stops))
    episodes = []
    for start, stop in zip(starts, stops, strict=True):
        last_info = transitions.infos[stop - 1]
        if horizon is not None and stop - start > horizon and _own_end(last_info) is None:
            raise ValueError(
                f"transitions {start} to {stop - 1} follow each other for longer than the time limit of {horizon}: "
                "they must be of several trajectories, one of which stops where the next one starts; pass trajectories"
            )
        observations = np.concatenate([before[start:stop], after[stop - 1 : stop]])
        gained = None if rewards is None else rewards[start:stop]
        episodes.append(
            _ended(observations, actions[start:stop], gained, transitions.dones[stop - 1], last_info, horizon)
        )
    return episodes


def _check_fragments(space: gym.Space[Any], n_fragments: int, n_pieces: int) -> None:
    """Refuse pieces that stop anywhere where two of them can easily meet and be taken for one."""
    if n_fragments and not isinstance(space, gym.spaces.Box | gym.spaces.Dict | gym.spaces.Tuple):
        raise ValueError(
            f"transitions look shuffled or cut into pieces: {n_fragments} of {n_pieces} pieces stop without being "
            f"done. Over {space} one may stop where the next one starts, and both would be taken for one trajectory: "
            "pass trajectories, or whole episodes in their original order"
        )


def _saved_episodes(
    table: Any, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int | None
) -> list[Episode]:
    missing = {"obs", "acts", "infos", "terminal"} - set(table.column_names)
    if missing:
        raise ValueError(f"it has no column {sorted(missing)[0]!r}")
    columns = {
        "obs": rows(table["obs"], array_space("observation_space", observation_space).shape or ()),
        "acts": rows(table["acts"], array_space("action_space", action_space).shape or ()),
    }
    rewards = rows(table["rews"], ()) if "rews" in table.column_names else [None] * len(table)
    episodes = []
    for obs, acts, rews, infos, terminal in zip(
        columns["obs"], columns["acts"], rewards, table["infos"], table["terminal"].to_pylist(), strict=True
    ):
        last_info = _plain_json(infos[-1].as_py()) if len(acts) else None
        episodes.append(_ended(obs, acts, rews, terminal, last_info, horizon))
    return episodes
