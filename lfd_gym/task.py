"""The one description of what is to be learned, and of how much of the world may be used for it.

| access | what it means | expected costs of a policy are |
|---|---|---|
| ``"model"`` | transition probabilities | exact |
| ``"simulator"`` | put it into a state, step (`GenerativeModel`) | estimated, with an interval |
| ``"episodes"`` | reset and step only | not estimated yet |
| ``"demonstrations"`` | nothing but the data | not known |

Each implies those below it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.costs.costs import CostFunction, Costs, FunctionCosts, TableCosts, as_costs, model_costs
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import (
    CostEstimate,
    Truncation,
    feature_expectations,
    horizon_for,
    sampled_costs,
)
from lfd_gym.demonstrations.forms import as_demonstrations, over_states
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.envs.env_costs import own_costs, true_cost
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.conversion import PolicyLike, as_policy, policy_table
from lfd_gym.validation import FloatArray, discount_factor, finite_array

Access = Literal["model", "simulator", "episodes", "demonstrations"]
#: What a task is about: an environment, or what is known in its place; None: the demonstrations are all there is.
World: TypeAlias = gym.Env[Any, Any] | FiniteMDP | GenerativeModel | None

#: What is left of the discounted sum at the default horizon of rollouts.
_TAIL = 1e-3
_N_ROLLOUTS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """What is to be learned.

    Attributes
    ----------
    env
        The environment, with its time limit; or a `FiniteMDP` or a `GenerativeModel` in its place; None if there are
        demonstrations only.
    demonstrations
        Of the expert, in any form of `lfd_gym.demonstrations.forms.as_demonstrations`. None where a policy is only to
        be judged.
    discount
        γ; that of the MDP if not given.
    costs
        What the expert may care about: an (S·A, n_c) array, a function (observations, actions) → (n, n_c), or any
        `Costs`, which say in which set their weights lie. If not given, those of the environment, see
        `lfd_gym.envs.env_costs.own_costs`; None where it has none.
    true_cost
        What the expert pays: (S·A,), or a function (observations, actions) → (n,). For evaluation only, no learner sees
        it. If not given, minus the reward of a tabular environment, scaled to [−1, 1]. It is kept as `Costs` of one
        column.
    expert
        The expert's policy, for evaluation, and for learners that say that they ask the expert.
    for_learning
        Whether this is what a learner is shown: then there is no true cost, whatever the environment knows.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=5)
    >>> expert = lfd.FiniteMDP.from_env(env, discount=0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    >>> demos = lfd.collect(env, expert, n_trajectories=5, horizon=50, rng=np.random.default_rng(0))
    >>> task = lfd.Task(env, demos, discount=0.9)
    >>> task
    Task(5 trajectories, discount 0.9, access 'model', TableCosts(5 costs, Simplex()))
    >>> task.expected_costs(expert).exact
    True
    """

    env: World
    demonstrations: Any = None
    _: KW_ONLY
    discount: float = None  # type: ignore[assignment]
    costs: Any = None
    true_cost: Any = None
    expert: PolicyLike | None = None
    for_learning: bool = False

    def __post_init__(self) -> None:
        known = self.env.discount if isinstance(self.env, FiniteMDP) else None
        given: float | None = self.discount
        if given is None and known is None:
            raise ValueError("discount must be given")
        discount = discount_factor("discount", known if given is None else given)
        if known is not None and discount != known:
            raise ValueError(f"discount must be that of the mdp, {known}, got {discount}")
        self._set("discount", discount)
        if self.env is None and self.demonstrations is None:
            raise ValueError("demonstrations must be given where there is no env")
        if self.demonstrations is not None:
            self._set("demonstrations", self._checked_demonstrations(self.demonstrations))
        if self.costs is None and isinstance(self.env, gym.Env):
            self._set("costs", own_costs(self.env))
        if self.costs is not None:
            self._set("costs", self._checked_costs("costs", self.costs))
        if self.true_cost is None and isinstance(self.env, gym.Env) and not self.for_learning:
            self._set("true_cost", true_cost(self.env))
        if self.true_cost is not None:
            self._set("true_cost", self._checked_costs("true_cost", _one_column(self.true_cost)))
            if self.true_cost.n_costs not in (None, 1):
                raise ValueError(f"true_cost must be one cost, got {self.true_cost}")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _checked_demonstrations(self, given: Any) -> Demonstrations:
        demonstrations = given
        if not isinstance(given, Demonstrations):
            if self.env is None:
                raise ValueError("demonstrations must be lfd_gym.Demonstrations where there is no env to tell spaces")
            demonstrations = as_demonstrations(given, self.observation_space, self.action_space)
        if len(demonstrations) == 0:
            raise ValueError("demonstrations must hold at least one trajectory")
        in_a_box = isinstance(demonstrations.observation_space, gym.spaces.Box)
        has_states = not isinstance(self.env, gym.Env) or self.dynamics is not None
        return over_states(demonstrations) if in_a_box and has_states else demonstrations

    def _checked_costs(self, name: str, costs: Costs | ArrayLike | CostFunction) -> Costs:
        if self.dynamics is not None:
            return model_costs(name, costs, self.dynamics)
        actions = self.action_space
        found = as_costs(name, costs, int(actions.n) if isinstance(actions, gym.spaces.Discrete) else None)
        states = None if self.env is None else getattr(self._simulator, "state_space", None)
        if isinstance(found, TableCosts) and isinstance(states, gym.spaces.Discrete):
            n_pairs = int(states.n) * found.n_actions
            if len(found.table) not in (
                n_pairs,
                n_pairs - found.n_actions,
            ):  # the end, the last state, may be missing
                raise ValueError(f"{name} must have shape ({n_pairs}, any), got {found.table.shape}")
        return found

    # -- what is known ------------------------------------------------------------------------------------------------

    @property
    def access(self) -> Access:
        """How much of the world may be used."""
        if self.dynamics is not None:
            return "model"
        if self.env is None:
            return "demonstrations"
        return "episodes" if self._simulator is None else "simulator"

    def needs(self, access: Access, who: str) -> None:
        """Refuse ``who``, a learner or a question, if the task does not allow ``access``."""
        if get_args(Access).index(self.access) > get_args(Access).index(access):
            raise ValueError(f"{who} needs access to the {access}, but this task allows {self.access!r} only: {self}")

    @cached_property
    def dynamics(self) -> FiniteDynamics | None:
        """The transition probabilities, where they are known."""
        if isinstance(self.env, FiniteMDP):
            return self.env.dynamics
        known = isinstance(self.env, gym.Env) and FiniteDynamics.known_of(self.env)
        return FiniteDynamics.from_env(self.env) if known else None  # type: ignore[arg-type]

    @cached_property
    def model(self) -> FiniteMDP:
        """The known model; needs access to it."""
        self.needs("model", "the model")
        return FiniteMDP.of(self.dynamics, self.discount)  # type: ignore[arg-type]

    @cached_property
    def _simulator(self) -> GenerativeModel | None:
        try:
            return as_generative_model(self.env)  # type: ignore[arg-type]
        except TypeError:
            return None

    @property
    def simulator(self) -> GenerativeModel:
        """The generative model; needs access to it."""
        self.needs("simulator", "the simulator")
        assert self._simulator is not None
        return self._simulator

    @property
    def observation_space(self) -> gym.Space[Any]:
        """Of single observations."""
        if isinstance(self.env, FiniteMDP):
            return gym.spaces.Discrete(self.env.n_states)
        source: Any = self.demonstrations if self.env is None else self.env
        return source.observation_space  # type: ignore[no-any-return]

    @property
    def action_space(self) -> gym.Space[Any]:
        """Of single actions."""
        if isinstance(self.env, FiniteMDP):
            return gym.spaces.Discrete(self.env.n_actions)
        source: Any = self.demonstrations if self.env is None else self.env
        return source.action_space  # type: ignore[no-any-return]

    @property
    def cost_table(self) -> FloatArray:
        """(S·A, n_c) the costs of finitely many pairs; needs them."""
        if self.costs is None or self.costs.table is None:
            raise ValueError(f"costs must be an (S*A, n_c) array here, got {self.costs}")
        table: FloatArray = self.costs.table
        return table

    @property
    def episode_length(self) -> int:
        """Length of the episodes for learners that play: that of the demonstrations, else the time limit."""
        if self.demonstrations.horizon is not None:
            return int(self.demonstrations.horizon)
        spec = getattr(self.env, "spec", None)
        limit = spec.max_episode_steps if spec is not None else None
        return limit if limit is not None else int(self.demonstrations.lengths.max())

    @property
    def state_positions(self) -> FloatArray | None:
        """(S, d) where the states lie, if the environment's ``state_positions`` say so: states nearby are alike."""
        source = getattr(getattr(self.env, "unwrapped", None), "state_positions", None)
        if source is None:
            return None
        positions = finite_array("env.state_positions", source, (None, None))
        over_them = self.demonstrations.observation_space == gym.spaces.Discrete(len(positions))
        return positions if over_them else None

    # -- expected costs -----------------------------------------------------------------------------------------------

    def expert_features(self, truncation: Truncation = "paper") -> CostEstimate:
        """ρ̂, (n_c,): the expert's expected costs, estimated from the demonstrations; see `feature_expectations`."""
        if self.demonstrations is None:
            raise ValueError("demonstrations must be given: there are none to estimate the expert's costs from")
        if self.costs is None:
            raise ValueError("costs must be given: the environment has none of its own")
        return feature_expectations(self.demonstrations, self.costs, self.discount, truncation=truncation)

    def expected_costs(
        self,
        policy: PolicyLike,
        *,
        rng: np.random.Generator | None = None,
        n_rollouts: int = _N_ROLLOUTS,
        horizon: int | None = None,
        deterministic: bool = False,
        with_true_cost: bool = False,
    ) -> CostEstimate:
        """ρ, (n_c,): the expected costs of ``policy``, exact where the model is known, else from rollouts.

        Parameters
        ----------
        policy
            Anything that `lfd_gym.as_policy` takes.
        rng, n_rollouts, horizon
            For rollouts: what drives them, how many, and their length (until 0.1 % of the discounted weight is left).
        deterministic
            Whether the policy's best actions are taken.
        with_true_cost
            Whether the true cost comes last, as one cost more.
        """
        costs = self._stacked() if with_true_cost else self.costs
        if costs is None:
            raise ValueError("costs must be given: the environment has none of its own")
        if self.access == "model":
            table = policy_table(policy, self.model, deterministic=deterministic)
            return CostEstimate.exactly(costs.table.T @ self.model.occupancy(table).ravel(), self.discount)
        self.needs("simulator", "estimating expected costs")
        if rng is None:
            raise ValueError("rng must be given: the expected costs are estimated by rollouts")
        for count, value in (("n_rollouts", n_rollouts), ("horizon", horizon)):
            if value is not None and value < 1:
                raise ValueError(f"{count} must be at least 1, got {value}")
        for name in ("costs", "true_cost"):
            if getattr(self, name) is not None:
                getattr(self, name).check_ends(name, self.simulator)
        return sampled_costs(
            as_policy(policy, deterministic=deterministic),
            self.simulator,
            costs,
            self.discount,
            n_rollouts=n_rollouts,
            horizon=horizon_for(self.discount, _TAIL) if horizon is None else horizon,
            rng=rng,
        )

    def _stacked(self) -> Any:
        """Return the costs and the true cost side by side, whatever is known of them."""
        parts = [part for part in (self.costs, self.true_cost) if part is not None]
        if all(isinstance(part, TableCosts) for part in parts):
            n_pairs = max(len(part.table) for part in parts)
            tables = [np.pad(part.table, ((0, n_pairs - len(part.table)), (0, 0))) for part in parts]  # the end is free
            return TableCosts(np.hstack(tables), parts[0].n_actions, name="costs")
        return FunctionCosts(lambda seen, done: np.hstack([part.rows(seen, done) for part in parts]))

    def for_learner(self, asks_expert: bool) -> Task:
        """Return what a learner may see: not the true cost, and the expert only if it says that it asks it."""
        hidden = copy(self)  # with the model and the simulator, if they have been built
        hidden._set("for_learning", True)
        hidden._set("true_cost", None)
        hidden._set("expert", self.expert if asks_expert else None)
        return hidden

    def __repr__(self) -> str:
        data = "no demonstrations" if self.demonstrations is None else f"{len(self.demonstrations)} trajectories"
        return f"Task({data}, discount {self.discount:g}, access {self.access!r}, {self.costs or 'no costs'})"


def _one_column(cost: Any) -> Any:
    if isinstance(cost, Costs):
        return cost
    if callable(cost):
        return lambda seen, done: np.reshape(cost(seen, done), (len(seen), 1))
    return np.reshape(np.asarray(cost, dtype=np.float64), (-1, 1))
