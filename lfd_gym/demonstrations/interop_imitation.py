"""Demonstrations from and to the `imitation` library: trajectories, flattened transitions, saved datasets.

`imitation` marks every finished episode as ``terminal``, whether the process ended or a time limit cut it; which of the
two it was is written as ``"TimeLimit.truncated"`` into the info of the last step, as Stable-Baselines3 does. So

- ``truncated`` is terminal with that mark, ``terminated`` is terminal without it, and a fragment is not terminal;
- where infos were left out, as `imitation.data.rollout.rollout` does by default, a terminal trajectory that is as long
  as the ``horizon`` one gives counts as truncated: the cautious reading;
- everything else in the infos is dropped: they hold arbitrary Python objects.

A saved dataset is a folder of Arrow files whose infos are strings of jsonpickle, which run code when decoded. They are
read here with Arrow alone; of the infos only the last of each trajectory is looked at, as plain JSON.
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
from lfd_gym.files import replacing_folder

if TYPE_CHECKING:
    from imitation.data.types import Trajectory, Transitions

_TRUNCATED = "TimeLimit.truncated"


def to_trajectories(demonstrations: Demonstrations) -> list[Trajectory]:
    """Return one `Trajectory` (`TrajectoryWithRew` if rewards are known) per trajectory; the arrays are views."""
    types = _imitation_types()
    trajectories: list[Trajectory] = []
    for k, episode in enumerate(demonstrations):
        if len(episode.actions) == 0:
            raise ValueError(f"trajectory {k} has no actions, which imitation does not allow: leave it out with select")
        parts = {
            "obs": episode.observations,
            "acts": episode.actions,
            "infos": _infos(episode, demonstrations.horizon),
            "terminal": episode.terminated or episode.truncated,
        }
        if episode.rewards is None:
            trajectories.append(types.Trajectory(**parts))
        else:
            trajectories.append(types.TrajectoryWithRew(**parts, rews=episode.rewards))
    return trajectories


def to_transitions(demonstrations: Demonstrations) -> Transitions:
    """Return all trajectories as one `Transitions` (`TransitionsWithRew` if rewards are known)."""
    types = _imitation_types()
    before = np.arange(demonstrations.n_transitions) + demonstrations.trajectory_indices
    dones = np.zeros(demonstrations.n_transitions, dtype=bool)
    infos = np.array([{} for _ in range(demonstrations.n_transitions)], dtype=object)
    for k in np.flatnonzero((demonstrations.terminated | demonstrations.truncated) & (demonstrations.lengths > 0)):
        last = demonstrations.offsets[k + 1] - 1
        dones[last] = True
        infos[last] = _last_info(demonstrations[int(k)], demonstrations.horizon)
    parts = {
        "obs": demonstrations.observations[before],
        "acts": demonstrations.actions,
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
        As for `Demonstrations`.
    """
    if isinstance(source, str | Path):
        episodes = _saved_episodes(Path(source), observation_space, action_space, horizon)
    elif hasattr(source, "next_obs"):
        episodes = _joined_transitions(source, horizon)
    else:
        episodes = [_episode(trajectory, horizon) for trajectory in source]
    return Demonstrations.from_episodes(episodes, observation_space, action_space, horizon)


def save_dataset(demonstrations: Demonstrations, path: str | Path, overwrite: bool = False) -> None:
    """Write the folder that `imitation.data.serialize.save` writes, all or nothing."""
    trajectories = to_trajectories(demonstrations)
    from imitation.data import serialize

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


def _infos(episode: Episode, horizon: int | None) -> NDArray[Any] | None:
    last = _last_info(episode, horizon)
    if not last:
        return None
    infos = np.array([{} for _ in episode.actions], dtype=object)
    infos[-1] = last
    return infos


def _last_info(episode: Episode, horizon: int | None) -> dict[str, bool]:
    """Mark what was truncated, and what terminated at the horizon itself and could be mistaken for it."""
    if episode.terminated:
        return {_TRUNCATED: False} if len(episode.actions) == horizon else {}
    return {_TRUNCATED: True} if episode.truncated else {}


def _ended(
    observations: Any, actions: Any, rewards: Any, terminal: bool, last_info: Any, horizon: int | None
) -> Episode:
    mark = last_info.get(_TRUNCATED) if isinstance(last_info, Mapping) else None
    truncated = bool(mark) if isinstance(mark, bool | np.bool_) else len(actions) == horizon
    return Episode(observations, actions, rewards, bool(terminal and not truncated), bool(terminal and truncated))


