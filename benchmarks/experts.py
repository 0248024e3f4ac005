"""Experts of benchmark environments: rules written by hand, and trained networks kept in `experts/`.

Rules are functions from observations (n, d) to actions. They know the physics, not what any learner uses: no grid, no
planning, nothing learned. The networks are those that ``train_experts.py`` trains with Stable-Baselines3; acting, they
take their best actions. Reading them needs the ``sb3`` extra.

Returns are sums of the environment's own rewards over whole episodes, and the score of a policy is

    (its mean return − the random policy's) / (the expert's − the random policy's).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import lfd_gym as lfd
from lfd_gym.assessment.scores import score
from lfd_gym.datasets import OLDER, installed_id
from lfd_gym.policies.tables import UniformPolicy

Kind = Literal["rule", "sb3"]
Floats = NDArray[np.float64]
Rule = Callable[[NDArray[Any]], NDArray[Any]]

FOLDER = Path(__file__).parent / "experts"


# -- rules ------------------------------------------------------------------------------------------------------------


def cart_pole(observations: NDArray[Any]) -> NDArray[Any]:
    """Push towards the side that the pole falls to; the cart's place and speed count a little, so that it stays."""
    # To come back the cart first goes further out, until the pole leans back: all terms have the same sign.
    leaning = observations @ np.array([0.1, 0.3, 1.0, 0.5])
    return np.where(leaning > 0, 1, 0)


def inverted_pendulum(observations: NDArray[Any]) -> NDArray[Any]:
    """Do what `cart_pole` does with a force in proportion; observed are place, angle and the speeds of both."""
    force = observations @ np.array([1.0, 10.0, 1.0, 2.0])
    return np.asarray(np.clip(force, -3.0, 3.0)[:, None])


def mountain_car(observations: NDArray[Any]) -> NDArray[Any]:
    """Push the way the car moves: every push adds energy."""
    return np.where(observations[:, 1] >= 0, 2, 0)


def mountain_car_continuous(observations: NDArray[Any]) -> NDArray[Any]:
    """Push the way the car moves with half the force: what a push costs is its square, and half is enough."""
    return np.where(observations[:, 1:] >= 0, 0.5, -0.5)


def acrobot(observations: NDArray[Any]) -> NDArray[Any]:
    """Turn the joint the way it turns already: torque times its speed is the power that goes in."""
    return np.where(observations[:, 5] >= 0, 2, 0)


def pendulum(observations: NDArray[Any]) -> NDArray[Any]:
    """Swing up by energy, and balance near the top.

    With θ = 0 at the top, θ̈ = 15 sin θ + 3u. The energy θ̇²/2 + 15 (cos θ − 1) is zero at rest at the top, and a torque
    u changes it at the rate 3uθ̇: with the motion if there is too little, against it if there is too much.
    """
    cos, sin, speed = observations.T.astype(np.float64)
    angle = np.arctan2(sin, cos)
    energy = speed**2 / 2 + 15 * (cos - 1)
    direction = np.where(speed >= 0, 1.0, -1.0)  # at rest as well it must push
    swing_up = np.where(energy < 0, 2.0, -2.0) * direction
    balance = -(10 * angle + 2 * speed)  # 15θ − 3·10θ pulls back, and 3·2θ̇ damps
    return np.clip(np.where(np.abs(angle) < 0.6, balance, swing_up), -2.0, 2.0)[:, None]


def lunar_lander(observations: NDArray[Any]) -> NDArray[Any]:
    """Do what the heuristic in Gymnasium's own source does, without looking at the environment.

    Where to be at this distance from the middle, and how far to lean, is wanted in proportion; what is most wanted is
    done with the engine for it, and nothing once a leg is on the ground but to stop falling.
    """
    x, y, speed_x, speed_y, angle, spin, left, right = observations.T.astype(np.float64)
    lean = np.clip(0.5 * x + speed_x, -0.4, 0.4)
    turn = 0.5 * (lean - angle) - spin
    lift = 0.5 * (0.55 * np.abs(x) - y) - 0.5 * speed_y
    landed = (left > 0) | (right > 0)
    turn, lift = np.where(landed, 0.0, turn), np.where(landed, -0.5 * speed_y, lift)
    main = (lift > np.abs(turn)) & (lift > 0.05)
    return np.where(main, 2, np.where(turn < -0.05, 3, np.where(turn > 0.05, 1, 0)))


RULES: dict[str, Rule] = {
    "CartPole-v1": cart_pole,
    "MountainCar-v0": mountain_car,
    "MountainCarContinuous-v0": mountain_car_continuous,
    "Acrobot-v1": acrobot,
    "Pendulum-v1": pendulum,
    "InvertedPendulum-v5": inverted_pendulum,
}
#: Of tasks that no grid can hold: either a rule or a network.
LANDER_RULES: dict[str, Rule] = {"LunarLander-v3": lunar_lander}
NETWORKS_ALONE = ("InvertedDoublePendulum-v5", "HalfCheetah-v5", "Hopper-v5")


# -- experts and their returns ----------------------------------------------------------------------------------------


def load_expert(env_id: str, kind: Kind) -> lfd.Policy:
    """Return the expert of an environment, by its newest or its older name."""
    known = next((newest for newest, older in OLDER.items() if older == env_id), env_id)
    if not has_expert(known, kind):
        raise ValueError(f"there are experts of {', '.join((*RULES, *LANDER_RULES, *NETWORKS_ALONE))}, got {env_id}")
    if kind == "rule":
        return lfd.as_policy((RULES | LANDER_RULES)[known])
    return lfd.as_policy(lfd.load_policy(FOLDER / f"{known}.npz"), deterministic=True)


def has_expert(env_id: str, kind: Kind) -> bool:
    """Whether there is an expert of this kind."""
    if kind not in ("rule", "sb3"):
        raise ValueError(f"kind must be 'rule' or 'sb3', got {kind!r}")
    return env_id in RULES or env_id in (LANDER_RULES if kind == "rule" else NETWORKS_ALONE)


def episode_returns(env_id: str, policy: lfd.Policy, n_episodes: int = 100, seed: int = 0) -> Floats:
    """Return the sums of rewards of whole episodes."""
    env, rng = gym.make(installed_id(env_id)), np.random.default_rng(seed)
    episodes = lfd.collect(env, policy, n_episodes, rng=rng, n_envs=min(n_episodes, 25))
    totals: list[Any] = [np.asarray(episode.rewards).sum() for episode in episodes]
    return np.array(totals)


@dataclass(frozen=True)
class ReferenceReturns:
    """What the random policy and the expert get in each of some episodes: the ends of the scale of scores."""

    random: Floats
    expert: Floats

    def score(self, mean_return: float) -> float | None:
        """Return 0 for what the random policy gets, and 1 for what the expert gets."""
        return score(mean_return, float(self.expert.mean()), float(self.random.mean()))


def random_and_expert_returns(env_id: str, kind: Kind, n_episodes: int = 100, seed: int = 0) -> ReferenceReturns:
    """Let the random policy and the expert play."""
    uniform = UniformPolicy(gym.make(installed_id(env_id)).action_space)
    return ReferenceReturns(
        random=episode_returns(env_id, uniform, n_episodes, seed),
        expert=episode_returns(env_id, load_expert(env_id, kind), n_episodes, seed),
    )
