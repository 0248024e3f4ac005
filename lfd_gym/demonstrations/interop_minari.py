"""Demonstrations from and to local Minari datasets. Nothing is sent or fetched.

Minari asks for a reward at every step: demonstrations without rewards are written with NaN, and rewards that are all
NaN are read as unknown. Infos of a Minari dataset are not read. Dict and Tuple spaces are flattened, see
`lfd_gym.spaces`. Initial states are not written.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from lfd_gym.demonstrations.demonstrations import Demonstrations, Episode
from lfd_gym.demonstrations.hdf5_links import check_inside
from lfd_gym.demonstrations.provenance import Provenance, identity
from lfd_gym.files import FileContentError, check_own_folder, refusing, replacing_folder
from lfd_gym.spaces import array_space, to_array

if TYPE_CHECKING:
    from minari import MinariDataset

#: Where Minari's metadata keep what only lfd_gym knows.
_OWN_KEY = "lfd_gym"
#: What the folder of a dataset consists of.
_FILES = r"data/(metadata\.json|main_data\.hdf5|\d+/.+)"


def create_dataset(
    demonstrations: Demonstrations,
    dataset_id: str,
    *,
    author: str | None = None,
    author_email: str | None = None,
    code_permalink: str | None = None,
    description: str | None = None,
    ref_min_score: float | None = None,
    ref_max_score: float | None = None,
    num_episodes_average_score: int | None = None,
    overwrite: bool = False,
) -> MinariDataset:
    """Write a local Minari dataset, all or nothing, and return it.

    The environment's spec and the algorithm's name are filled in from the provenance; the spec only if that
    environment is registered. It is not made.

    Parameters
    ----------
    demonstrations
        At least one action in every trajectory.
    dataset_id
        ``(namespace/)name-v(version)``, e.g. ``gridworld/expert-v0``.
    author, author_email, code_permalink, description
        What Minari asks of those who publish datasets.
    ref_min_score, ref_max_score, num_episodes_average_score
        Mean returns of the random policy and of the expert, by which Minari normalises scores, and of how many episodes
        they are.
    overwrite
        Whether a dataset of that name may be replaced.
    """
    demonstrations.actions_for("Minari")
    minari = _minari()
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.dataset.minari_storage import MinariStorage
    from minari.namespace import create_namespace, list_local_namespaces

    path = dataset_path(dataset_id)
    if (demonstrations.lengths == 0).any():
        empty = int(np.argmin(demonstrations.lengths))
        raise ValueError(f"trajectory {empty} has no actions, which Minari does not allow: leave it out with select")
    namespace = parse_dataset_id(dataset_id)[0]
    if namespace is not None and namespace not in list_local_namespaces():
        create_namespace(namespace)
    metadata: dict[str, Any] = {
        "dataset_id": dataset_id,
        "minari_version": minari.__version__,
        "algorithm_name": demonstrations.provenance.policy,
        "author": None if author is None else {author},
        "author_email": None if author_email is None else {author_email},
        "code_permalink": code_permalink,
        "description": description,
        "ref_min_score": ref_min_score,
        "ref_max_score": ref_max_score,
        "num_episodes_average_score": num_episodes_average_score,
        _OWN_KEY: {"horizon": demonstrations.horizon, "provenance": demonstrations.provenance.to_dict()},
    }
    if overwrite:
        check_own_folder(path, _FILES, "Minari dataset")
    with replacing_folder(path, overwrite) as unfinished:
        (unfinished / "data").mkdir(parents=True)
        storage = MinariStorage.new(
            unfinished / "data",
            observation_space=demonstrations.observation_space,
            action_space=demonstrations.action_space,
            env_spec=_env_spec(demonstrations.provenance),
            **_without_loss(demonstrations),
        )
        storage.update_metadata({key: value for key, value in metadata.items() if value is not None})
        storage.update_episodes(_buffers(demonstrations))
    return minari.load_dataset(dataset_id)


def from_dataset(dataset: MinariDataset | str) -> Demonstrations:
    """Take over a Minari dataset, or the local one of that name."""
    minari = _minari()
    if not isinstance(dataset, str):
        return _taken_over(dataset)
    _refuse_missing_spaces(dataset)
    with refusing(dataset_path(dataset) / "data", "does not hold a data set of Minari that can be read"):
        _refuse_other_files(dataset_path(dataset) / "data")
        return _taken_over(minari.load_dataset(dataset, download=False))


def _taken_over(dataset: MinariDataset) -> Demonstrations:
    _refuse_other_files(Path(dataset.storage.data_path))
    metadata = dataset.storage.metadata
    seen, done = dataset.observation_space, dataset.action_space
    episodes = [
        Episode(
            to_array(seen, e.observations, len(e.rewards) + 1),
            to_array(done, e.actions, len(e.rewards)),
            e.rewards,
            bool(e.terminations[-1]),
            bool(e.truncations[-1]),
        )
        for e in dataset.iterate_episodes()
    ]
    if all(np.isnan(np.asarray(episode.rewards)).all() for episode in episodes):
        episodes = [episode._replace(rewards=None) for episode in episodes]
    horizon, provenance = _own_metadata(dataset, metadata)
    spaces = array_space("observation_space", seen), array_space("action_space", done)
    return Demonstrations.from_episodes(episodes, *spaces, horizon, provenance)


def list_datasets() -> dict[str, Mapping[str, Any]]:
    """Return the ids and Minari metadata of the local datasets over spaces that `from_dataset` can read."""
    _minari()
    from minari import list_local_datasets

    readable = ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple")
    return {
        name: metadata
        for name, metadata in list_local_datasets().items()
        if all(json.loads(metadata[f"{kind}_space"]).get("type") in readable for kind in ("observation", "action"))
    }


def dataset_path(dataset_id: str) -> Path:
    """Return the folder of the local dataset of that name, whether or not there is one; refuse what is no name."""
    _minari()
    from minari.dataset.minari_dataset import DATASET_ID_RE
    from minari.storage.datasets_root_dir import get_dataset_path

    match = DATASET_ID_RE.fullmatch(dataset_id)
    if match is None or match.group("version") is None:
        raise ValueError(
            "dataset_id must be of the form (namespace/)name-v0, with letters, digits, - and _ only and at least two "
            f"of them in the namespace, got {dataset_id!r}"
        )
    return Path(get_dataset_path(dataset_id))


def _minari() -> Any:
    try:
        import h5py  # noqa: F401  (Minari itself does not ask for what it stores with)
        import minari
    except ImportError as error:
        raise ImportError("Minari datasets need the 'minari' extra: pip install 'lfd-gym[minari]'") from error
    return minari


def _buffers(demonstrations: Demonstrations) -> Iterator[Any]:
    from minari.data_collector import EpisodeBuffer

    for episode in demonstrations:
        length = len(episode.observations) - 1
        ends = np.zeros((2, length), dtype=bool)
        ends[:, -1] = episode.terminated, episode.truncated
        rewards = np.full(length, np.nan) if episode.rewards is None else episode.rewards
        yield EpisodeBuffer(
            observations=episode.observations,
            actions=episode.actions,
            rewards=rewards,
            terminations=ends[0],
            truncations=ends[1],
        )


def _without_loss(demonstrations: Demonstrations) -> dict[str, bool]:
    """Return the setting that keeps Minari from compressing what looks like images; before 0.5.4 there is none."""
    from minari.dataset.minari_storage import MinariStorage

    if "jpeg_encoding" in inspect.signature(MinariStorage.new).parameters:
        return {"jpeg_encoding": False}
    for space in (demonstrations.observation_space, demonstrations.action_space):
        if space is not None and space.dtype == np.uint8 and len(space.shape or ()) in (2, 3):
            raise ValueError(f"{space} looks like images, which Minari stores without loss from 0.5.4 on only")
    return {}


def _env_spec(provenance: Provenance) -> Any:
    """Return the spec of a registered environment. An id never makes a module be imported."""
    spec = None if provenance.env_id is None else gym.registry.get(provenance.env_id)
    if spec is not None:
        spec = copy.deepcopy(spec)
        spec.kwargs.update(provenance.env_kwargs)
    return spec


def _refuse_missing_spaces(dataset_id: str) -> None:
    """Minari would make the environment that the dataset names to learn its spaces, that is, run code it names."""
    from minari.dataset.minari_storage import METADATA_FILE_NAME

    path = dataset_path(dataset_id) / "data" / METADATA_FILE_NAME
    if not path.is_file():
        raise FileNotFoundError(f"there is no local Minari dataset {dataset_id!r} at {path.parent.parent}")
    with refusing(path, "is not the description of a data set"):
        metadata = dict(json.loads(path.read_text(encoding="utf-8")))
    for key in ("observation_space", "action_space"):
        if key not in metadata:
            raise FileContentError(f"the Minari dataset {dataset_id!r} does not say its {key}: {path}")
    n_bytes = sum(file.stat().st_size for file in path.parent.iterdir() if file.is_file())
    if not 0 < metadata.get("total_episodes", 0) <= n_bytes:  # as many numbers are made before any is read
        raise FileContentError(f"{path} cannot be right: it counts {metadata.get('total_episodes')} episodes")


def _refuse_other_files(folder: Path) -> None:
    for file in sorted(folder.glob("*.hdf5")):
        check_inside(file)


def _own_metadata(dataset: Any, metadata: Mapping[str, Any]) -> tuple[int | None, Provenance]:
    if _OWN_KEY in metadata:
        try:
            return metadata[_OWN_KEY]["horizon"], Provenance(**metadata[_OWN_KEY]["provenance"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"the Minari dataset {dataset.id!r} has broken metadata of lfd_gym: {error}") from error
    return None, Provenance(policy=metadata.get("algorithm_name"), **identity(dataset.env_spec))
