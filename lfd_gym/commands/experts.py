"""Who acts, as the command line names it: planned, trained, saved, written in Python, or a person."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import tyro

from lfd_gym.demonstrations.environments import outer_observation_space, single_spaces
from lfd_gym.demonstrations.matching import same_values
from lfd_gym.demonstrations.optimal_expert import optimal_policy
from lfd_gym.demonstrations.sb3_expert import Algorithm, load_expert, train_expert
from lfd_gym.envs.env_costs import reward_cost
from lfd_gym.envs.named import import_modules
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.conversion import as_policy
from lfd_gym.policies.experts import noisy_policy, soft_optimal_policy
from lfd_gym.policies.files import load_policy, save_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.validation import FloatArray

_SAVED = "policy:"
_SB3 = "sb3:"
#: A module and something in it; one letter alone before the colon is a drive.
_MODULE_AND_NAME = re.compile(r"(?P<module>[A-Za-z_]\w+(\.\w+)*):(?P<name>[A-Za-z_]\w*)")

#: The flag ``--trust``.
Trust = Annotated[
    bool,
    tyro.conf.arg(
        help="Let Stable-Baselines3 unpickle an sb3: file whose network cannot be read as numbers. That runs whatever "
        "code is in the file, so do it only with files of your own."
    ),
]


@dataclass(frozen=True)
class Acting:
    """Who acts."""

    expert: str | None = None
    """optimal plans in tabular environments and, on a grid, in simulators such as classic control; noisy and soft need
    a table; random; human plays in a window. A .npz, or policy:PATH, is a policy or a run folder of this package,
    sb3:PATH a model of Stable-Baselines3 (PPO, A2C, DQN, SAC, TD3, DDPG), MODULE:NAME a policy or a function of
    observations in a Python module of yours. By default optimal, or whom --train-expert makes; show plays at random, or
    the policy of a run."""
    trust: Trust = False
    discount: float = 0.9
    """What optimal, noisy and soft experts plan with. A reward that is a hundred steps away needs 0.99 or more."""
    epsilon: float = 0.1
    """How often a noisy expert acts at random."""
    temperature: float = 0.1
    """Of a soft expert, in the units of the cost."""
    deterministic: bool = False
    """Take the most probable actions instead of drawing them."""

    def described(self, who: str) -> str:
        """Return who it is, for the file of demonstrations."""
        return who + {"noisy": f" (epsilon={self.epsilon:g})", "soft": f" (temperature={self.temperature:g})"}.get(
            who, ""
        )

    def policy(self, who: str, env: gym.Env[Any, Any], rng: np.random.Generator) -> Policy:
        """Return ``who`` acts; a person is none of this."""
        if who == "random":
            space = single_spaces(env)[1]
            space.seed(int(rng.integers(2**31)))
            return as_policy(lambda observations: np.stack([np.asarray(space.sample()) for _ in observations]))
        if who == "optimal":
            try:
                return optimal_policy(env, self.discount, rng=rng)
            except TypeError as error:
                raise ValueError(f"the expert optimal needs a table or a simulator: {error}") from error
        if who in ("noisy", "soft"):
            return as_policy(self._of_table(who, env))
        if who.isidentifier() and not Path(who).is_dir():
            raise ValueError(
                f"expert must be optimal, noisy, soft, random, human, policy:PATH, sb3:PATH or MODULE:NAME, got {who!r}"
            )
        return named_policy(who, env, self.trust)

    def _of_table(self, who: str, env: gym.Env[Any, Any]) -> FloatArray:
        try:
            mdp, cost = FiniteMDP.from_env(env, self.discount), reward_cost(env)
        except TypeError as error:
            raise ValueError(f"the expert {who} needs a tabular environment: {error}") from error
        if who == "soft":
            return soft_optimal_policy(mdp, cost, self.temperature)
        return noisy_policy(mdp.optimal_policy(cost), self.epsilon)


def check_target(expert: str, force: bool) -> None:
    """Refuse a place where an expert that is to be trained could not be kept."""
    kept = _place(expert)
    if kept.suffix != (".zip" if expert.startswith(_SB3) else ".npz"):
        raise ValueError(
            f"expert must be policy:PATH.npz or sb3:PATH.zip with --train-expert, which keeps it there; got {expert!r}"
        )
    if not kept.parent.is_dir():
        raise FileNotFoundError(f"cannot write {kept}: the folder {kept.parent} does not exist")
    if kept.exists() and not force:
        raise FileExistsError(f"{kept} exists already; --force trains and saves it anew")


def make_expert(env: gym.Env[Any, Any], algorithm: Algorithm, steps: int, seed: int, expert: str, force: bool) -> None:
    """Train an expert on the reward of ``env``, and keep it where ``expert`` says."""
    print(f"training {algorithm} for {steps:,} steps of the environment")
    model = train_expert(env, algorithm, steps, seed)
    kept = _place(expert)
    if expert.startswith(_SB3):
        model.save(kept)
    else:
        save_policy(model, kept, overwrite=force)
    print(f"expert: {kept}")


def _place(expert: str) -> Path:
    return Path(expert.removeprefix(_SB3).removeprefix(_SAVED))


def named_policy(name: str, env: gym.Env[Any, Any] | None, trust: bool) -> Policy:
    """Return the policy of a file (policy:PATH, a .npz, a run folder, sb3:PATH) or of a module (MODULE:NAME)."""
    path = Path(name.removeprefix(_SAVED))
    in_module = _MODULE_AND_NAME.fullmatch(name)
    if name.startswith(_SB3):
        if env is None:
            raise ValueError(f"--env must be given with {name}: the file does not say its environment")
        spaces = outer_observation_space(env), env.action_space
        policy = load_expert(name.removeprefix(_SB3), *spaces, trust=trust)
    elif name.startswith(_SAVED) or path.suffix == ".npz" or path.is_dir():
        policy = load_policy(path / "policy.npz" if path.is_dir() else path)
    elif in_module:
        policy = _policy_of_module(name, in_module["module"], in_module["name"])
    elif path.suffix == ".zip":
        raise ValueError(f"{name} must be given as sb3:{name}, if it is a model of Stable-Baselines3")
    else:
        raise ValueError(f"{name!r} is no policy: give a run folder, a .npz, sb3:PATH or MODULE:NAME")
    if env is not None and policy.action_space is not None:
        taken = single_spaces(env)[1]
        if not same_values(policy.action_space, taken):
            raise ValueError(f"{name} acts in {policy.action_space}, but the environment takes {taken}")
    return policy


def _policy_of_module(given: str, module: str, name: str) -> Policy:
    import_modules([module])
    loaded = sys.modules.get(module) or import_module(module)
    if not hasattr(loaded, name):
        raise ValueError(f"{given}: the module {module} has no {name}")
    found = getattr(loaded, name)
    if isinstance(found, type):
        raise ValueError(f"{given} is a class: name an object of it, or a function of observations")
    try:
        return as_policy(found)
    except TypeError as error:
        raise ValueError(f"{given}: {error}") from error
