"""The trainer in the shape of `imitation`, and its policy in the hands of Stable-Baselines3."""

import csv
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from imitation.algorithms.base import DemonstrationAlgorithm, make_data_loader
from imitation.data import rollout, types
from imitation.data.wrappers import RolloutInfoWrapper
from imitation.util import logger as imitation_logger
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import DummyVecEnv

import lfd_gym as lfd
from lfd_gym.demonstrations.forms import as_demonstrations
from lfd_gym.policies.stable_baselines import StableBaselinesPolicy
from lfd_gym.policies.tiles import TileGrid

DISCOUNT = 0.9


def quiet():
    return imitation_logger.configure(format_strs=())


@pytest.fixture(scope="module")
def world():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=6, cost_seed=1)
    mdp = lfd.FiniteMDP.from_env(env, discount=DISCOUNT)
    expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    demos = lfd.collect(env, expert, n_trajectories=20, horizon=80, rng=np.random.default_rng(0))
    return env, mdp, expert, demos


def make(world, demonstrations=None, **settings):
    env, _, _, demos = world
    arguments = {"env": env, "discount": DISCOUNT, "rng": np.random.default_rng(1), "custom_logger": quiet()} | settings
    return lfd.PrimalDualTrainer(demonstrations=demos if demonstrations is None else demonstrations, **arguments)


@pytest.fixture(scope="module")
def trained(world):
    trainer = make(world)
    trainer.train(progress_bar=False)
    return trainer


def test_it_is_an_imitation_algorithm_with_an_sb3_policy(trained, world):
    env, mdp, expert, demos = world
    assert isinstance(trained, DemonstrationAlgorithm)
    assert isinstance(trained.policy, BasePolicy)
    costs = env.unwrapped.cost_features
    evaluation = lfd.evaluate(trained.policy, lfd.Task(env, demos, discount=DISCOUNT, expert=expert))
    assert evaluation.normalised_score > 0.95
    exact = lfd.solve_cutting_plane(mdp, costs, lfd.feature_expectations(demos, costs, DISCOUNT).values)
    np.testing.assert_array_equal(trained.policy.inner.table, exact.policy)
    np.testing.assert_array_equal(trained.cost_weights, exact.cost_weights)
    np.testing.assert_array_equal(trained.value_function, exact.values)


def batches(transitions, size, order):
    """Slices of the columns as a data loader would yield them."""
    for start in range(0, len(transitions), size):
        chosen = order[start : start + size]
        yield {
            "obs": th.as_tensor(transitions.obs[chosen]),
            "acts": th.as_tensor(transitions.acts[chosen]),
            "next_obs": th.as_tensor(transitions.next_obs[chosen]),
            "dones": th.as_tensor(transitions.dones[chosen]),
        }


def test_demonstrations_in_every_form_give_the_same_costs(world, tmp_path):
    env, _, _, demos = world
    trajectories = demos.to_imitation()
    transitions = demos.to_transitions()
    demos.save_imitation(tmp_path / "saved")
    forms = {
        "ours": demos,
        "trajectories": trajectories,
        "iterator": iter(trajectories),
        "transitions": transitions,
        "saved": tmp_path / "saved",
    }
    wanted = lfd.feature_expectations(demos, env.unwrapped.cost_features, DISCOUNT).values
    for name, form in forms.items():
        np.testing.assert_allclose(make(world, form).expert_features.values, wanted, atol=1e-14, err_msg=name)


def test_batches_without_infos_cannot_say_that_a_time_limit_cut_them(world):
    """Their dones would be ends, after which nothing costs anything; the gridworld has no end."""
    transitions = world[3].to_transitions()
    with pytest.raises(ValueError, match="marked as terminated, but this environment never ends"):
        make(world, batches(transitions, 100, np.arange(len(transitions))))


def test_forms_without_order_are_refused(world):
    transitions = world[3].to_transitions()
    shuffled = np.random.default_rng(0).permutation(len(transitions))
    minimal = types.TransitionsMinimal(obs=transitions.obs, acts=transitions.acts, infos=transitions.infos)
    with pytest.raises(ValueError, match="look shuffled"):
        make(world, batches(transitions, 100, shuffled))
    with pytest.raises(ValueError, match="look shuffled"):
        make(world, make_data_loader(transitions, 100))
    with pytest.raises(ValueError, match="without next_obs"):
        make(world, minimal)
    with pytest.raises(ValueError, match="lack"):
        make(world, [{"obs": transitions.obs, "acts": transitions.acts}])
    with pytest.raises(TypeError, match="cannot be int"):
        as_demonstrations(3, world[0].observation_space, world[0].action_space)


