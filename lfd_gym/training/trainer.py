"""`PrimalDualTrainer`: learning from demonstrations with guarantees, in the shape of an `imitation` algorithm.

Importing this module imports torch, Stable-Baselines3 and `imitation`.

Episodes of different lengths are sound here, unlike in algorithms that compare undiscounted sums: costs are discounted,
an ended episode stays in an absorbing state of zero cost, and the horizon at which a demonstration was cut enters the
certificate. So `imitation`'s check for a fixed horizon is not made, and its warning about it not given.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.assessment.certificate import Certificate
from lfd_gym.assessment.policy_certificate import certify_policy
from lfd_gym.costs.costs import CostClass, check_cost_class
from lfd_gym.demonstrations.demonstrations import Demonstrations, Episode
from lfd_gym.demonstrations.estimation import FeatureExpectations, Truncation, feature_expectations
from lfd_gym.demonstrations.forms import as_demonstrations
from lfd_gym.demonstrations.rollout_estimates import CostRows
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.features.occupancy_features import TilePolicy
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.tabular_policy import TabularPolicy
from lfd_gym.solvers.saddle.saddle_point import ValueDomain
from lfd_gym.training.trainer_files import read_trained, write_trained
from lfd_gym.training.trainer_solvers import SOLVERS, Apprenticeship, Relaxation, SolverName, Trained, Values
from lfd_gym.validation import FloatArray, discount_factor

try:
    from imitation.algorithms.base import DemonstrationAlgorithm
    from imitation.data.types import Transitions
    from imitation.util.logger import HierarchicalLogger
except ImportError as error:
    raise ImportError("PrimalDualTrainer needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error


class PrimalDualTrainer(DemonstrationAlgorithm[Transitions]):
    """Find the policy that is nearest the expert in the worst cost of the class, and the cost that explains the expert.

    Parameters
    ----------
    demonstrations
        In any form of `lfd_gym.demonstrations.forms.as_demonstrations`; None to set them later.
    env
        The environment. If it has a table of transitions (the gridworlds, FrozenLake, CliffWalking, Taxi), the model is
        known; else it must be one that `lfd_gym.as_generative_model` can put into a state.
    model
        Instead of ``env``: a `FiniteMDP` (known) or a `GenerativeModel` (known only by its draws).
    cost_features
        (S·A, n_c) with entries in [−1, 1], or a function (observations, actions) → (n, n_c); the environment's own if
        not given.
    discount
        γ.
    solver
        ``"cutting_plane"``: exact, on a known model. ``"plug_in"``: exact on a model estimated from draws.
        ``"primal_dual_hybrid"``: first-order steps on the known model. ``"mirror_descent"``: Algorithm 1 of the paper,
        from draws; the only one for spaces that cannot be enumerated. By default the first that will do: an exact one
        over finite spaces unless features are given.
    occupancy_features, value_features
        Φ and Ψ of the saddle-point problem, for ``"mirror_descent"`` and ``"primal_dual_hybrid"``; tabular by default,
        needed over spaces that cannot be enumerated (there Φ must be `TileOccupancyFeatures`).
    value_radius, value_domain
        The domain of the value weights, see `SaddlePointProblem`. By default a box for tabular features, else a ball,
        of a size computed from the model; without a model the box |λ_k| ≤ 1 (√n_c over the ball of costs), which
        suffices for features that do not overlap.
    cost_class
        ``"simplex"`` or ``"ball"``.
    truncation
        What is done about the unseen end of each trajectory, see `feature_expectations`.
    rng
        All randomness: the solver's, and the seed of the policy's.
    custom_logger
        Of `imitation`; to stdout if not given.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> from imitation.util.logger import configure
    >>> rng = np.random.default_rng(0)
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=8)
    >>> mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    >>> expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    >>> demos = lfd.collect(env, expert, n_trajectories=20, horizon=100, rng=rng)
    >>> trainer = lfd.PrimalDualTrainer(
    ...     demonstrations=demos, env=env, discount=0.9, rng=rng, custom_logger=configure(format_strs=[])
    ... )
    >>> trainer.train()
    >>> bool(lfd.evaluate(trainer.policy, mdp, env.unwrapped.cost_features, expert=expert).normalised_score > 0.9)
    True
    """

    def __init__(
        self,
        *,
        demonstrations: Any,
        env: gym.Env[Any, Any] | None = None,
        model: FiniteMDP | GenerativeModel | None = None,
        cost_features: FloatArray | CostRows | None = None,
        discount: float,
        rng: np.random.Generator,
        solver: SolverName | None = None,
        occupancy_features: Any = None,
        value_features: Any = None,
        value_radius: float | None = None,
        value_domain: ValueDomain | None = None,
        cost_class: CostClass = "simplex",
        truncation: Truncation = "paper",
        custom_logger: HierarchicalLogger | None = None,
    ) -> None:
        if (env is None) == (model is None):
            raise ValueError("give either env or model")
        check_cost_class("cost_class", cost_class)
        self.discount = discount_factor("discount", discount)
        self.cost_class = cost_class
        self.truncation = truncation
        self.rng = rng
        self.mdp, self.model = _models(env, model, self.discount)
        self.relaxation = Relaxation(occupancy_features, value_features, value_radius, value_domain)
        if solver is None:
            solver = self._default_solver()
        elif solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(sorted(SOLVERS))}, got {solver!r}")
        if solver in ("cutting_plane", "plug_in") and not self.relaxation.is_default:
            raise ValueError(f"solver {solver!r} takes no features and no value_radius or value_domain: it is exact")
        self.solver: SolverName = solver
        source: Any = self.model if env is None else env
        self.observation_space: gym.Space[Any] = source.observation_space
        self.action_space: gym.Space[Any] = source.action_space
        self.cost_features = _costs(env, cost_features)
        self._trained: Trained | None = None
        self._policy: TabularPolicy | None = None
        self._demonstrations: Demonstrations | None = None
        self._expert: FeatureExpectations | None = None
        super().__init__(demonstrations=demonstrations, custom_logger=custom_logger)

    def _default_solver(self) -> SolverName:
        if not self.relaxation.is_default:
            return "mirror_descent"
        if self.mdp is not None:
            return "cutting_plane"
        return "plug_in" if isinstance(self.model.state_space, gym.spaces.Discrete) else "mirror_descent"

    # -- data ---------------------------------------------------------------------------------------------------------

    def set_demonstrations(self, demonstrations: Any) -> None:
        """Use other demonstrations from now on; what was trained on the old ones is forgotten."""
        given = as_demonstrations(demonstrations, self.observation_space, self.action_space)
        self._demonstrations = _over_states(given)
        self._expert = feature_expectations(
            self._demonstrations, self.cost_features, self.discount, truncation=self.truncation
        )
        self._trained = self._policy = None

    @property
    def expert_features(self) -> FeatureExpectations:
        """The expert's expected costs, estimated from the demonstrations."""
        if self._expert is None:
            raise RuntimeError("there are no demonstrations yet: call set_demonstrations")
        return self._expert

    # -- training -----------------------------------------------------------------------------------------------------

    def train(
        self,
        n_iterations: int | None = None,
        *,
        callback: Callable[[PrimalDualTrainer], None] | None = None,
        progress_bar: bool = True,
    ) -> None:
        """Solve.

        Parameters
        ----------
        n_iterations
            The most iterations of the solver (planner calls, draws or steps); its own limit if not given.
        callback
            Called with this trainer when a policy has been found.
        progress_bar
            Whether to show how far a solver that takes long has come.
        """
        if n_iterations is not None and n_iterations < 1:
            raise ValueError(f"n_iterations must be at least 1, got {n_iterations}")
        problem = Apprenticeship(
            self.cost_features,
            self.expert_features.values,
            self.discount,
            self.model,
            self.mdp,
            self.cost_class,
            self.relaxation,
            progress_bar,
            self._log_residual,
        )
        self._trained = SOLVERS[self.solver](problem, n_iterations, self.rng)
        self._policy = self._as_policy(self._trained.policy)
        self._log(self._trained)
        if callback is not None:
            callback(self)

    def _log_residual(self, iteration: int, residual: float) -> None:
        logger: Any = self.logger
        logger.record(f"{self.solver}/residual", residual)
        logger.record(f"{self.solver}/iterations", iteration)
        logger.dump(step=iteration)

    def _log(self, trained: Trained) -> None:
        logger: Any = self.logger
        for name, value in trained.facts.items():
            logger.record(f"{self.solver}/{name}", value)
        logger.record("oracle_calls", trained.oracle_calls)
        for index, weight in enumerate(trained.cost_weights):
            logger.record(f"cost_weights/{index}", float(weight))
        logger.dump(step=int(trained.facts.get("iterations", 0)))

    def _as_policy(self, found: FloatArray | TilePolicy) -> TabularPolicy:
        space = self.observation_space
        if isinstance(found, TilePolicy):
            return TabularPolicy(space, self.action_space, found.table, self.rng, found.grid)
        n_rows = int(space.n) if isinstance(space, gym.spaces.Discrete) else (space.shape or (0,))[0]
        return TabularPolicy(space, self.action_space, found[:n_rows], self.rng)

    # -- results ------------------------------------------------------------------------------------------------------

    def _found(self) -> Trained:
        if self._trained is None:
            raise RuntimeError("nothing has been trained on these demonstrations yet: call train")
        return self._trained

    @property
    def policy(self) -> TabularPolicy:
        """The apprentice, as a policy of Stable-Baselines3."""
        self._found()
        assert self._policy is not None
        return self._policy

    @property
    def cost_weights(self) -> FloatArray:
        """(n_c,) weights of the cost that explains the expert."""
        return self._found().cost_weights

    @property
    def value_function(self) -> Values:
        """(S,) values of that cost, the absorbing state that `FiniteMDP.from_env` adds last; else a function."""
        return self._found().values

    @property
    def oracle_calls(self) -> int:
        """Draws of the generative model during training."""
        return self._found().oracle_calls

    def save(self, path: str | Path) -> None:
        """Write what was found to one ``.npz`` file without pickled objects."""
        write_trained(path, self._found(), self.policy.rng.bit_generator.state, self.expert_features.values)

    def restore(self, path: str | Path) -> None:
        """Take up what a trainer with the same arguments and demonstrations saved; its policy goes on drawing."""
        trained, generator = read_trained(path, self.expert_features.values, self.relaxation)
        policy = self._as_policy(trained.policy)
        policy.rng.bit_generator.state = generator
        self._trained, self._policy = trained, policy

    def certificate(self, delta: float = 0.05, *, n_rollouts: int = 10_000) -> Certificate:
        """Bound how far the policy can be from the expert, with probability at least 1 − ``delta``.

        Without a known model, ``n_rollouts`` fresh rollouts of the policy are made.
        """
        return certify_policy(
            self._found().policy,
            self.model if self.mdp is None else self.mdp,
            self.cost_features,
            self.expert_features,
            delta=delta,
            cost_class=self.cost_class,
            n_rollouts=n_rollouts,
            rng=self.rng,
        )


