"""What `PrimalDualTrainer.restore` refuses: numbers that are none, wrong shapes, missing parts, damaged files."""

import json

import gymnasium as gym
import numpy as np
import pytest
from imitation.util import logger as imitation_logger

import lfd_gym as lfd
from lfd_gym.files import FileContentError


@pytest.fixture(scope="module")
def trained():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=3, cost_seed=1)
    expert = lfd.FiniteMDP.from_env(env, discount=0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    demos = lfd.collect(env, expert, n_trajectories=3, horizon=20, rng=np.random.default_rng(0))
    quiet = imitation_logger.configure(format_strs=())
    settings = {"demonstrations": demos, "discount": 0.9, "rng": np.random.default_rng(0), "custom_logger": quiet}
    trainer = lfd.PrimalDualTrainer(env=env, **settings)
    trainer.train(progress_bar=False)
    return trainer


def rewrite(path, change):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    data = json.loads(str(arrays.pop("description")))
    change(data, arrays)
    np.savez(path, description=np.array(json.dumps(data)), **arrays)


def poison(name, value):
    def change(data, arrays):
        arrays[name] = arrays[name].astype(float)
        arrays[name].flat[0] = value

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (poison("cost_weights", np.nan), "cost_weights must be finite"),
        (poison("values", np.nan), "values must be finite"),
        (poison("values", np.inf), "values must be finite"),
        (poison("policy:table", np.nan), "policy must be finite"),
        (lambda data, arrays: arrays.update(cost_weights=np.ones(2)), "cost_weights must have shape"),
        (lambda data, arrays: arrays.update(values=np.ones((9, 2))), "values must have shape"),
        (lambda data, arrays: arrays.update(values=np.ones(4)), "has 4 states in values, the environment 9"),
        (
            lambda data, arrays: arrays.update({"policy:table": np.full((4, 4), 0.25)}),
            "has 4 states in the policy's table, the environment 9",
        ),
        (
            lambda data, arrays: (arrays.update({"policy:table": np.ones((9, 1))}), data["policy"].pop("action_space")),
            "holds a policy with actions in",
        ),
        (lambda data, arrays: arrays.update(history=np.array([[1.0, np.nan]])), "history must be finite"),
        (lambda data, arrays: arrays.update(history=np.ones(3)), "history must have shape"),
        (lambda data, arrays: arrays.pop("history"), "'history' is missing"),
        (lambda data, arrays: arrays.pop("expert"), "'expert' is missing"),
        (lambda data, arrays: data.pop("resources"), "'resources' is missing"),
        (lambda data, arrays: data["resources"].update(oracle_calls=float("nan")), "oracle_calls must be a number"),
        (lambda data, arrays: data["resources"].update(unknown=1), "does not hold the result"),
        (lambda data, arrays: data.update(facts=3), "does not hold the result"),
    ],
)
def test_crafted_results_are_refused(trained, tmp_path, change, reason):
    path = tmp_path / "result.npz"
    trained.save(path)
    rewrite(path, lambda data, arrays: None)
    before = trained.cost_weights
    trained.restore(path)
    rewrite(path, change)
    with pytest.raises(FileContentError, match=reason) as caught:
        trained.restore(path)
    assert str(path) in str(caught.value)
    np.testing.assert_array_equal(trained.cost_weights, before)  # what was there is still there