def test_set_demonstrations_swaps_the_data(world):
    demos = world[3]
    trainer = make(world, demos.select(range(3)))
    trainer.train(progress_bar=False)
    before = trainer.cost_weights
    trainer.set_demonstrations(demos)
    with pytest.raises(RuntimeError, match="call train"):
        _ = trainer.cost_weights
    trainer.train(progress_bar=False)
    assert not np.array_equal(before, trainer.cost_weights)


def test_variable_horizons_are_sound_and_draw_no_warning(world, tmp_path, capsys):
    env, _, expert, _ = world
    long = lfd.collect(env, expert, 5, 80, np.random.default_rng(0))
    short = lfd.collect(env, expert, 5, 30, np.random.default_rng(0))
    mixed = long.to_imitation() + short.to_imitation()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer = lfd.PrimalDualTrainer(
            demonstrations=mixed,
            env=env,
            discount=DISCOUNT,
            rng=np.random.default_rng(0),
            custom_logger=imitation_logger.configure(tmp_path, ["stdout"]),
        )
    assert "variable" not in capsys.readouterr().out
    # The costs are the mean over trajectories, each discounted over its own length.
    parts = [lfd.feature_expectations(d, env.unwrapped.cost_features, DISCOUNT).values for d in (long, short)]
    np.testing.assert_allclose(trainer.expert_features.values, np.mean(parts, axis=0), atol=1e-14)


def test_it_logs_through_imitation(world, tmp_path, capsys):
    trainer = make(world, custom_logger=imitation_logger.configure(tmp_path, ["stdout", "csv", "tensorboard"]))
    seen = []
    trainer.train(progress_bar=False, callback=lambda which: seen.append(which.cost_weights.sum()))
    trainer.logger.close()
    with open(tmp_path / "progress.csv") as file:
        (row,) = csv.DictReader(file)
    assert float(row["cutting_plane/gap"]) <= 1e-8
    assert float(row["cost_weights/0"]) == pytest.approx(trainer.cost_weights[0])
    assert seen == [pytest.approx(1.0)]
    assert list(tmp_path.glob("events.out.tfevents*"))
    shown = capsys.readouterr().out
    assert "cutting_plane/" in shown
    assert "n_planner_calls" in shown


def test_residuals_are_logged_on_the_way(world, tmp_path):
    trainer = make(world, solver="mirror_descent", custom_logger=imitation_logger.configure(tmp_path, ["csv"]))
    trainer.train(100_000, progress_bar=False)
    trainer.logger.close()
    with open(tmp_path / "progress.csv") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["mirror_descent/iterations"]) for row in rows]
    assert len(steps) > 3
    assert steps == sorted(set(steps))
    assert steps[-1] == 100_000
    assert float(rows[-1]["mirror_descent/residual"]) < float(rows[0]["mirror_descent/residual"])


@pytest.mark.parametrize("solver", ["cutting_plane", "mirror_descent", "plug_in", "primal_dual_hybrid"])
def test_solvers_agree(world, solver):
    env, mdp = world[:2]
    trainer = make(world, solver=solver)
    trainer.train(3_000_000 if solver == "mirror_descent" else None, progress_bar=False)
    distance = lfd.evaluate(
        trainer.policy,
        mdp,
        env.unwrapped.cost_features,
        expert_features=trainer.expert_features.values,
    ).cost_distance
    exact = lfd.solve_cutting_plane(mdp, env.unwrapped.cost_features, trainer.expert_features.values)
    slack = {"plug_in": 0.01, "mirror_descent": 0.03}.get(solver, 1e-4)
    assert exact.lower_bound - 1e-9 <= distance <= exact.upper_bound + slack
    assert (trainer.oracle_calls > 0) == (solver in ("plug_in", "mirror_descent"))


def test_certificate_covers_the_true_distance(trained, world):
    env, _, expert, _ = world
    evaluation = lfd.evaluate(trained.policy, lfd.Task(env, discount=DISCOUNT, expert=expert))
    certificate = trained.certificate(delta=0.05)
    assert evaluation.cost_distance <= certificate.cost_distance_bound
    by_model = make(world, env=None, model=lfd.as_generative_model(env), cost_features=env.unwrapped.cost_features)
    by_model.train(progress_bar=False)
    sampled = by_model.certificate(delta=0.05, n_rollouts=2000)
    assert sampled.cost_distance_bound > certificate.cost_distance  # it also allows for what rollouts do not show
    assert "2,000 rollouts" in sampled.evidence


