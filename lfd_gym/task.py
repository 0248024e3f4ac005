"""The one description of what is to be learned, and of how much of the world may be used for it.

| access | what it means | expected costs of a policy are |
|---|---|---|
| ``"model"`` | transition probabilities | exact |
| ``"simulator"`` | put it into a state, step (`GenerativeModel`) | estimated, with an interval |
| ``"episodes"`` | reset and step only | estimated, with an interval |
| ``"demonstrations"`` | nothing but the data | not known |

Each implies those below it, and each is said of the environment as it was given, wrappers included.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.arguments import check_fields, checked
from lfd_gym.costs.costs import (
    CostFunction,
    Costs,
    FunctionCosts,
    TableCosts,
    as_costs,
    model_costs,
    normalise_costs,
)
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.environments import cut_by_limits_alone, is_environment, single_spaces, time_limit
from lfd_gym.demonstrations.estimation import CostEstimate, Truncation, feature_expectations
from lfd_gym.demonstrations.forms import as_demonstrations, over_states
from lfd_gym.demonstrations.generic_costs import generic_costs
from lfd_gym.demonstrations.matching import check_held_out, check_provenance, check_spaces
from lfd_gym.demonstrations.pieces import in_pieces, rollouts
from lfd_gym.demonstrations.rollout_costs import Returns
from lfd_gym.demonstrations.soundness import check_known, doubts
from lfd_gym.engines import Engine
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.envs.env_costs import own_costs, reward_cost, true_cost
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.generative_model import (
    GenerativeModel,
    TabularModel,
    check_batches,
    check_generator,
    what_is_lacking,
)
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.conversion import PolicyLike, as_policy, policy_table
from lfd_gym.policies.mixtures import MixturePolicy
from lfd_gym.validation import FloatArray, LfdGymWarning, finite_array

Access = Literal["model", "simulator", "episodes", "demonstrations"]
#: What a task is about: an environment, or what is known in its place; None: the demonstrations are all there is.
World: TypeAlias = gym.Env[Any, Any] | gym.vector.VectorEnv | FiniteMDP | GenerativeModel | Any

#: What the solution of a linear system leaves open of an occupancy, in the 1-norm; costs are at most one.
_OCCUPANCY_ERROR = 1e-10
#: What is left of the discounted sum at the default horizon of rollouts.
_TAIL = 1e-3
#: How many steps are played for an estimate, if the number of rollouts is not given: as many episodes as that allows,
#: within these limits.
_STEPS = 50_000
_FEWEST, _MOST = 50, 1000


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """What is to be learned.

    Attributes
    ----------
    env
        The environment, with its wrappers and its time limit; a vector environment of Gymnasium or a `VecEnv` of
        Stable-Baselines3; a `FiniteMDP` or a `GenerativeModel` in its place; None if there are demonstrations only.
    demonstrations
        Of the expert, in any form of `lfd_gym.demonstrations.forms.as_demonstrations`. None where a policy is only to
        be judged.
    discount
        γ; that of the MDP if not given. `lfd_gym.suggest_discount` finds one that fits demonstrations.
    horizon
        Only the first so many steps count, see `Criterion`; the discount may then be 1. None: the paper's discounted
        sum without end.
    costs
        What the expert may care about: an (S·A, n_c) array, a function (observations, actions) → (n, n_c), or any
        `Costs`, which say in which set their weights lie. If not given, those of the environment, see
        `lfd_gym.envs.env_costs.own_costs`; where it has none, `FourierCosts` chosen from the demonstrations and from
        random play: around them with a simulator whose states observations tell, else a few episodes.
    true_cost
        What the expert pays: (S·A,), or a function (observations, actions) → (n,). For evaluation only, no learner sees
        it. If not given, minus the reward of a tabular environment, scaled to [−1, 1]. It is kept as `Costs` of one
        column.
    expert
        The expert's policy, for evaluation, and for learners that say that they ask the expert.
    extra_transitions
        `Demonstrations` of anybody else, good or bad, for learners that can use them.
    allow_mismatch
        Whether demonstrations may come from another environment than ``env``, as far as both say where they come from.
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

    #: What is said where something else was passed for one.
    how_made: ClassVar[str] = "a lfd_gym.Task(env, demonstrations, ...)"

    env: World
    demonstrations: Any = None
    _: KW_ONLY
    discount: float = None  # type: ignore[assignment]
    horizon: int | None = None
    costs: Any = None
    true_cost: Any = None
    expert: PolicyLike | None = None
    extra_transitions: Demonstrations | None = None
    allow_mismatch: bool = False
    for_learning: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        known = self.env.discount if isinstance(self.env, FiniteMDP) else None
        given: Any = known if self.discount is None else self.discount
        if given is None:
            raise ValueError("discount must be given; lfd_gym.suggest_discount finds one that fits demonstrations")
        discount = Criterion(given, self.horizon).discount
        if known is not None and discount != known:
            raise ValueError(f"discount must be that of the mdp, {known}, got {discount}")
        self._set("discount", discount)
        # Environments first: to ask a wrapper of Gymnasium 0.29 for the methods of a model draws warnings.
        known_kind = is_environment(self.env) or isinstance(self.env, FiniteMDP | GenerativeModel)
        if isinstance(self.env, type) or not (self.env is None or known_kind):
            raise TypeError(
                "env must be a Gymnasium environment, as gymnasium.make makes from a name, a vector environment of "
                "Gymnasium or Stable-Baselines3, a FiniteMDP, a GenerativeModel, or None, got "
                f"{what_is_lacking(self.env)}"
            )
        if not is_environment(self.env) and isinstance(self.env, GenerativeModel):
            check_batches("env", self.env)
        if isinstance(self.expert, float | np.ndarray) and not (np.asarray(self.expert) == self.expert).all():
            raise ValueError("expert must be a policy, got an array with NaN")
        if self.env is None and self.demonstrations is None:
            raise ValueError("demonstrations must be given where there is no env")
        if self.demonstrations is not None:
            self._set("demonstrations", self._checked_demonstrations("demonstrations", self.demonstrations))
        if self.extra_transitions is not None:
            self._set("extra_transitions", self._checked_demonstrations("extra_transitions", self.extra_transitions))
        if self.costs is None:
            self._set("costs", self._default_costs())
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

    def _checked_demonstrations(self, name: str, given: Any) -> Demonstrations:
        demonstrations: Demonstrations = given
        if not isinstance(given, Demonstrations):
            if self.env is None:
                raise ValueError(f"{name} must be lfd_gym.Demonstrations where there is no env to tell spaces")
            spaces = self.observation_space, self.action_space
            demonstrations = as_demonstrations(given, *spaces, horizon=self.time_limit)
        if len(demonstrations) == 0:
            raise ValueError(f"{name} must hold at least one trajectory")
        check_known(name, demonstrations)
        check_provenance(demonstrations, self.env, allow_mismatch=self.allow_mismatch)
        in_a_box = isinstance(demonstrations.observation_space, gym.spaces.Box)
        if in_a_box and (self.dynamics is not None or isinstance(self._simulator, TabularModel)):
            demonstrations = over_states(demonstrations)
        self._check_fit(name, demonstrations)
        return demonstrations

    def _check_fit(self, name: str, demonstrations: Demonstrations) -> None:
        """Refuse demonstrations that cannot be of this environment."""
        if self.dynamics is not None:
            observations: gym.Space[Any] = gym.spaces.Discrete(self.dynamics.n_states)
        elif self.env is not None:
            observations = self.observation_space
        else:
            return
        check_spaces(demonstrations, observations, self.action_space)
        never_ends = getattr(self._simulator, "never_ends", False)
        if self.dynamics is not None:
            never_ends = self.dynamics.absorbing_state is None
        if never_ends and demonstrations.terminated.any():
            k = int(demonstrations.terminated.argmax())
            raise ValueError(
                f"{name}: trajectory {k} is marked as terminated, but this environment never ends: whatever came after "
                "would count as free. If a time limit cut it, it is truncated"
            )
        if self.allow_mismatch:  # where they come from, ends and bounds may be others
            return
        for doubt in doubts(demonstrations, self.action_space, self.time_limit, self._simulator):
            warnings.warn(f"{name}: {doubt}", LfdGymWarning, stacklevel=5)

    def _default_costs(self) -> Any:
        own = own_costs(self.env) if isinstance(self.env, gym.Env) else None
        finite = self.dynamics is not None or isinstance(self._simulator, TabularModel)
        if own is not None or finite or self.demonstrations is None:
            return own
        return generic_costs(self.env, self.demonstrations, self._simulator, self.observation_space, self.action_space)

    def _checked_costs(self, name: str, costs: Costs | ArrayLike | CostFunction) -> Costs:
        if self.dynamics is not None:
            return model_costs(name, costs, self.dynamics)
        actions = self.action_space
        found = as_costs(name, costs, int(actions.n) if isinstance(actions, gym.spaces.Discrete) else None)
        states = getattr(self._simulator, "state_space", None)
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
    def criterion(self) -> Criterion:
        """How costs add up."""
        return Criterion(self.discount, self.horizon)

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
            refused = f"{who} needs access to the {access}, but this task allows {self.access!r} only: {self}"
            why = self._simulator_or_reason
            raise ValueError(f"{refused}; {why}" if isinstance(why, str) and why else refused)

    @cached_property
    def dynamics(self) -> FiniteDynamics | None:
        """The transition probabilities, where they are known."""
        if isinstance(self.env, FiniteMDP):
            return self.env.dynamics
        known = isinstance(self.env, gym.Env) and FiniteDynamics.known_of(self.env)
        return FiniteDynamics.from_env(self.env) if known else None  # type: ignore[arg-type]

    @cached_property
    def model(self) -> FiniteMDP:
        """The known model, with the task's discount; needs access to it."""
        self.needs("model", "the model")
        if self.discount == 1:
            raise ValueError("discount must be below 1 for the discounted problem, got 1: it is for a horizon only")
        return FiniteMDP.of(self.dynamics, self.discount)  # type: ignore[arg-type]

    @cached_property
    def _simulator_or_reason(self) -> GenerativeModel | str:
        """The generative model, or why there is none."""
        if self.env is None:
            return ""
        try:
            return as_generative_model(self.env)
        except TypeError as error:
            return str(error)

    @property
    def _simulator(self) -> GenerativeModel | None:
        found = self._simulator_or_reason
        return None if isinstance(found, str) else found

    @property
    def simulator(self) -> GenerativeModel:
        """The generative model; needs access to it."""
        self.needs("simulator", "the simulator")
        assert self._simulator is not None
        return self._simulator

    @property
    def observation_space(self) -> gym.Space[Any]:
        """Of single observations, as arrays: `Dict` and `Tuple` are flattened."""
        return self._spaces[0]

    @property
    def action_space(self) -> gym.Space[Any]:
        """Of single actions, as arrays."""
        return self._spaces[1]

    @cached_property
    def _spaces(self) -> tuple[gym.Space[Any], gym.Space[Any]]:
        if isinstance(self.env, FiniteMDP):
            return gym.spaces.Discrete(self.env.n_states), gym.spaces.Discrete(self.env.n_actions)
        if is_environment(self.env):
            return single_spaces(self.env)
        source: Any = self.demonstrations if self.env is None else self.env
        return source.observation_space, source.action_space

    @property
    def time_limit(self) -> int | None:
        """After how many steps the environment cuts its episodes, if it does."""
        return time_limit(self.env) if is_environment(self.env) else None

    @property
    def cost_table(self) -> FloatArray:
        """(S·A, n_c) the costs of finitely many pairs; needs them."""
        if self.costs is None or self.costs.table is None:
            raise ValueError(f"costs must be an (S*A, n_c) array here, got {self.costs}")
        table: FloatArray = self.costs.table
        return table

    @property
    def episode_length(self) -> int:
        """Length of the episodes for learners that play: the horizon, that of the demonstrations, or the time limit."""
        if self.horizon is not None:
            return self.horizon
        if self.demonstrations.horizon is not None:
            return int(self.demonstrations.horizon)
        limit = self.time_limit
        return limit if limit is not None else int(self.demonstrations.lengths.max())

    @property
    def state_positions(self) -> FloatArray | None:
        """(S, d) where the states lie, if the environment's ``state_positions`` say so: states nearby are alike."""
        source = getattr(getattr(self.env, "unwrapped", None), "state_positions", None)
        if source is None or self.dynamics is None:
            return None
        positions = finite_array("env.state_positions", source, (None, None))
        over_them = self.demonstrations.observation_space == gym.spaces.Discrete(len(positions))
        return positions if over_them else None

    @property
    def reward_scale(self) -> float | None:
        """What a unit of the true cost is worth in the environment's reward, where it follows from a table of these."""
        if not (isinstance(self.env, gym.Env) and self.dynamics is not None and self.true_cost is not None):
            return None
        if true_cost(self.env) is None:
            return None
        cost = reward_cost(self.env)
        same = np.array_equal(normalise_costs(cost), self.true_cost.table[:, 0])
        return max(1.0, float(np.abs(cost).max())) if same else None

    def held_out(self, demonstrations: Any) -> Demonstrations:
        """Return other demonstrations of the same expert, checked; those of the task are refused."""
        found = self._checked_demonstrations("held_out", demonstrations)
        if self.demonstrations is not None:
            check_held_out(found, self.demonstrations)
        return found

    # -- expected costs -----------------------------------------------------------------------------------------------

    @checked
    def expert_features(self, truncation: Truncation = "paper", held_out: Demonstrations | None = None) -> CostEstimate:
        """ρ̂, (n_c,): the expert's expected costs, estimated from the demonstrations; see `feature_expectations`.

        ``held_out`` are other demonstrations of the same expert to estimate them from.
        """
        if held_out is not None:
            source = self.held_out(held_out)
        elif self.demonstrations is None:
            raise ValueError("demonstrations must be given: there are none to estimate the expert's costs from")
        else:
            source = self.demonstrations
        if self.costs is None:
            raise ValueError("costs must be given: the environment has none of its own")
        settings: dict[str, Any] = {"horizon": self.horizon, "truncation": truncation}
        found = feature_expectations(source, self.costs, self.discount, **settings)
        cut_by_itself = is_environment(self.env) and not cut_by_limits_alone(self.env)
        return replace(found, cut_elsewhere=self.env is None or cut_by_itself)

    @checked
    def expected_costs(
        self,
        policy: PolicyLike,
        *,
        rng: np.random.Generator | None = None,
        n_rollouts: int | None = None,
        horizon: int | None = None,
        deterministic: bool = False,
        with_true_cost: bool = False,
        engine: Engine | None = None,
    ) -> CostEstimate:
        """ρ, (n_c,): the expected costs of ``policy``, exact where the model is known, else from rollouts.

        Parameters
        ----------
        policy
            Anything that `lfd_gym.as_policy` takes.
        rng, n_rollouts, horizon
            For rollouts: what drives them; how many (1000, fewer where they are long); and their length (until 0.1 % of
            the discounted weight is left).
        deterministic
            Whether the policy's best actions are taken.
        with_true_cost
            Whether the true cost comes last, as one cost more.
        engine
            Spreads rollouts over workers, see `assess`.
        """
        return self.assess(
            policy,
            rng=rng,
            n_rollouts=n_rollouts,
            horizon=horizon,
            deterministic=deterministic,
            with_true_cost=with_true_cost,
            whole_episodes=False,
            engine=engine,
        )[0]

    @checked
    def assess(
        self,
        policy: PolicyLike,
        *,
        rng: np.random.Generator | None = None,
        n_rollouts: int | None = None,
        horizon: int | None = None,
        deterministic: bool = False,
        with_true_cost: bool = False,
        whole_episodes: bool = True,
        engine: Engine | None = None,
    ) -> tuple[CostEstimate, Returns | None]:
        """Return `expected_costs`, and what the policy gained where episodes of the environment were played for them.

        Episodes serve as long as the environment does not cut them before they are long enough; if it does and there
        is a simulator, that goes on instead. They are played to their end, for the sake of the returns, or, if these
        need not be of ``whole_episodes``, as far as costs count.

        With an ``engine`` (`lfd_gym.engines`) they are played by its workers, in copies of the environment and the
        policy. What is found depends on ``rng`` and not on the workers; it is not what is found without an engine.
        """
        costs = self._stacked() if with_true_cost else self.costs
        if costs is None:
            raise ValueError("costs must be given: the environment has none of its own")
        if self.dynamics is not None:
            values, error = self._exact_costs(policy, costs.table, deterministic)
            return CostEstimate.exactly(values, self.criterion, error), None
        self.needs("episodes", "estimating expected costs")
        if rng is None:
            raise ValueError("rng must be given: the expected costs are estimated by rollouts")
        check_generator("rng", rng)
        for count, value in (("n_rollouts", n_rollouts), ("horizon", horizon)):
            if value is not None and value < 1:
                raise ValueError(f"{count} must be at least 1, got {value}")
        acting = as_policy(policy, deterministic=deterministic)
        steps = self.criterion.steps(_TAIL) if horizon is None else horizon
        limit = self.time_limit if is_environment(self.env) else None
        source = self.env
        if is_environment(source) and (self._simulator is None or (limit or steps) >= steps):
            if horizon is None and whole_episodes:
                steps = max(steps, limit or 0)
        else:
            source = self.simulator
            for name in ("costs", "true_cost"):
                if getattr(self, name) is not None:
                    getattr(self, name).check_ends(name, source)
        play = partial(rollouts, source, costs, self.criterion, steps)
        n_rollouts = self.default_rollouts if n_rollouts is None else n_rollouts
        if engine is None:
            return play(acting, 0, n_rollouts, rng)
        return in_pieces(engine, play, acting, self.action_space, n_rollouts, rng)

    @property
    def default_rollouts(self) -> int:
        """How many rollouts an estimate takes if nothing is said: 1000, fewer where they are long and cost time."""
        if isinstance(self._simulator, TabularModel):
            return _MOST
        return int(np.clip(_STEPS // max(self.criterion.steps(_TAIL), self.time_limit or 1), _FEWEST, _MOST))

    def _exact_costs(self, policy: PolicyLike, costs: FloatArray, deterministic: bool) -> tuple[FloatArray, float]:
        """Return the expected costs, and how far they can be off: by what the occupancy leaves open, in the 1-norm."""
        if isinstance(policy, MixturePolicy):
            parts, errors = zip(
                *(self._exact_costs(part, costs, deterministic) for part in policy.policies), strict=True
            )
            return np.asarray(policy.weights @ np.array(parts)), max(errors)
        table = policy_table(policy, self.dynamics, deterministic=deterministic)  # type: ignore[arg-type]
        occupancy, error = self.occupancy(table), _OCCUPANCY_ERROR
        if self.horizon is None:  # floating point may not allow so little; what is violated of the flow bounds it too
            violated = self.model.bellman_flow(occupancy) - self.model.initial_distribution
            error = max(error, float(np.abs(violated).sum()))
        return np.asarray(costs.T @ occupancy.ravel()), error

    def occupancy(self, table: FloatArray) -> FloatArray:
        """Return how often an (S, A) policy takes each pair, (S, A), weighted by the criterion; needs the model."""
        if self.horizon is None:
            return self.model.occupancy(table, _OCCUPANCY_ERROR)
        self.needs("model", "an occupancy")
        assert self.dynamics is not None
        return self.dynamics.occupancy(table, self.criterion.weights(self.horizon))

    def _stacked(self) -> Any:
        """Return the costs and the true cost side by side, whatever is known of them."""
        parts = [part for part in (self.costs, self.true_cost) if part is not None]
        if len(parts) == 1:
            return parts[0]
        if all(isinstance(part, TableCosts) for part in parts):
            n_pairs = max(len(part.table) for part in parts)
            tables = [np.pad(part.table, ((0, n_pairs - len(part.table)), (0, 0))) for part in parts]  # the end is free
            return TableCosts(np.hstack(tables), parts[0].n_actions, name="costs")
        return FunctionCosts(lambda seen, done: np.hstack([part.rows(seen, done) for part in parts]))

    def for_learner(self, asks_expert: bool, criterion: Criterion | None = None) -> Task:
        """Return what a learner may see: not the true cost, and the expert only if it says that it asks it.

        ``criterion`` is the one that the learner solves, if not the task's own.
        """
        hidden = copy(self)  # with the model and the simulator, if they have been built
        if criterion is not None:
            hidden._set("horizon", criterion.horizon)
        hidden._set("for_learning", True)
        hidden._set("true_cost", None)
        hidden._set("expert", self.expert if asks_expert else None)
        return hidden

    def __repr__(self) -> str:
        data = "no demonstrations"
        if self.demonstrations is not None:  # while it is built they may be in any form
            known = isinstance(self.demonstrations, Demonstrations)
            data = f"{len(self.demonstrations)} trajectories" if known else "demonstrations"
        return f"Task({data}, {self.criterion}, access {self.access!r}, {self.costs or 'no costs'})"


def _one_column(cost: Any) -> Any:
    if isinstance(cost, Costs):
        return cost
    if callable(cost):
        return lambda seen, done: np.reshape(cost(seen, done), (len(seen), 1))
    table = np.asarray(cost)
    return table.reshape(-1, 1) if table.dtype.kind in "biuf" else cost  # which is refused by its name