def _models(
    env: gym.Env[Any, Any] | None, model: FiniteMDP | GenerativeModel | None, discount: float
) -> tuple[FiniteMDP | None, GenerativeModel]:
    """Return the known model, if there is one, and the simulator."""
    if env is not None:
        source: Any = env.unwrapped
        tabular = any(hasattr(source, table) for table in ("transitions", "P"))
        return (FiniteMDP.from_env(env, discount) if tabular else None), as_generative_model(env)
    if isinstance(model, FiniteMDP):
        if model.discount != discount:
            raise ValueError(f"discount must be that of the model, {model.discount}, got {discount}")
        return model, as_generative_model(model)
    assert model is not None
    return None, model


def _costs(env: gym.Env[Any, Any] | None, cost_features: FloatArray | CostRows | None) -> FloatArray | CostRows:
    if cost_features is None:
        cost_features = getattr(env.unwrapped, "cost_features", None) if env is not None else None
        if cost_features is None:
            raise ValueError("cost_features must be given: the environment has none of its own")
    return cost_features


def _over_states(demonstrations: Demonstrations) -> Demonstrations:
    """Return demonstrations over states instead of their one-hot vectors."""
    space = demonstrations.observation_space
    if not isinstance(space, gym.spaces.Box) or space.shape is None or len(space.shape) != 1:
        return demonstrations
    observations = demonstrations.observations
    if not (((observations == 0) | (observations == 1)).all() and (observations.sum(axis=1) == 1).all()):
        return demonstrations
    episodes = [Episode(episode.observations.argmax(axis=1), *episode[1:]) for episode in demonstrations]
    return Demonstrations.from_episodes(
        episodes,
        gym.spaces.Discrete(space.shape[0]),
        demonstrations.action_space,
        demonstrations.horizon,
        demonstrations.provenance,
    )
