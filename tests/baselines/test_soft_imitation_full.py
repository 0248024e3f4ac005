"""SQIL and IQ-Learn, on a slider that is learned in seconds."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from slider import LENGTH, to_the_middle, to_the_middle_by_steps

import lfd_gym as lfd
from lfd_gym.baselines import make_learner
from lfd_gym.baselines.neural.networks import DiscreteNetworks
from lfd_gym.baselines.neural.soft_q import InverseSoftQ, Steps
from lfd_gym.testing import check_learner

ID = "lfd_gym_test/Slider-v0"
SMALL = {"hidden_sizes": (32, 32), "batch_size": 32, "learning_rate": 2e-3}
LEARNERS = {"sqil": 3000, "iq_learn": 5000, "iq_learn_offline": 1500}


def make_task(discrete=False, n_demonstrations=5, env=None):
    env = gym.make(ID, discrete=discrete) if env is None else env
    expert = to_the_middle_by_steps if discrete else to_the_middle
    demos = lfd.collect(env, expert, n_demonstrations, LENGTH, np.random.default_rng(0))
    return lfd.Task(env, demos, discount=0.9)


def learn(name, task, budget, seed=0):
    return lfd.learn(task, make_learner(name, **SMALL), rng=np.random.default_rng(seed), budget=budget)


def mean_return(policy, discrete):
    env = gym.make(ID, discrete=discrete)
    played = lfd.collect(env, policy, 20, LENGTH, np.random.default_rng(9))
    return float(np.mean([np.sum(episode.rewards) for episode in played]))


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
def test_it_comes_near_the_expert(name, discrete):
    task = make_task(discrete)
    result = learn(name, task, LEARNERS[name])
    of_random = mean_return(lfd.policies.tables.UniformPolicy(task.action_space), discrete)
    of_expert = mean_return(to_the_middle_by_steps if discrete else to_the_middle, discrete)
    score = (mean_return(result.policy, discrete) - of_random) / (of_expert - of_random)
    assert score > 0.8
    assert (result.resources.env_steps > 0) == (name != "iq_learn_offline")


@pytest.mark.parametrize("name", LEARNERS)
def test_it_keeps_the_promises_of_a_learner(name):
    check_learner(make_learner(name, **SMALL), make_task(), budget=200)


@pytest.mark.parametrize("name", LEARNERS)
def test_policies_on_the_way_are_offered(name):
    result = learn(name, make_task(), 400)
    afters = [each.after for each in result.checkpoints]
    assert len(afters) == 9
    assert all(40 * k <= after < 40 * (k + 1) for k, after in enumerate(afters, start=1))
    seen = np.linspace(-1, 1, 21, dtype=np.float32)[:, None]
    first, last, final = (
        p.greedy(seen) for p in (result.checkpoints[0].policy, result.checkpoints[-1].policy, result.policy)
    )
    assert not np.array_equal(first, final)
    assert np.abs(last - final).max() < np.abs(first - final).max()


@pytest.mark.parametrize("name", LEARNERS)
def test_logged_data_are_enough_only_for_the_one_that_says_so(name):
    data = lfd.Task(None, make_task().demonstrations, discount=0.9)
    if name == "iq_learn_offline":
        assert isinstance(learn(name, data, 20).policy, lfd.Policy)
    else:
        with pytest.raises(ValueError, match=f"{name} needs"):
            learn(name, data, 200)


@pytest.mark.parametrize("name", LEARNERS)
def test_actions_that_are_neither_numbers_nor_integers_are_refused(name):
    class Many(gym.Env):
        observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        action_space = gym.spaces.MultiDiscrete([2, 2])

        def reset(self, *, seed=None, options=None):
            return np.zeros(1, dtype=np.float32), {}

        def step(self, action):
            return np.zeros(1, dtype=np.float32), 0.0, False, False, {}

    env = gym.wrappers.TimeLimit(Many(), 5)
    demos = lfd.collect(env, lambda seen: np.zeros((len(seen), 2), dtype=int), 1, 5, np.random.default_rng(0))
    with pytest.raises(ValueError, match=rf"{name} cannot learn this task: its actions are MultiDiscrete"):
        learn(name, lfd.Task(env, demos, discount=0.9), 200)


def test_no_reward_is_read():
    for name in ("sqil", "iq_learn"):
        plain = make_task()
        blind = lfd.Task(gym.make(ID, reward=float("nan")), plain.demonstrations, discount=0.9, allow_mismatch=True)
        one, other = (learn(name, task, 300).policy.to_data()[1] for task in (plain, blind))
        assert all(np.array_equal(one[part], other[part]) for part in one)


def test_the_critics_follow_the_gradient_of_the_papers_objective():
    th.manual_seed(0)
    networks = DiscreteNetworks(gym.spaces.Box(-1, 1, (2,), np.float32), gym.spaces.Discrete(3), lambda _: 0.0, [8])
    n, discount, temperature, regularisation = 64, 0.9, 0.5, 0.25
    shown, played = (
        Steps(th.randn(n, 2), th.randint(3, (n, 1)), th.randn(n, 2), (th.rand(n, 1) < 0.3).float()) for _ in range(2)
    )

    networks.critic_target.load_state_dict(
        {name: part + 0.3 * th.randn_like(part) for name, part in networks.critic.state_dict().items()}
    )

    def soft(values):
        return temperature * th.logsumexp(values / temperature, -1)

    def rewards(steps):
        taken = networks.critic(steps.observations)[:, th.arange(n), steps.actions[:, 0]]  # (2, n)
        with th.no_grad():  # by the smaller of slow critics
            after = soft(networks.critic_target(steps.next_observations).amin(0))
        return taken - discount * (1 - steps.dones[:, 0]) * after

    log_likelihood = rewards(shown) - rewards(shown).detach()  # Q alone has a gradient
    log_likelihood = log_likelihood - soft(networks.critic(shown.observations))
    squares = (rewards(shown) ** 2).mean() + (rewards(played) ** 2).mean()
    objective = log_likelihood.mean() - squares / (8 * regularisation)
    parameters = list(networks.critic.parameters())
    wanted = th.autograd.grad(-objective, parameters)

    soft_q = InverseSoftQ(
        networks, discount=discount, learning_rate=1e-3, temperature=temperature, regularisation=regularisation
    )
    found = []
    soft_q.critic_optimizer.register_step_pre_hook(lambda *_: found.extend(part.grad.clone() for part in parameters))
    soft_q.update(shown, played)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        th.testing.assert_close(one, other)
