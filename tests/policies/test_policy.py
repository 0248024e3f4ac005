"""Policies of every kind: what they draw, say and predict, and their files."""

from collections import OrderedDict
from importlib.util import find_spec

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.files import write_arrays
from lfd_gym.policies.conversion import FunctionPolicy, policy_table
from lfd_gym.policies.files import FORMAT, KINDS, policy_to_data, register_policy_kind
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import GreedyPolicy, TablePolicy, UniformPolicy

TABLE = np.array([[0.1, 0.9], [1.0, 0.0]])
GRID = lfd.features.TileGrid([-1.0, -1.0], [1.0, 1.0], (2, 2))
TILES = lfd.features.TilePolicy(GRID, np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]]))


def test_a_table_is_drawn_from():
    policy = lfd.as_policy(TABLE)
    actions = policy.sample(np.zeros(20_000, dtype=int), np.random.default_rng(0))
    assert abs((actions == 0).mean() - 0.1) < 0.01  # more than 4 standard deviations
    assert policy.greedy(np.array([0, 1])).tolist() == [1, 0]
    assert np.array_equal(np.asarray(policy), TABLE)


def test_predict_takes_one_observation_or_a_batch():
    policy = lfd.as_policy(TABLE)
    assert policy.predict(1)[0] == 0
    assert policy.predict(np.array([0, 1, 1]), deterministic=True)[0].tolist() == [1, 0, 0]
    assert TILES.predict(np.array([-0.5, 0.5]))[0] == 1
    assert TILES.predict(np.array([[-0.5, 0.5]] * 3))[0].tolist() == [1, 1, 1]
    one_hot = TablePolicy(TABLE, gym.spaces.Box(0, 1, (2,)))
    assert one_hot.predict(np.array([0.0, 1.0]))[0] == 0
    with pytest.raises(ValueError, match="must be states or their one-hot vectors"):
        one_hot.predict(np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="observations must be states 0 to 1, got 2"):
        policy.predict(np.array([0, 2]))


def test_predict_draws_with_its_own_generator():
    first, second = (lfd.as_policy(np.full((1, 2), 0.5)) for _ in range(2))
    seen = np.zeros(100, dtype=int)
    assert (first.predict(seen)[0] == second.predict(seen)[0]).all()  # both begin alike
    second.rng = np.random.default_rng(1)
    assert (first.predict(seen)[0] != second.predict(seen)[0]).any()


def test_uniform_policies():
    rng, seen = np.random.default_rng(0), np.zeros((5000, 3))
    discrete = UniformPolicy(gym.spaces.Discrete(3))
    assert np.bincount(discrete.sample(seen, rng)).min() > 1500
    np.testing.assert_array_equal(discrete.probabilities(seen[:2]), np.full((2, 3), 1 / 3))
    box = UniformPolicy(gym.spaces.Box(np.array([-2.0, 0.0]), np.array([0.0, 5.0]), dtype=np.float64))
    drawn = box.sample(seen, rng)
    assert drawn.shape == (5000, 2)
    np.testing.assert_allclose(drawn.mean(axis=0), [-1.0, 2.5], atol=0.1)
    with pytest.raises(TypeError, match="does not say the probabilities"):
        box.probabilities(seen)
    for low, high in ((-np.inf, np.inf), (0.0, np.inf)):
        with pytest.raises(ValueError, match=r"no uniformly random policy over Box.*not bounded"):
            UniformPolicy(gym.spaces.Box(low, high, (1,)))
    with pytest.raises(ValueError, match="action_space must be a Box"):
        UniformPolicy(gym.spaces.Dict({"a": gym.spaces.Discrete(2)}))


