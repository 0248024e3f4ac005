"""The game with networks, on a slider that is learned in seconds."""

import csv
import json
import subprocess
import sys
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch as th
from slider import LENGTH, Slider, to_the_middle, to_the_middle_by_steps
from stable_baselines3.common.vec_env import DummyVecEnv

import lfd_gym as lfd
from lfd_gym.baselines import make_learner
from lfd_gym.baselines.neural import saving
from lfd_gym.baselines.neural.duel import Duel, Snapshot, stretches
from lfd_gym.baselines.neural.game import Game
from lfd_gym.baselines.neural.judging import Judge, Judgement
from lfd_gym.baselines.neural.match import Match
from lfd_gym.baselines.neural.players import CloningActorCritic
from lfd_gym.learning import best_learner
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.testing import check_learner

ID = "lfd_gym_test/Slider-v0"
SMALL = {"hidden_sizes": (16, 16), "cloning_steps": 200, "batch_size": 32, "learning_rate": 2e-3}
BUDGET = 800
#: For tests that are not about learning well: a few steps may not be enough for it, and that is said.
ANY_LEVEL = pytest.mark.filterwarnings("ignore:primal_dual_rl has not learned")


def small(**settings):
    return make_learner("primal_dual_rl", **SMALL | settings)


def make_task(env=None, n_demonstrations=3, actions=True, **settings):
    env = gym.make(ID) if env is None else env
    expert = to_the_middle if isinstance(env.action_space, gym.spaces.Box) else to_the_middle_by_steps
    demos = lfd.collect(env, expert, n_demonstrations, LENGTH, np.random.default_rng(0))
    return lfd.Task(env, demos if actions else demos.without_actions(), discount=0.9, **settings)


def weights_of(result):
    return result.policy.to_data()[1]


def same_weights(*results):
    one, other = (weights_of(result) for result in results)
    return all(np.array_equal(one[name], other[name]) for name in one)


def learn(task, learner=None, seed=0, budget=BUDGET):
    return lfd.learn(task, learner or small(), rng=np.random.default_rng(seed), budget=budget)


def near_the_middle(result, env_id=ID, **settings):
    """Return how far from the middle the policy's episodes end."""
    played = lfd.collect(gym.make(env_id, **settings), result.policy, 10, rng=np.random.default_rng(9))
    return max(abs(float(episode.observations[-1, 0])) for episode in played)


@pytest.mark.parametrize("discrete", [False, True])
def test_it_learns_and_says_how_far_it_is(discrete):
    task = make_task(gym.make(ID, discrete=discrete), n_demonstrations=10)
    result = learn(task, small(cloning_steps=500), budget=2000)
    assert near_the_middle(result, discrete=discrete) < 0.3
    facts = result.facts
    assert facts["distance"] < 0.3 * facts["distance_of_random"]
    assert facts["first_is_cloned"]
    assert facts["n_rollouts"] == 20
    json.dumps(dict(facts), allow_nan=False)
    assert result.learner == "primal_dual_rl"
    assert result.resources.env_steps >= 2000
    task.costs.weights.check("cost_weights", result.cost_weights, task.costs.n_costs)
    # The distance that it says is what anybody would measure.
    found = task.expected_costs(result.policy, rng=np.random.default_rng(5), n_rollouts=100)
    apart = float(task.costs.weights.support(found.values - task.expert_features().values))
    assert apart == pytest.approx(facts["distance"], abs=0.15)


@pytest.mark.parametrize("algorithm", ["sac", "ppo"])
def test_without_cloning_it_learns_from_what_was_seen_alone(algorithm):
    task = make_task(actions=False)
    result = learn(task, small(algorithm=algorithm), budget=4000)
    assert not result.facts["first_is_cloned"]
    assert result.facts["distance"] < 0.5 * result.facts["distance_of_random"]


@pytest.mark.parametrize("weights", ["ball", "simplex"])
def test_ppo_plays_feature_matching_over_the_ball_and_gtal_over_the_simplex(weights):
    costs = lfd.FunctionCosts(lambda seen, done: np.column_stack([np.abs(seen) / 3, np.abs(done)]), 2, weights=weights)
    task = make_task(costs=costs)
    result = learn(task, small(algorithm="ppo", cloning_steps=0), budget=8000)
    assert result.facts["snapshot"] > 0
    assert result.facts["distance"] < 0.5 * result.facts["distance_of_random"]
    task.costs.weights.check("cost_weights", result.cost_weights, costs.n_costs)


