"""Policies that keep something for an episode: recurrent predictors, mixtures, and the best actions of both."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.policies.mixtures import MixturePolicy
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import GreedyPolicy, UniformPolicy

N_ACTIONS = 97


class Counter:
    """Adds up what it has seen in an episode, as Stable-Baselines3's recurrent policies remember."""

    observation_space = gym.spaces.Discrete(20)
    action_space = gym.spaces.Discrete(N_ACTIONS)

    def __init__(self, shape):
        self.shape, self.starts, self.deterministic = shape, [], []  # of a state: where n is, there is the batch

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        seen = np.atleast_1d(observation)
        if state is None:
            state = (np.zeros([len(seen) if size == "n" else size for size in self.shape]),)
        fresh = np.zeros(len(seen), bool) if episode_start is None else np.asarray(episode_start)
        axis = self.shape.index("n")
        total = np.moveaxis(state[0], axis, -1).copy()
        total = np.where(fresh, 0, total) * 3 + seen
        self.starts.append(fresh)
        self.deterministic.append(deterministic)
        actions = (total.reshape(-1, len(seen))[0] % N_ACTIONS).astype(np.int64)
        return actions.reshape(np.shape(observation)), (np.moveaxis(total, -1, axis),)


def alone(observations):
    """Independent of the package: what a counter does in one episode."""
    totals = [0]
    for seen in observations:
        totals.append(totals[-1] * 3 + seen)
    return [total % N_ACTIONS for total in totals[1:]]


SEEN = np.random.default_rng(0).integers(20, size=(6, 5))  # steps, episodes
WHO = [np.arange(5), np.arange(5), np.array([0, 2, 4]), np.array([2, 4]), np.array([2, 4]), np.array([4])]


def play(actor):
    """Return the actions of each episode."""
    actions = [[] for _ in range(5)]
    for seen, who in zip(SEEN, WHO, strict=True):
        for k, action in zip(who, actor(who, seen[who]), strict=True):
            actions[k].append(int(action))
    return actions


@pytest.mark.parametrize("shape", [("n",), (2, "n", 3), ("n", 4)], ids=str)
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_recurrent_policy_remembers_its_episode_alone(shape, deterministic):
    counter = Counter(shape)
    policy = lfd.as_policy(counter, deterministic=deterministic)
    for _ in range(2):  # the second time it must have forgotten the first
        actions = play(policy.start(5, np.random.default_rng(0)))
        assert actions == [alone(SEEN[: len(own), k]) for k, own in enumerate(actions)]
    assert [starts.all() for starts in counter.starts] == [True, *[False] * 5] * 2
    assert not any(starts.any() for starts in counter.starts[1:6])
    assert set(counter.deterministic) == {deterministic}


def test_an_episode_may_begin_later_than_others():
    actor = lfd.as_policy(Counter((2, "n", 3))).start(2, np.random.default_rng(0))
    assert actor(np.array([1]), np.array([7])).tolist() == [7]
    assert actor(np.array([0, 1]), np.array([5, 1])).tolist() == [5, 22]
    assert actor(np.array([0]), np.array([1])).tolist() == [16]


def test_recurrent_policies_are_refused_where_there_is_no_episode():
    policy = lfd.as_policy(Counter(("n",)))
    for ask in (lambda: policy.sample(SEEN[0], np.random.default_rng(0)), lambda: policy.greedy(SEEN[0])):
        with pytest.raises(ValueError, match=r"Counter is recurrent.*begin episodes with start\(n, rng\)"):
            ask()
    assert not policy.has_probabilities
    with pytest.raises(ValueError, match=r"PredictorPolicy\(Counter\) cannot be saved"):
        policy.to_data()


def test_predict_hands_the_state_back_and_forth():
    for policy in (lfd.as_policy(Counter(("n",))), lfd.as_policy(Counter(("n",)), deterministic=True)):
        first, state = policy.predict(SEEN[0])
        second, state = policy.predict(SEEN[1], state, np.array([False, False, True, False, False]))
        assert first.tolist() == SEEN[0].tolist()
        expected = SEEN[1] + 3 * SEEN[0] * np.array([1, 1, 0, 1, 1])
        assert second.tolist() == (expected % N_ACTIONS).tolist()
        one, _ = policy.predict(3)
        assert one.shape == ()
        assert one == 3


