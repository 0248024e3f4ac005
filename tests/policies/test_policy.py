"""Policies of every kind: what they draw, say and predict, and their files."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.policies.conversion import FunctionPolicy, policy_table
from lfd_gym.policies.files import KINDS, register_policy_kind
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
    with pytest.raises(ValueError, match="is not the one-hot vector of a state"):
        one_hot.predict(np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="observation 2 is not one of the states 0 to 1"):
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
    with pytest.raises(ValueError, match="no uniformly random policy over Box"):
        UniformPolicy(gym.spaces.Box(-np.inf, np.inf, (1,)))


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