@ANY_LEVEL
@pytest.mark.parametrize(
    ("algorithm", "discrete"),
    [("dqn", True), ("td3", False), (sb3.DDPG, False), (sb3.SAC, False), (sb3.A2C, True), ("ppo", True)],
)
def test_other_algorithms_play(algorithm, discrete, tmp_path):
    task = make_task(gym.make(ID, discrete=discrete))
    result = learn(task, small(algorithm=algorithm, cloning_steps=20))
    assert result.facts["n_updates"] > 0
    assert result.facts["algorithm"].lower() == getattr(algorithm, "__name__", algorithm).lower()
    lfd.save_policy(result.policy, tmp_path / "policy.npz")
    seen = task.demonstrations.acted_on
    kept = lfd.load_policy(tmp_path / "policy.npz")
    np.testing.assert_array_equal(kept.greedy(seen), result.policy.greedy(seen))


@ANY_LEVEL
@pytest.mark.parametrize(("discrete", "algorithm"), [(False, "sac"), (True, "sac"), (False, "ppo"), (True, "dqn")])
def test_no_reward_is_ever_read(discrete, algorithm):
    learner = small(algorithm=algorithm, cloning_steps=20)
    plain = make_task(gym.make(ID, discrete=discrete))
    blind = lfd.Task(
        gym.make(ID, discrete=discrete, reward=float("nan")),
        lfd.Demonstrations.from_episodes(
            [episode._replace(rewards=None) for episode in plain.demonstrations],
            plain.observation_space,
            plain.action_space,
        ),
        discount=0.9,
    )
    results = learn(plain, learner), learn(blind, learner)
    assert same_weights(*results)
    assert dict(results[0].facts) == dict(results[1].facts)


@ANY_LEVEL
def test_the_same_seed_gives_the_same_bits_and_another_other_ones():
    task = make_task()
    one, again, other = (learn(task, seed=seed) for seed in (0, 0, 1))
    assert same_weights(one, again)
    np.testing.assert_array_equal(one.cost_weights, again.cost_weights)
    assert not same_weights(one, other)


@ANY_LEVEL
def test_it_keeps_the_promises_of_a_learner():
    check_learner(small(cloning_steps=20), make_task(), budget=BUDGET)


@ANY_LEVEL
def test_a_file_keeps_what_was_learned_without_pickle(tmp_path):
    task = make_task()
    result = learn(task, small(cloning_steps=20))
    lfd.save_policy(result.policy, tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz", allow_pickle=False) as file:
        assert file.files
    kept = lfd.load_policy(tmp_path / "policy.npz")
    seen = task.demonstrations.acted_on
    np.testing.assert_array_equal(kept.greedy(seen), result.policy.greedy(seen))
    np.testing.assert_array_equal(kept.sample(seen, np.random.default_rng(0)), result.policy.greedy(seen))


@ANY_LEVEL
def test_the_network_goes_on_learning_in_stable_baselines():
    task = make_task()
    network = learn(task, small(cloning_steps=20)).policy.policy.network
    model = sb3.SAC("MlpPolicy", gym.make(ID), policy_kwargs={"net_arch": [16, 16]}, learning_starts=10, seed=0)
    model.actor.load_state_dict(network.state_dict())
    seen = task.demonstrations.acted_on
    np.testing.assert_allclose(model.predict(seen, deterministic=True)[0], network.predict(seen, deterministic=True)[0])
    assert model.learn(50).num_timesteps == 50


class Nested(Slider):
    """A slider that says where it is in a dictionary."""

    observation_space = gym.spaces.Dict({"where": Slider.observation_space, "side": gym.spaces.Discrete(2)})

    def _seen(self):
        where = super()._seen()
        return {"where": where, "side": int(where[0] > 0)}


@ANY_LEVEL
@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.wrappers.TimeLimit(Slider(), LENGTH),
        lambda: gym.wrappers.TimeLimit(Nested(), LENGTH),
        lambda: DummyVecEnv([lambda: gym.make(ID)] * 2),
        lambda: gym.make_vec(ID, num_envs=2),
        lambda: gym.wrappers.RescaleAction(gym.make(ID), -2.0, 2.0),
    ],
    ids=["without spec", "dictionaries", "VecEnv", "vector environment", "wrapped"],
)
def test_it_plays_in_environments_of_every_kind(make):
    env = make()
    steer = lambda seen: np.clip(-seen[:, -1:], -1, 1).astype(np.float32)  # noqa: E731
    demos = lfd.collect(env, steer, 2, LENGTH, np.random.default_rng(0))
    task = lfd.Task(env, demos, discount=0.9)
    result = learn(task, small(cloning_steps=20))
    assert result.facts["n_updates"] > 0
    assert lfd.collect(env, result.policy, 2, LENGTH, np.random.default_rng(0)).n_transitions > 0