@pytest.mark.parametrize(
    ("space", "mean"),
    [
        (gym.spaces.MultiDiscrete([2, 5]), [0.5, 2.0]),
        (gym.spaces.MultiDiscrete([[2, 3], [4, 1]]), [[0.5, 1.0], [1.5, 0.0]]),
        (gym.spaces.MultiBinary(3), [0.5] * 3),
        (gym.spaces.MultiBinary([2, 1]), [[0.5], [0.5]]),
        (gym.spaces.Box(-1, 3, (2, 2), np.float32), [[1.0] * 2] * 2),
        (gym.spaces.Box(0, 4, (2,), np.uint8), [2.0] * 2),
    ],
    ids=str,
)
def test_uniform_policies_over_every_space(tmp_path, space, mean):
    policy = UniformPolicy(space, gym.spaces.Box(-1, 1, (3,)))
    drawn = policy.sample(np.zeros((4000, 3)), np.random.default_rng(0))
    assert all(space.contains(action) for action in drawn)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=4 * 1.5 / np.sqrt(4000))  # no deviation exceeds 1.5
    one, batch = (policy.predict(np.zeros(shape))[0] for shape in ((3,), (5, 3)))
    assert (one.shape, batch.shape) == (space.shape, (5, *space.shape))
    assert not policy.has_probabilities
    lfd.save_policy(policy, tmp_path / "policy.npz")
    loaded = lfd.load_policy(tmp_path / "policy.npz")
    assert (loaded.action_space, loaded.observation_space) == (space, policy.observation_space)
    if not isinstance(space, gym.spaces.Box):
        best = policy.predict(np.zeros((2, 3)), deterministic=True)[0]
        assert best.shape == (2, *space.shape)
        assert not best.any()


# -- observations that are made of parts ------------------------------------------------------------------------------


def test_predict_takes_what_a_tuple_environment_shows():
    env = gym.make("Blackjack-v1")
    policy = lfd.as_policy(lambda seen: (seen @ np.arange(seen.shape[1])).astype(int))
    policy.take_observations_of(env.observation_space)
    assert policy.observation_space.shape == (32 + 11 + 2,)
    value = 12 + (32 + 4) + (32 + 11 + 1)  # where the ones of the flat observation are
    assert policy.predict((12, 4, 1))[0] == value
    assert policy.predict((np.array([12, 12]), np.array([4, 4]), np.array([1, 0])))[0].tolist() == [value, value - 1]
    seen, _ = env.reset(seed=0)
    flat = gym.spaces.flatten(env.observation_space, seen)
    assert policy.predict(seen)[0] == policy.predict(flat)[0] == policy.predict(flat[None])[0][0]


PARTS = OrderedDict(
    speed=gym.spaces.Box(-1, 1, (2,), np.float32),
    goal=gym.spaces.Discrete(3),
    more=gym.spaces.Tuple([gym.spaces.MultiBinary(2), gym.spaces.Dict({"z": gym.spaces.MultiDiscrete([2, 3])})]),
)


def test_predictors_over_parts_are_shown_the_parts():
    class Looks:
        observation_space = gym.spaces.Dict(PARTS)
        action_space = gym.spaces.Discrete(3)

        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            assert set(observation) == set(PARTS)
            return observation["goal"], state

    policy = lfd.as_policy(Looks())
    policy.outer_observation_space.seed(0)
    seen = [policy.outer_observation_space.sample() for _ in range(6)]
    goals = [int(part["goal"]) for part in seen]
    flat = np.stack([gym.spaces.flatten(policy.outer_observation_space, part) for part in seen])
    assert policy.observation_space.shape == flat.shape[1:]
    assert policy.greedy(flat).tolist() == goals
    assert policy.start(6, np.random.default_rng(0))(np.arange(6), flat).tolist() == goals
    assert policy.predict(flat)[0].tolist() == goals  # inside and outside are both understood
    assert policy.predict(flat[0])[0] == policy.predict(seen[0])[0] == goals[0]


def test_the_best_actions_are_told_of_the_parts_too():
    env = gym.make("Blackjack-v1")
    flat = gym.spaces.flatten_space(env.observation_space)
    policy = lfd.as_policy(UniformPolicy(env.action_space, flat), deterministic=True)
    assert policy.predict(np.zeros(flat.shape))[0] == 0
    with pytest.raises(ValueError, match="observation must be of Box"):
        policy.predict((12, 4, 1))
    policy.take_observations_of(env.observation_space)
    assert policy.predict((12, 4, 1))[0] == 0
    assert policy.policy.outer_observation_space is None  # the policy itself may be shown to others


def test_files_keep_spaces_made_of_parts_in_their_order(tmp_path):
    policy = UniformPolicy(gym.spaces.Discrete(2), gym.spaces.Dict(PARTS))
    lfd.save_policy(policy, tmp_path / "policy.npz")
    loaded = lfd.load_policy(tmp_path / "policy.npz")
    assert loaded.outer_observation_space == gym.spaces.Dict(PARTS)
    assert list(loaded.outer_observation_space.spaces) == list(PARTS)
    assert loaded.observation_space == policy.observation_space
    element = policy.outer_observation_space.sample()
    np.testing.assert_array_equal(*(gym.spaces.flatten(p.outer_observation_space, element) for p in (loaded, policy)))