def test_it_logs_the_residual_on_the_way(world, tmp_path):
    trainer = make(world, solver="mirror_descent", custom_logger=imitation_logger.configure(tmp_path, ["csv"]))
    trainer.train(200_000, progress_bar=False)
    trainer.logger.close()
    with open(tmp_path / "progress.csv") as file:
        rows = list(csv.DictReader(file))
    residuals = [float(row["mirror_descent/residual"]) for row in rows]
    assert len(residuals) > 1
    assert residuals[-1] < residuals[0]
    assert float(rows[-1]["mirror_descent/iterations"]) == 200_000


@pytest.mark.parametrize("solver", ["cutting_plane", "mirror_descent", "plug_in", "primal_dual_hybrid"])
def test_what_was_found_survives_saving_bit_exactly(world, solver, tmp_path):
    path = tmp_path / "trained.npz"
    trainer, other = (make(world, solver=solver) for _ in range(2))
    with pytest.raises(RuntimeError, match="call train"):
        trainer.save(path)
    trainer.train(100_000 if solver == "mirror_descent" else None, progress_bar=False)
    trainer.save(path)
    other.restore(path)
    np.testing.assert_array_equal(other.cost_weights, trainer.cost_weights)
    np.testing.assert_array_equal(other.value_function, trainer.value_function)
    assert other.oracle_calls == trainer.oracle_calls
    assert other.certificate() == trainer.certificate()
    states = np.arange(36).repeat(20)
    np.testing.assert_array_equal(other.policy.predict(states)[0], trainer.policy.predict(states)[0])