def test_it_is_what_is_picked_where_there_are_only_episodes():
    class Opaque(gym.Wrapper):
        """Of an unknown class, so that nothing is known of its effect."""

    task = make_task(Opaque(gym.make(ID)))
    assert task.access == "episodes"
    assert best_learner(task)[0] == "primal_dual_rl"
    data_only = lfd.Task(None, task.demonstrations, discount=0.9)
    assert best_learner(data_only)[0] == "bc"


def test_it_says_that_it_has_not_learned():
    env = gym.make(ID)
    random = lfd.collect(env, UniformPolicy(env.action_space), 20, rng=np.random.default_rng(0))
    task = lfd.Task(env, random, discount=0.9)
    with pytest.warns(lfd.LfdGymWarning, match=r"has not learned.*random play at"):
        learn(task, small(cloning_steps=1, algorithm="td3"), budget=200)


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "discrete", "said"),
    [
        ("dqn", False, r"algorithm DQN acts in Discrete spaces only, and this task's actions are Box"),
        ("td3", True, r"algorithm TD3 acts in Box spaces only, and this task's actions are Discrete"),
        (sb3.SAC, True, r"algorithm SAC acts in Box spaces only"),
        (
            "trpo",
            True,
            r"algorithm must be one of 'sac', 'td3', 'dqn', 'ppo' or a type or None, got 'trpo'",
        ),
        (dict, True, r"algorithm must be 'sac'"),
    ],
)
def test_algorithms_that_do_not_fit_are_named(algorithm, discrete, said):
    with pytest.raises(ValueError, match=said):
        learn(make_task(gym.make(ID, discrete=discrete)), small(algorithm=algorithm))


def test_actions_without_bounds_are_for_ppo():
    env = gym.make(ID)
    env.action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    with pytest.raises(ValueError, match=r"needs bounded actions.*use 'ppo'"):
        learn(make_task(env), small(algorithm="sac"))


def test_images_are_refused_by_name():
    class Picture(Slider):
        """A slider that shows a picture."""

        observation_space = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)

        def _seen(self):
            return np.full((8, 8, 3), 100 + 20 * self.x, dtype=np.uint8)

    env = gym.wrappers.TimeLimit(Picture(), LENGTH)
    demos = lfd.collect(env, UniformPolicy(env.action_space), 1, rng=np.random.default_rng(0))
    costs = lfd.FunctionCosts(lambda seen, done: np.zeros((len(seen), 1)), 1)
    with pytest.raises(ValueError, match="its observations are images"):
        learn(lfd.Task(env, demos, discount=0.9, costs=costs))


def test_a_budget_for_less_than_an_episode_is_refused():
    with pytest.raises(ValueError, match=r"budget must allow an episode in each environment, 4 x 20 = 80.*got 79"):
        learn(make_task(), budget=79)


@ANY_LEVEL
def test_observations_that_are_no_numbers_are_named():
    demos = make_task().demonstrations
    env = gym.make(ID, breaks_after=100)
    task = lfd.Task(env, demos, discount=0.9, allow_mismatch=True)
    with pytest.raises(ValueError, match=r"env must give finite observations, got \[nan\] after \d+ steps"):
        learn(task, small(cloning_steps=1))