def test_other_spaces_are_refused_with_both_named():
    policy = UniformPolicy(gym.spaces.Discrete(2), gym.spaces.Dict(PARTS))
    with pytest.raises(ValueError, match=r"observation must be of Dict\('speed'.* got shape \(3,\)"):
        policy.predict(np.zeros(3))


@pytest.mark.parametrize("policy", [lfd.as_policy(TABLE), TILES, UniformPolicy(gym.spaces.Discrete(2))], ids=repr)
def test_files_keep_policies_bit_by_bit(tmp_path, policy):
    policy.rng = np.random.default_rng(5)
    lfd.save_policy(policy, tmp_path / "policy.npz")
    loaded = lfd.load_policy(tmp_path / "policy.npz")
    assert type(loaded) is type(policy)
    assert (loaded.observation_space, loaded.action_space) == (policy.observation_space, policy.action_space)
    seen = np.array([[-0.5, 0.5]] * 50) if policy is TILES else np.zeros(50, dtype=int)
    np.testing.assert_array_equal(policy.predict(seen)[0], loaded.predict(seen)[0])
    np.testing.assert_array_equal(policy.probabilities(seen), loaded.probabilities(seen))


def test_files_refuse_what_is_no_policy(tmp_path):
    with pytest.raises(ValueError, match=r"path must end in \.npz"):
        lfd.save_policy(TABLE, tmp_path / "policy.zip")
    with pytest.raises(ValueError, match="cannot be saved"):
        lfd.save_policy(lambda seen: seen, tmp_path / "policy.npz")
    assert list(tmp_path.iterdir()) == []
    lfd.save_policy(TABLE, tmp_path / "policy.npz")
    with pytest.raises(FileExistsError):
        lfd.save_policy(TABLE, tmp_path / "policy.npz")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        lfd.load_policy(tmp_path / "nothing.npz")
    content = (tmp_path / "policy.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[:-30])
    np.savez(tmp_path / "arrays.npz", table=TABLE)
    np.savez(tmp_path / "objects.npz", description=np.array([{}], dtype=object))
    for name in ("cut", "arrays", "objects"):
        with pytest.raises(ValueError, match=f"{name}.npz is not a policy saved by lfd_gym"):
            lfd.load_policy(tmp_path / f"{name}.npz")


def test_a_kind_of_ones_own(tmp_path, monkeypatch):
    class Always(Policy):
        kind = "always"

        def __init__(self, action):
            self.action = action

        def sample(self, observations, rng):
            return np.full(len(observations), self.action)

        def greedy(self, observations):
            return np.full(len(observations), self.action)

        def to_data(self):
            return {"action": self.action}, {}

        @classmethod
        def from_data(cls, data, arrays):
            return cls(data["action"])

    monkeypatch.setattr("lfd_gym.policies.files.KINDS", dict(KINDS))
    register_policy_kind(Always)
    with pytest.raises(ValueError, match="kind must be a new name, got 'always'"):
        register_policy_kind(Always)
    lfd.save_policy(Always(3), tmp_path / "policy.npz")
    assert lfd.load_policy(tmp_path / "policy.npz").predict(np.zeros(2))[0].tolist() == [3, 3]


def test_what_is_taken_for_a_policy():
    class Stated:
        def probabilities(self, observations):
            return np.tile([0.25, 0.75], (len(observations), 1))

    mdp = lfd.FiniteMDP(np.full((2, 2, 2), 0.5), [0.5, 0.5], discount=0.5)
    np.testing.assert_array_equal(policy_table(Stated(), mdp), [[0.25, 0.75]] * 2)
    np.testing.assert_array_equal(policy_table(Stated(), mdp, deterministic=True), [[0.0, 1.0]] * 2)
    assert isinstance(lfd.as_policy(lambda seen: seen), FunctionPolicy)
    greedy = lfd.as_policy(TABLE, deterministic=True)
    assert isinstance(greedy, GreedyPolicy)
    assert lfd.as_policy(greedy, deterministic=True) is greedy
    with pytest.raises(TypeError, match=r"policy must be an .* got int"):
        lfd.as_policy(3)
    with pytest.raises(ValueError, match="does not say its action"):
        policy_table(lambda seen: seen, mdp)
    with pytest.raises(ValueError, match=r"policy must be an \(S, A\) array"):
        lfd.as_policy(np.ones(3))


def test_the_row_of_an_absorbing_state_may_be_left_out():
    ends = lfd.FiniteMDP(np.array([[[0.0, 1.0]], [[0.0, 1.0]]]), [1.0, 0.0], 0.9, absorbing_state=1)
    np.testing.assert_array_equal(policy_table(np.ones((1, 1)), ends), np.ones((2, 1)))


def test_tables_of_another_size_are_refused():
    mdp = lfd.FiniteMDP(np.full((2, 2, 2), 0.5), [0.5, 0.5], discount=0.5)
    for deterministic in (False, True):
        with pytest.raises(ValueError, match=r"policy must have shape \(2, 2\), got \(3, 2\)"):
            policy_table(np.full((3, 2), 0.5), mdp, deterministic=deterministic)
    np.testing.assert_array_equal(policy_table(lfd.as_policy(TABLE, deterministic=True), mdp), [[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("policy", "observation"),
    [(TablePolicy(TABLE), np.array([0.0, 1.0])), (TILES, np.zeros(3)), (TILES, np.zeros((2, 2, 2))), (TILES, 1.0)],
)
def test_observations_of_another_space_are_refused(policy, observation):
    with pytest.raises(ValueError, match="observation must be of"):
        policy.predict(observation)


def test_a_generator_that_files_cannot_keep_is_refused(tmp_path):
    policy = lfd.as_policy(TABLE)
    policy.rng = np.random.Generator(np.random.MT19937(0))
    with pytest.raises(ValueError, match=r"policy\.rng must be one of np\.random\.default_rng"):
        lfd.save_policy(policy, tmp_path / "policy.npz")


@pytest.mark.skipif(find_spec("stable_baselines3") is not None, reason="for installations without the extra")
def test_without_the_extra_a_network_says_what_to_install(tmp_path):
    policy = UniformPolicy(gym.spaces.Discrete(2), gym.spaces.Discrete(3))
    data, arrays = policy_to_data(policy)
    data |= {"format": FORMAT, "kind": "network", "nested": False, "architecture": {}}
    write_arrays(tmp_path / "network.npz", data, arrays)
    with pytest.raises(ImportError, match=r"pip install 'lfd-gym\[sb3\]'"):
        lfd.load_policy(tmp_path / "network.npz")


def test_what_is_no_policy_is_told_in_plain_words():
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(0)

    class Model:
        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            return np.zeros(len(observation), int), None

    lfd.collect(env, Model(), 1, 3, rng)
    with pytest.raises(ValueError, match=r"got a pair, as `predict` .*: pass the model itself"):
        lfd.collect(env, Model().predict, 1, 3, rng)
    with pytest.raises(ValueError, match="one for each of the 1 observations that it is given at once"):
        lfd.collect(env, lambda seen: 0, 1, 3, rng)
    with pytest.raises(TypeError, match="got the class Model"):
        lfd.collect(env, Model, 1, 3, rng)
    with pytest.raises(TypeError, match=r"an object with `probabilities` or one with `predict`, .* got 'ppo.zip'"):
        lfd.collect(env, "ppo.zip", 1, 3, rng)


def test_a_vector_of_actions_is_told_how_to_become_a_table():
    with pytest.raises(
        ValueError, match=r"must be an \(S, A\) array, got shape \(3,\); .*np.eye\(n_actions\)\[actions\]"
    ):
        lfd.as_policy(np.array([0, 1, 1]))


def test_a_policy_that_remembers_has_no_table():
    """What it did when it was asked is not what it does: a certificate by the model would be of another policy."""

    class Counts:
        def __init__(self):
            self.asked = 0

        def predict(self, observation, deterministic=False):
            self.asked += 1
            return np.full(len(observation), self.asked % 2), None

    class Draws:
        rng = np.random.default_rng(0)

        def probabilities(self, observations):
            return self.rng.dirichlet(np.ones(2), len(observations))

    class Steady:
        def predict(self, observation, deterministic=False):
            return np.asarray(observation) % 2, None

    mdp = lfd.FiniteMDP(np.full((6, 3), 1 / 3), np.full(3, 1 / 3), 0.9)
    for policy, best in ((Counts(), True), (Draws(), False), (Draws(), True)):
        with pytest.raises(ValueError, match="was asked twice and does not do the same in state"):
            policy_table(policy, mdp, deterministic=best)
    np.testing.assert_array_equal(policy_table(Steady(), mdp, deterministic=True), np.eye(2)[[0, 1, 0]])