def test_what_was_found_for_others_is_refused(trained, world, tmp_path):
    path = tmp_path / "trained.npz"
    trained.save(path)
    with pytest.raises(ValueError, match="other demonstrations"):
        make(world, world[3].select(range(3))).restore(path)
    trained.policy.save(path)
    with pytest.raises(ValueError, match="is not a result saved by lfd_gym"):
        make(world).restore(path)
    np.savez(path, description=np.array([{"format": "x"}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        make(world).restore(path)


# -- the policy -------------------------------------------------------------------------------------------------------


def test_policy_works_in_sb3_and_imitation(trained, world):
    env = world[0]
    venv = DummyVecEnv([lambda: RolloutInfoWrapper(gym.make(env.spec)) for _ in range(4)])
    venv.seed(0)
    mean, _ = evaluate_policy(trained.policy, venv, n_eval_episodes=8, deterministic=False, warn=False)
    assert mean > 0
    trajectories = rollout.rollout(trained.policy, venv, rollout.make_min_episodes(4), rng=np.random.default_rng(0))
    assert len(trajectories) >= 4
    collected = lfd.collect(env, trained.policy, 3, 20, np.random.default_rng(0))
    assert collected.n_transitions == 60


def test_policy_survives_saving_bit_exactly(trained, world, tmp_path):
    path = tmp_path / "policy.npz"
    trained.policy.save(path)
    loaded = StableBaselinesPolicy.load(path)
    np.testing.assert_array_equal(loaded.inner.table, trained.policy.inner.table)
    states = np.arange(36).repeat(20)
    np.testing.assert_array_equal(loaded.predict(states)[0], trained.policy.predict(states)[0])
    assert loaded.observation_space == trained.policy.observation_space
    with np.load(path, allow_pickle=False) as file:  # nothing in it is pickled
        assert set(file.files) == {"table", "description"}


def test_one_hot_observations(world):
    _, _, expert, _ = world
    env = gym.wrappers.FlattenObservation(gym.make("lfd_gym/StochasticGridworld-v0", size=6, cost_seed=1))
    states = lfd.collect(world[0], expert, 20, 80, np.random.default_rng(0))
    one_hot = [
        types.Trajectory(obs=np.eye(36, dtype=np.int64)[t.obs], acts=t.acts, infos=t.infos, terminal=t.terminal)
        for t in states.to_imitation()
    ]
    trainer = make(world, one_hot, env=env)
    trainer.train(progress_bar=False)
    reference = make(world, states)
    reference.train(progress_bar=False)
    np.testing.assert_array_equal(trainer.policy.inner.table, reference.policy.inner.table)
    observation, _ = env.reset(seed=0)
    state = int(np.argmax(observation))
    action, _ = trainer.policy.predict(observation, deterministic=True)
    assert action == reference.policy.inner.table[state].argmax()
    assert lfd.evaluate(trainer.policy, lfd.Task(world[0], discount=DISCOUNT, expert=expert)).normalised_score > 0.9
    with pytest.raises(ValueError, match="one-hot vector"):
        trainer.policy.predict(np.zeros(36))


def test_unseen_observations_are_refused(trained):
    with pytest.raises(ValueError, match="observations must be states 0 to 35, got 36"):
        trained.policy.predict(np.array([0, 36]))
    with pytest.raises(ValueError, match="observations must be states 0 to 35, got -1"):
        trained.policy.predict(np.array([-1]))


@pytest.mark.parametrize("name", ["FrozenLake", "CliffWalking", "Taxi"])
def test_it_runs_unchanged_on_toy_text(name):
    # Versions differ between the lines of Gymnasium.
    env_id = max(known for known in gym.registry if known.startswith(f"{name}-v"))
    env = gym.make(env_id)
    rng = np.random.default_rng(0)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.95)
    costs = np.column_stack(
        [
            lfd.normalise_costs(lfd.reward_cost(env)),
            rng.uniform(-1, 1, mdp.n_states).repeat(mdp.n_actions),
        ]
    )
    costs.reshape(mdp.n_states, mdp.n_actions, 2)[mdp.absorbing_state] = 0.0
    expert = mdp.optimal_policy(costs[:, 0])
    demos = lfd.collect(env, expert, n_trajectories=500, horizon=200, rng=rng)
    trainer = lfd.PrimalDualTrainer(
        demonstrations=demos.to_imitation(),
        env=env,
        cost_features=costs,
        discount=0.95,
        rng=rng,
        custom_logger=quiet(),
    )
    trainer.train(progress_bar=False)
    assert trainer.policy.observation_space == env.observation_space
    evaluation = lfd.evaluate(trainer.policy, mdp, costs, expert=expert, true_cost=costs[:, 0])
    assert evaluation.normalised_score > 0.9
    assert evaluation.cost_distance <= trainer.certificate(0.05).cost_distance_bound
    venv = DummyVecEnv([lambda: RolloutInfoWrapper(FloatRewards(gym.make(env_id)))])
    assert rollout.rollout(trainer.policy, venv, rollout.make_min_episodes(1), rng=rng)


@pytest.fixture(scope="module")
def pole():
    """CartPole with tiles over the angle and its speed; after the end there are no costs, so standing is good."""
    env = gym.make("CartPole-v1")
    limits = np.array([2.4, 3.0, 0.21, 3.0])
    grid = TileGrid(-limits, limits, (1, 1, 4, 4))
    return {
        "demonstrations": lfd.collect(env, balance, 20, 150, np.random.default_rng(0)),
        "env": env,
        "cost_features": standing_and_upright,
        "discount": 0.95,
        "occupancy_features": lfd.features.TileOccupancyFeatures(grid, n_actions=2, absorbing=True),
        "value_features": lfd.features.TileValueFeatures(grid),
    }


def balance(observations):
    return (observations @ [0.0, 0.1, 1.0, 0.5] > 0).astype(np.int64)


def standing_and_upright(observations, actions):
    leaning = np.minimum(np.abs(observations[:, 2]) / 0.21, 1)
    return np.column_stack([-np.ones(len(observations)), leaning - 1])


def pole_trainer(pole, **settings):
    return lfd.PrimalDualTrainer(**(pole | {"rng": np.random.default_rng(0), "custom_logger": quiet()} | settings))


def test_cartpole_with_tiles(pole, tmp_path):
    trainer = pole_trainer(pole)
    assert trainer.learner.name == "mirror_descent"
    trainer.train(2500, progress_bar=False)
    assert trainer.oracle_calls == 2500 * 64 * 2 + 1024

    rng = np.random.default_rng(1)
    task = replace(trainer.task, expert=balance, true_cost=lambda seen, done: -np.ones(len(seen)))
    ours = lfd.evaluate(trainer.policy, task, rng=rng, n_rollouts=200)
    uniform = lfd.features.TilePolicy(pole["value_features"].grid, np.full((16, 2), 0.5))
    random = lfd.evaluate(uniform, task, rng=rng, n_rollouts=200)
    assert ours.normalised_score > 0.95
    assert ours.sampling.normalised_score[0] > 0.75
    assert ours.sampling.cost_distance[1] < random.sampling.cost_distance[0] / 3
    assert trainer.certificate(0.05, n_rollouts=100).cost_distance_bound > ours.cost_distance
    episodes, _ = evaluate_policy(trainer.policy, pole["env"], 5, deterministic=False, warn=False)
    assert episodes > 100  # steps; the random policy stands for 22

    leaning = np.zeros((2, 4), dtype=np.float32)
    leaning[1, 2:] = 0.2, 1.0
    upright_value, falling_value = trainer.value_function(leaning)
    assert upright_value < falling_value
    trainer.save(tmp_path / "trained.npz")
    again = pole_trainer(pole)
    again.restore(tmp_path / "trained.npz")
    np.testing.assert_array_equal(again.value_function(leaning), [upright_value, falling_value])
    np.testing.assert_array_equal(again.policy.inner.table, trainer.policy.inner.table)

    trainer.policy.save(tmp_path / "policy.npz")
    loaded = StableBaselinesPolicy.load(tmp_path / "policy.npz")
    seen = pole["demonstrations"].observations
    np.testing.assert_array_equal(loaded.predict(seen)[0], trainer.policy.predict(seen)[0])
    assert loaded.observation_space == pole["env"].observation_space


def test_features_that_do_not_fit_are_refused(pole, world):
    with pytest.raises(ValueError, match="give both occupancy_features and value_features"):
        pole_trainer(pole, value_features=None)
    with pytest.raises(ValueError, match="learner 'cutting_plane' has no setting 'occupancy_features'"):
        pole_trainer(pole, solver="cutting_plane")
    with pytest.raises(ValueError, match="learner 'plug_in' has no setting 'value_radius'"):
        make(world, solver="plug_in", value_radius=3.0)
    with pytest.raises(ValueError, match="occupancy_features and value_features must be given over Box"):
        pole_trainer(pole, solver="mirror_descent", occupancy_features=None, value_features=None).train(10)
    with pytest.raises(ValueError, match="value_radius must be given for the ball"):
        pole_trainer(pole, value_domain="ball").train(10)
    stored = lfd.features.rollout_occupancies([[np.zeros((3, 4))]], [[np.zeros(3, dtype=int)]], 0.95)
    with pytest.raises(ValueError, match="whose mixtures are policies"):
        pole_trainer(pole, occupancy_features=stored).train(10)
    flat = lfd.features.TileOccupancyFeatures(TileGrid([0.0], [1.0], (2,)), n_actions=2, absorbing=True)
    with pytest.raises(ValueError, match="tiles over 1 numbers, but policies see Box"):
        pole_trainer(pole, occupancy_features=flat).train(10)


def test_settings_belong_to_the_learner(world):
    from lfd_gym.baselines import make_learner

    trainer = make(world, learner=make_learner("lpal"))
    trainer.train(progress_bar=False)
    assert trainer.result.learner == "lpal"
    with pytest.raises(ValueError, match="value_radius: these are settings of the learner"):
        make(world, learner=make_learner("mirror_descent"), value_radius=3.0)
    with pytest.raises(ValueError, match="either solver or learner"):
        make(world, learner=make_learner("lpal"), solver="lpal")
    rescaled = make(world, world[3].select([0, 1]), truncation="rescale")
    rescaled.train(progress_bar=False)
    ours = rescaled.task.expected_costs(rescaled.policy).values - rescaled.expert_features.values
    assert rescaled.certificate().cost_distance == pytest.approx(ours.max())


def test_the_solver_follows_from_what_is_known(world, pole):
    env, mdp = world[:2]
    costs = {"cost_features": env.unwrapped.cost_features, "env": None}
    assert make(world).learner.name == "cutting_plane"
    assert make(world, model=mdp, **costs).learner.name == "cutting_plane"
    assert make(world, model=lfd.as_generative_model(env), **costs).learner.name == "plug_in"
    assert make(world, value_domain="box").learner.name == "mirror_descent"
    assert pole_trainer(pole).learner.name == "mirror_descent"


class FloatRewards(gym.RewardWrapper):
    """Toy-text rewards are integers, which `imitation` refuses."""

    def reward(self, reward):
        return float(reward)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env": None}, "either env or model"),
        ({"solver": "simplex"}, "there is no learner 'simplex'"),
        ({"discount": 1.0}, "discount must lie"),
        ({"cost_class": "box"}, "cost_class must be"),
    ],
)
def test_bad_input_is_named(world, change, message):
    with pytest.raises(ValueError, match=message):
        make(world, **change)