def test_predictors_without_a_state_are_asked_about_running_episodes_only():
    class Plain:
        def __init__(self):
            self.sizes = []

        def predict(self, observation, deterministic=False):
            self.sizes.append(len(observation))
            return observation + 1, None

    class Stateless(Plain):
        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            return super().predict(observation)

    for predictor in (Plain(), Stateless()):
        actions = play(lfd.as_policy(predictor).start(5, np.random.default_rng(0)))
        assert actions == [(SEEN[: len(own), k] + 1).tolist() for k, own in enumerate(actions)]
        assert predictor.sizes == [len(who) for who in WHO]


# -- mixtures ---------------------------------------------------------------------------------------------------------

WEIGHTS = [0.2, 0.3, 0.5]
ALWAYS = [np.eye(3)[[k] * 4] for k in range(3)]  # action k in each of four states


def test_a_mixture_chooses_once_an_episode():
    mixture = MixturePolicy(ALWAYS, WEIGHTS)
    n, seen = 4000, np.zeros(4000, dtype=int)
    actor = mixture.start(n, np.random.default_rng(0))
    first = actor(np.arange(n), seen)
    np.testing.assert_allclose(np.bincount(first) / n, WEIGHTS, atol=4 * np.sqrt(0.25 / n))
    some = np.arange(0, n, 3)
    np.testing.assert_array_equal(actor(some, seen[some]), first[some])
    other = mixture.start(n, np.random.default_rng(1))(np.arange(n), seen)
    assert (first != other).any()


def test_a_mixture_refuses_to_act_outside_of_an_episode():
    mixture, seen = MixturePolicy(ALWAYS, WEIGHTS), np.zeros(2, dtype=int)
    assert not mixture.has_probabilities
    for ask in (
        mixture.greedy,
        lambda seen: mixture.sample(seen, np.random.default_rng(0)),
        GreedyPolicy(mixture).greedy,
    ):
        with pytest.raises(ValueError, match=r"MixturePolicy\(3 policies\) chooses once an episode"):
            ask(seen)
    with pytest.raises(TypeError, match="does not say the probabilities"):
        mixture.probabilities(seen)


