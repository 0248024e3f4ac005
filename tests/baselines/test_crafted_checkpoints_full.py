"""Checkpoints of learners with networks that were changed, with a checksum that fits: refused by the file's name."""

import copy
import json
import pathlib

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from slider import LENGTH, Slider, to_the_middle  # noqa: F401 - importing it registers the slider

import lfd_gym as lfd
from lfd_gym.baselines import make_learner
from lfd_gym.baselines.neural import saving
from lfd_gym.files import FileContentError

pytestmark = pytest.mark.filterwarnings("ignore:primal_dual_rl has not learned")
ID = "lfd_gym_test/Slider-v0"


def learn(path, algorithm):
    env = gym.make(ID)
    demos = lfd.collect(env, to_the_middle, 3, LENGTH, np.random.default_rng(0))
    learner = make_learner(
        "primal_dual_rl", hidden_sizes=(8, 8), cloning_steps=1, batch_size=8, algorithm=algorithm, checkpoint=str(path),
        progress=False,
    )  # fmt: skip
    return lfd.learn(lfd.Task(env, demos, discount=0.9), learner, rng=np.random.default_rng(0), budget=320)


def a_network(state):
    networks = state["model"]["networks"]["policy"]
    return networks, next(name for name, value in networks.items() if value.ndim == 2)


def set_network(change):
    def edit(state):
        networks, name = a_network(state)
        networks[name] = change(networks[name])

    return edit


def set_model(name, value):
    return lambda state: state["model"].__setitem__(name, value)


def moved(state):
    numpy = list(state["model"]["numpy"])
    numpy[2] = 10**6  # it would be read from there on
    state["model"]["numpy"] = tuple(numpy)


CHANGES = {
    "no model": lambda state: state.pop("model"),
    "no game": lambda state: state.pop("game"),
    "no networks": lambda state: state["model"].pop("networks"),
    "a list": lambda state: state.__setitem__("model", [1]),
    "another shape": set_network(lambda weights: weights[:-1]),
    "NaN": set_network(lambda weights: weights * np.nan),
    "other numbers": set_network(lambda weights: weights.to(th.float64)),
    "no tensor": set_network(lambda weights: 3),
    "generator of NumPy beyond its state": moved,
    "generator of torch": set_model("torch", th.zeros(8, dtype=th.uint8)),
    "negative count": lambda state: state["model"]["counted"].__setitem__("num_timesteps", -(10**9)),
    "count is a text": lambda state: state["model"]["counted"].__setitem__("num_timesteps", "x"),
    "duel": lambda state: state["duel"].__setitem__("snapshots", 7),
    "snapshots of nothing": lambda state: state["duel"].__setitem__("snapshots", [(1,)]),
}
REPLAY = {
    "no replay": set_model("replay", {}),
    "position": lambda state: state["model"]["replay"].__setitem__("pos", 10**12),
    "negative position": lambda state: state["model"]["replay"].__setitem__("pos", -1),
    "columns": lambda state: state["model"]["replay"].__setitem__("rows", state["model"]["replay"]["rows"][:-1]),
    "longer than there is room": lambda state: state["model"]["replay"].update(
        {name: np.repeat(state["model"]["replay"][name], 1000, axis=0) for name in saving._REPLAYED}
        | {"pos": 1000 * len(state["model"]["replay"]["rows"])}
    ),
}


@pytest.fixture(scope="module", params=["sac", "ppo"])
def written(request, tmp_path_factory):
    """A right checkpoint: what it was asked for, its state, and its algorithm."""
    path = tmp_path_factory.mktemp("run") / "run.npz"
    learn(path, request.param)
    description = json.loads(str(np.load(path)["description"]))
    return description["asked"], saving.load(path, description["asked"]), request.param


@pytest.mark.parametrize("change", [*CHANGES, *REPLAY])
def test_a_changed_checkpoint_is_refused(written, change, tmp_path):
    asked, right, algorithm = written
    if change in REPLAY and algorithm == "ppo":
        pytest.skip("it has no replay")
    state = copy.deepcopy(right)
    (CHANGES | REPLAY)[change](state)
    path = pathlib.Path(tmp_path) / "changed.npz"
    saving.save(path, asked, state)
    with pytest.raises(FileContentError, match=r"changed\.npz"):
        learn(path, algorithm)


def test_a_right_checkpoint_is_taken(written, tmp_path):
    asked, right, algorithm = written
    path = pathlib.Path(tmp_path) / "same.npz"
    saving.save(path, asked, right)
    assert learn(path, algorithm).resources.env_steps >= 320