def _episode(trajectory: Any, horizon: int | None) -> Episode:
    """Read a trajectory in memory. Infos that would be decoded by being read are looked at as plain JSON only."""
    last_info: Any = None
    if isinstance(trajectory.infos, np.ndarray | list | tuple):
        last_info = trajectory.infos[-1]
    elif hasattr(trajectory.infos, "_encoded_list"):  # of a dataset that imitation has loaded
        last_info = _plain_json(trajectory.infos._encoded_list[-1])
    rewards = getattr(trajectory, "rews", None)
    return _ended(trajectory.obs, trajectory.acts, rewards, trajectory.terminal, last_info, horizon)


def _plain_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _joined_transitions(transitions: Any, horizon: int | None) -> list[Episode]:
    """Cut after each done, and wherever the next observation is not the one that follows."""
    after, before = np.asarray(transitions.next_obs), np.asarray(transitions.obs)
    n = len(before)
    if n == 0:
        return []
    breaks = (after[:-1] != before[1:]).reshape(n - 1, -1).any(axis=1) | transitions.dones[:-1]
    starts = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    rewards = getattr(transitions, "rews", None)
    episodes = []
    for start, stop in zip(starts, [*starts[1:], n], strict=True):
        observations = np.concatenate([before[start:stop], after[stop - 1 : stop]])
        gained = None if rewards is None else rewards[start:stop]
        done, last_info = transitions.dones[stop - 1], transitions.infos[stop - 1]
        episodes.append(_ended(observations, transitions.acts[start:stop], gained, done, last_info, horizon))
    return episodes


# -- saved datasets ---------------------------------------------------------------------------------------------------


def _saved_episodes(
    folder: Path, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int | None
) -> list[Episode]:
    table = _read_arrow(folder)
    missing = {"obs", "acts", "infos", "terminal"} - set(table.column_names)
    if missing:
        raise ValueError(f"{folder} holds no trajectories of imitation: it has no column {sorted(missing)[0]!r}")
    try:
        columns = {
            "obs": _rows(table["obs"], observation_space.shape or ()),
            "acts": _rows(table["acts"], action_space.shape or ()),
        }
        rewards = _rows(table["rews"], ()) if "rews" in table.column_names else [None] * len(table)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{folder} does not hold trajectories over {observation_space}, {action_space}: {error}"
        ) from error
    episodes = []
    for obs, acts, rews, infos, terminal in zip(
        columns["obs"], columns["acts"], rewards, table["infos"], table["terminal"].to_pylist(), strict=True
    ):
        last_info = _plain_json(infos[-1].as_py()) if len(acts) else None
        episodes.append(_ended(obs, acts, rews, terminal, last_info, horizon))
    return episodes


def _read_arrow(folder: Path) -> Any:
    """Read the Arrow files that the folder's ``state.json`` names, and nothing else."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            "reading datasets of imitation needs the 'imitation' extra: pip install 'lfd-gym[imitation]'"
        ) from error
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    try:
        state = json.loads((folder / "state.json").read_text())
        names = [str(file["filename"]) for file in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder} is no saved dataset: its state.json cannot be read ({error})") from error
    tables = []
    for name in names:
        if Path(name).name != name:
            raise ValueError(f"{folder} is no valid dataset: it names the file {name!r} outside the folder")
        try:
            with pa.memory_map(str(folder / name)) as source, pa.ipc.open_stream(source) as reader:
                tables.append(reader.read_all())
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{folder / name} is damaged or no Arrow file: {error}") from error
    if not tables:
        raise ValueError(f"{folder} is an empty dataset")
    return pa.concat_tables(tables)


def _rows(column: Any, shape: tuple[int, ...]) -> list[NDArray[Any]]:
    """Split a column of nested lists into one array of ``shape`` rows per trajectory, in the stored dtype."""
    arrays = []
    for chunk in column.chunks:
        for row in chunk:
            values = row.values
            while hasattr(values, "flatten") and _is_list(values.type):
                values = values.flatten()
            arrays.append(values.to_numpy(zero_copy_only=False).reshape(-1, *shape))
    return arrays


def _is_list(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))