@pytest.mark.parametrize("deterministic", [False, True])
def test_predict_keeps_the_choices_until_an_episode_starts(deterministic):
    mixture, n = MixturePolicy(ALWAYS, WEIGHTS), 3000
    seen = np.zeros(n, dtype=int)
    first, state = mixture.predict(seen, None, np.ones(n, dtype=bool), deterministic)
    second, state = mixture.predict(seen, state, np.zeros(n, dtype=bool), deterministic)
    np.testing.assert_array_equal(first, second)
    starts = np.arange(n) < n // 2
    third, state = mixture.predict(seen, state, starts, deterministic)
    np.testing.assert_array_equal(third[~starts], first[~starts])
    agree = sum(weight**2 for weight in WEIGHTS)  # of two independent choices
    assert abs((third[starts] == first[starts]).mean() - agree) < 4 * np.sqrt(0.25 / (n // 2))
    fourth, _ = mixture.predict(seen, state, deterministic=deterministic)  # no word of a start: none
    np.testing.assert_array_equal(fourth, third)


def test_one_observation_is_an_episode_of_its_own():
    mixture = MixturePolicy(ALWAYS, WEIGHTS)
    action, state = mixture.predict(0, episode_start=True)
    assert np.shape(action) == ()
    for _ in range(20):
        again, state = mixture.predict(0, state, False)
        assert again == action


def test_members_may_remember_and_be_mixtures():
    class Never(Counter):
        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            return np.full(np.shape(observation), N_ACTIONS - 1), state

    inner = MixturePolicy([Counter((2, "n", 3)), Never(("n",))], [0.5, 0.5])
    mixture = MixturePolicy([inner, Counter(("n",))], [0.5, 0.5])
    rng = np.random.default_rng(0)
    kinds = []
    for _ in range(40):
        for k, own in enumerate(play(mixture.start(5, rng))):
            kinds.append(own == [N_ACTIONS - 1] * len(own))
            assert kinds[-1] or own == alone(SEEN[: len(own), k])
    assert 20 < sum(kinds) < 80  # a quarter of 200, give or take 5 standard deviations

    state, starts, told = None, np.ones(5, dtype=bool), []
    for seen in SEEN:
        actions, state = mixture.predict(seen, state, starts)
        starts = np.zeros(5, dtype=bool)
        told.append(actions)
    for k, own in enumerate(np.array(told).T.tolist()):
        assert own in ([N_ACTIONS - 1] * 6, alone(SEEN[:, k]))


def test_members_who_take_over_have_forgotten():
    mixture = MixturePolicy([Counter(("n",)), Counter((1, "n", 1))], [0.5, 0.5])
    rng, state = np.random.default_rng(0), None
    expected = np.zeros(5, dtype=int)
    for _ in range(60):
        starts = rng.random(5) < 0.3 if state is not None else np.ones(5, dtype=bool)
        seen = rng.integers(20, size=5)
        expected = np.where(starts, 0, expected) * 3 % N_ACTIONS + seen
        actions, state = mixture.predict(seen, state, starts)
        np.testing.assert_array_equal(actions, expected % N_ACTIONS)


def test_the_best_actions_of_a_mixture():
    noisy = [lfd.noisy_policy(table, 0.9) for table in ALWAYS]
    greedy = lfd.as_policy(MixturePolicy(noisy, WEIGHTS), deterministic=True)
    n, seen = 500, np.zeros(500, dtype=int)
    actor = greedy.start(n, np.random.default_rng(0))
    first = actor(np.arange(n), seen)
    assert set(first.tolist()) == {0, 1, 2}
    np.testing.assert_array_equal(actor(np.arange(n), seen), first)
    told, state = greedy.predict(seen)
    np.testing.assert_array_equal(greedy.predict(seen, state)[0], told)
    greedy.rng, before = np.random.default_rng(5), told
    assert (greedy.predict(seen)[0] != before).any()


def test_mixtures_survive_saving(tmp_path):
    spaces = gym.spaces.Discrete(3), gym.spaces.Discrete(4)
    inner = MixturePolicy([ALWAYS[0], np.full((4, 3), 1 / 3)], [0.5, 0.5])
    mixture = MixturePolicy([inner, UniformPolicy(*spaces), ALWAYS[2]], WEIGHTS)
    mixture.rng = np.random.default_rng(3)
    lfd.save_policy(mixture, tmp_path / "mixture.npz")
    loaded = lfd.load_policy(tmp_path / "mixture.npz")
    assert isinstance(loaded, MixturePolicy)
    np.testing.assert_array_equal(loaded.weights, WEIGHTS)
    assert (loaded.observation_space, loaded.action_space) == (spaces[1], spaces[0])
    assert [type(policy) for policy in loaded.policies] == [type(policy) for policy in mixture.policies]
    seen = np.zeros(200, dtype=int)
    np.testing.assert_array_equal(loaded.predict(seen)[0], mixture.predict(seen)[0])
    actors = [policy.start(200, np.random.default_rng(1)) for policy in (loaded, mixture)]
    for _ in range(3):
        np.testing.assert_array_equal(*(actor(np.arange(200), seen) for actor in actors))
    with pytest.raises(ValueError, match="cannot be saved"):
        lfd.save_policy(MixturePolicy([lambda seen: seen], [1.0]), tmp_path / "other.npz")


def test_mixtures_are_checked():
    with pytest.raises(ValueError, match="weights must sum to 1"):
        MixturePolicy(ALWAYS, [0.2, 0.3, 0.4])
    with pytest.raises(ValueError, match=r"weights must have shape \(3,\), got \(2,\)"):
        MixturePolicy(ALWAYS, [0.5, 0.5])
    with pytest.raises(ValueError, match="policies must act in one space"):
        MixturePolicy([ALWAYS[0], np.ones((4, 1))], [0.5, 0.5])


def test_drawing_within_a_mixture_is_determined_by_the_caller():
    class Draws(Policy):
        def sample(self, observations, rng):
            return rng.normal(size=(len(observations), 2))

        def greedy(self, observations):
            return np.zeros((len(observations), 2))

    mixture = MixturePolicy([Draws(), Draws()], [0.5, 0.5])
    seen, everyone = np.zeros((6, 3)), np.arange(6)
    first, second, other = (mixture.start(6, np.random.default_rng(seed))(everyone, seen) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert (first != other).all()