def test_what_is_no_environment_is_refused():
    mdp = lfd.FiniteMDP.from_env(gym.make("FrozenLake-v1"), discount=0.9)
    model = lfd.TabularModel.of(mdp)
    demos = lfd.collect(model, np.full((mdp.n_states, 4), 0.25), 2, 10, np.random.default_rng(0))
    costs = np.zeros((mdp.n_states * 4, 1))
    with pytest.raises(ValueError, match="it needs an environment that can be reset and stepped, not TabularModel"):
        learn(lfd.Task(model, demos, discount=0.9, costs=costs))


@ANY_LEVEL
@pytest.mark.parametrize(("installed", "warned"), [("2.1.0", True), ("2.2.1", False), ("2.9.4", False), ("3.0", True)])
def test_versions_that_were_not_tested_are_named(installed, warned, monkeypatch, recwarn):
    monkeypatch.setattr("lfd_gym.baselines.neural.fitting.version", lambda name: installed)
    learn(make_task(), small(cloning_steps=1), budget=80)
    told = [str(each.message) for each in recwarn if "tested with 2.2 to 2.9" in str(each.message)]
    assert [text.split()[1] for text in told] == [installed] * warned


@pytest.mark.parametrize(("length", "budget"), [(20, 30_000), (1000, 60_000)])
def test_long_episodes_have_a_larger_budget(length, budget):
    assert make_learner("primal_dual_rl").budget_for(make_task(horizon=length)) == budget


def test_imitation_is_not_needed():
    code = (
        "import sys; sys.modules['imitation'] = None\n"
        "import lfd_gym.baselines; print(lfd_gym.baselines.make_learner('primal_dual_rl').name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "primal_dual_rl"


def test_policies_on_the_way_are_offered_for_each_tenth_of_the_budget(monkeypatch):
    monkeypatch.setattr(Game, "_spread", lambda *_: 0.0)  # so that it does not end before
    result = learn(make_task(), budget=6_000)
    assert [each.after for each in result.checkpoints] == [1000, 1500, 2000, 2500, 3000, 4000, 4500, 5000, 5500]
    seen = np.linspace(-1, 1, 9)[:, None].astype(np.float32)
    first, last = (result.checkpoints[k].policy.greedy(seen) for k in (0, -1))
    assert not np.array_equal(first, last)


# -- checkpoints and logs ---------------------------------------------------------------------------------------------


@pytest.fixture
def short_rounds(monkeypatch):
    monkeypatch.setattr("lfd_gym.baselines.neural.match._ROUND", 160)


class CutError(Exception):
    """What ends a run from outside."""


@ANY_LEVEL
@pytest.mark.parametrize(
    ("discrete", "algorithm"), [(False, "sac"), (True, "sac"), (False, sb3.SAC), (True, "dqn"), (False, "ppo")]
)
def test_a_run_that_was_cut_goes_on_to_the_same_bits(discrete, algorithm, tmp_path, monkeypatch, short_rounds):
    def task():
        return make_task(gym.make(ID, discrete=discrete))

    settings = {"algorithm": algorithm, "cloning_steps": 20}
    whole = learn(task(), small(**settings))
    checkpoint = str(tmp_path / "run.npz")
    write, written = saving.save, []

    def write_twice(*arguments):
        write(*arguments)
        written.append(arguments)
        if len(written) == 2:
            raise CutError

    monkeypatch.setattr(saving, "save", write_twice)
    with pytest.raises(CutError):
        learn(task(), small(checkpoint=checkpoint, **settings))
    resumed = learn(task(), small(checkpoint=checkpoint, **settings))
    assert len(written) > 3  # it went on, and did not begin anew
    assert same_weights(whole, resumed)
    np.testing.assert_array_equal(whole.cost_weights, resumed.cost_weights)
    assert dict(whole.facts) == dict(resumed.facts)
    again = learn(task(), small(checkpoint=checkpoint, **settings))  # there is nothing left to play
    assert same_weights(whole, again)


@ANY_LEVEL
def test_a_checkpoint_is_for_the_same_call_only(tmp_path):
    checkpoint = str(tmp_path / "run.npz")
    learner = small(cloning_steps=20, checkpoint=checkpoint)
    learn(make_task(), learner)
    with pytest.raises(ValueError, match=r"is of another run: seed was \d+ and is \d+; use another file"):
        learn(make_task(), learner, seed=1)
    with pytest.raises(ValueError, match=r"is of another run: budget was 800 and is 900"):
        learn(make_task(), learner, budget=900)
    with pytest.raises(ValueError, match=r"is of another run: demonstrations was"):
        learn(make_task(n_demonstrations=4), learner)
    content = bytearray((tmp_path / "run.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "run.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.npz"):
        learn(make_task(), learner)


@ANY_LEVEL
def test_a_run_that_breaks_keeps_its_checkpoint(tmp_path, short_rounds):
    plain = make_task()
    task = lfd.Task(gym.make(ID, breaks_after=300), plain.demonstrations, discount=0.9, allow_mismatch=True)
    with pytest.raises(ValueError, match="finite"):
        learn(task, small(cloning_steps=1, checkpoint=str(tmp_path / "run.npz")), budget=2000)
    assert (tmp_path / "run.npz").exists()


@ANY_LEVEL
def test_progress_is_logged_for_other_tools(tmp_path):
    learn(make_task(), small(cloning_steps=20, log=str(tmp_path)), budget=1200)
    with open(tmp_path / "progress.csv") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["time/total_timesteps"]) >= 1000
    assert all(np.isfinite(float(row[name])) for row in rows for name in ("game/distance", "game/return"))
    assert list(tmp_path.glob("events.out.tfevents*"))


def test_chance_is_told_from_signal():
    game = Game(make_task(n_demonstrations=5))
    rng, size = np.random.default_rng(0), game.expert.size

    def within_chance(shift):
        game.per_demonstration = 0.1 * rng.normal(size=(5, size))
        game.expert = game.per_demonstration.mean(axis=0)
        game._episodes = []
        for _ in range(20):
            game.hear(shift + 0.1 * rng.normal(size=size))
        game.move()
        return game.within_chance

    # The squared distance of two means is more than expected half the time, and less half the time, by chance alone.
    assert 10 < sum(within_chance(0.0) for _ in range(100)) < 90
    assert not any(within_chance(0.1) for _ in range(100))


def test_the_pull_of_the_costs_depends_on_the_episodes_that_measure_not_on_how_few_demonstrations_there_are():
    rng = np.random.default_rng(0)
    game = Game(make_task(n_demonstrations=1))
    shift = game.expert + 0.3
    for _ in range(20):
        game.hear(shift + 0.1 * rng.normal(size=shift.size))
    game.move()
    difference = np.mean([paid for _, paid in game._episodes], axis=0) - game.expert
    spread = np.var([paid for _, paid in game._episodes], axis=0, ddof=1).sum()
    assert game.trust == pytest.approx(1 - spread / 20 / (difference @ difference))
    assert game.trust > 0.95


def test_cloning_holds_as_far_as_it_is_worth_more_than_random_play():
    def weight(worth, distance=0.1):
        game = SimpleNamespace(distance=distance)
        player = SimpleNamespace(
            demonstrations=(), game=game, distance_of_cloning=0.1, worth_of_cloning=worth, _current_progress_remaining=1
        )
        return CloningActorCritic.cloning_weight.fget(player)

    assert [weight(worth) for worth in (0, 0.5, 1)] == pytest.approx([0.3, 5.3, 10.3])
    assert weight(0.5, distance=0.2) == pytest.approx(0.3 + 5 * 2**4)
    assert weight(0, distance=0.2) == pytest.approx(0.3)


def test_what_cloning_is_worth_is_the_share_of_random_plays_distance_that_it_takes_away(monkeypatch):
    seen = []
    judge = Judge.__call__
    monkeypatch.setattr(Judge, "__call__", lambda *args: seen.append(judge(*args)) or seen[-1])
    play = Match._play
    monkeypatch.setattr(Match, "_play", lambda self: seen.append(self.model.worth_of_cloning) or play(self))
    learn(make_task())
    random, cloned, worth = seen[:3]
    assert worth == pytest.approx(1 - cloned.distance / random.distance)
    assert 0.3 < worth < 1


@ANY_LEVEL
@pytest.mark.parametrize("budget", [6_000, 12_000])
def test_it_ends_when_the_distance_is_within_chance_for_long_after_half_the_budget(monkeypatch, budget):
    monkeypatch.setattr(Game, "_spread", lambda *_: 1e9)
    result = learn(make_task(), small(cloning_steps=20), budget=budget)
    assert result.facts["ended_within_chance"]
    assert budget * 2 / 3 <= result.facts["n_snapshots"] * 500 < budget * 2 / 3 + 1500


@ANY_LEVEL
def test_what_is_measured_follows_the_actor_by_a_thousandth_for_each_update(monkeypatch):
    seen, train = [], CloningActorCritic.train

    def watched(self, gradient_steps, batch_size):
        before = [weight.clone() for weight in self.policy.averaged.parameters()]
        train(self, gradient_steps, batch_size)
        share = 1 - 0.999**gradient_steps
        for now, mean, old in zip(
            self.policy.actor.parameters(), self.policy.averaged.parameters(), before, strict=True
        ):
            th.testing.assert_close(mean.data, old + share * (now.data - old))
        seen.append(any(not th.equal(*pair) for pair in zip(self.policy.averaged.parameters(), before, strict=True)))

    monkeypatch.setattr(CloningActorCritic, "train", watched)
    learn(make_task(), small(cloning_steps=20), budget=400)
    assert any(seen)


# -- choosing ---------------------------------------------------------------------------------------------------------


def snapshots(values):
    return [Snapshot(500 * (k + 1), 0.0, {"weight": th.full((2,), float(value))}) for k, value in enumerate(values)]


def test_policies_to_choose_from_are_the_mean_weights_of_each_tenth():
    found = stretches(snapshots(range(40)))
    assert [each.n_steps for each in found] == [2000 * k for k in range(1, 11)]
    assert [float(each.weights["weight"][1]) for each in found] == [4 * k + 1.5 for k in range(10)]
    few = snapshots([3, 1, 2])
    assert stretches(few) == few


def test_the_policy_at_the_end_is_counted_once():
    duel = SimpleNamespace(snapshots=snapshots([1, 2]), num_timesteps=1000, snapshot=lambda: "last")
    assert Duel.all_snapshots(duel) == duel.snapshots
    duel.num_timesteps = 1100
    assert Duel.all_snapshots(duel) == [*duel.snapshots, "last"]


class Judged:
    """A judge of policies that are numbers: an episode pays one, give or take one; few episodes flatter some."""

    def __init__(self, flattered=()):
        self.flattered, self.asked = flattered, []

    def __call__(self, policy, n_episodes=10, rng=None):
        self.asked.append((policy, n_episodes))
        centre = 0.0 if n_episodes == 10 and policy in self.flattered else policy
        paid = (centre + np.resize([-1.0, 1.0], n_episodes))[:, None]
        return self.judgement(paid)

    def judgement(self, paid):
        return Judgement(paid, paid, float(abs(paid.mean())), float(abs(paid.mean())), np.empty(0), len(paid))

    def joined(self, one, other):
        return self.judgement(np.concatenate([one.paid, other.paid]))


def chosen(cloned, others, **settings):
    judge = Judged(**settings)
    match = SimpleNamespace(
        judge=judge,
        rng=np.random.default_rng(0),
        game=SimpleNamespace(expert=np.zeros(1)),
        _policy=lambda snapshot: float(snapshot.weights["weight"][0]),
    )
    first = snapshots([cloned])[0]
    duel = SimpleNamespace(all_snapshots=lambda: snapshots(others))
    policy, _, kept = Match._chosen(match, (first, judge(cloned)), duel)
    return policy, kept, judge.asked[1:]


def test_the_nearest_by_few_episodes_are_judged_by_more():
    policy, kept, asked = chosen(9.0, [5.0, 4.0, 3.0, 8.0], flattered=(5.0,))
    assert asked[:4] == [(value, 10) for value in (5.0, 4.0, 3.0, 8.0)]
    assert asked[4:] == [(value, 20) for value in (9.0, 5.0, 3.0, 4.0)]
    assert policy == 3.0  # and not what looked nearest at first
    assert kept.paid.shape == (30, 1)


@pytest.mark.parametrize(("other", "wanted"), [(0.9, 1.0), (0.76, 1.0), (0.73, 0.73), (1.5, 1.0)])
def test_cloning_is_kept_unless_another_is_nearer_by_more_than_a_standard_error(other, wanted):
    # Each of the two is judged by thirty episodes of variance one: the standard error is the root of 2/30, 0.258.
    assert chosen(1.0, [other])[0] == pytest.approx(wanted)
