"""The model-based baseline: estimate the model from draws, and solve it exactly.

In finite spaces this is what any method that only has a generative model must beat: with k draws of every pair the
empirical transitions P̂ are the only thing left to estimate, and `solve_cutting_plane` adds nothing to their error.
"""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import Costs
from lfd_gym.costs.sets import CostClass
from lfd_gym.model.generative_model import GenerativeModel, check_generator, check_model
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.solvers.solution import ExactSolution
from lfd_gym.validation import discount_factor

_DRAWS_AT_ONCE = 2_000_000


@checked
def solve_plug_in(
    model: GenerativeModel,
    cost_features: Costs | ArrayLike,
    expert_features: ArrayLike,
    discount: float,
    draws_per_pair: int,
    rng: np.random.Generator,
    *,
    cost_class: CostClass | None = None,
    tolerance: float = 1e-8,
) -> ExactSolution:
    """Estimate the transitions by ``draws_per_pair`` draws of every pair, and solve.

    The solution is exact for the estimated model; its bounds say nothing about the real one. What the policy is worth
    there, `lfd_gym.certify` finds from fresh rollouts.

    Parameters
    ----------
    model
        A generative model of a finite space.
    cost_features, expert_features, cost_class, tolerance
        As for `solve_cutting_plane`.
    discount
        γ.
    draws_per_pair
        k. The model is drawn k·S·A times for the transitions and k·S times for the initial distribution.
    rng
        Drives all draws.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> rng = np.random.default_rng(0)
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=0)
    >>> mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    >>> costs = env.unwrapped.cost_features
    >>> rho = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel() @ costs
    >>> found = lfd.solve_plug_in(lfd.as_generative_model(env), costs, rho, 0.9, draws_per_pair=1000, rng=rng)
    >>> found.oracle_calls
    64000
    >>> bool((mdp.occupancy(found.policy).ravel() @ costs - rho).max() < 0.01)
    True
    """
    estimated = estimate_mdp(model, discount, draws_per_pair, rng)
    solution = solve_cutting_plane(
        estimated, cost_features, expert_features, cost_class=cost_class, tolerance=tolerance
    )
    return replace(solution, oracle_calls=draws_per_pair * estimated.n_states * estimated.n_actions)


@checked
def estimate_mdp(model: GenerativeModel, discount: float, draws_per_pair: int, rng: np.random.Generator) -> FiniteMDP:
    """Return the MDP whose transitions are the frequencies of ``draws_per_pair`` draws of every pair.

    The initial distribution is estimated from as many draws for every state.
    """
    check_model("model", model)
    check_generator("rng", rng)
    for name, space in (("state_space", model.state_space), ("action_space", model.action_space)):
        if not isinstance(space, gym.spaces.Discrete):
            raise ValueError(f"model must have a Discrete {name} to estimate transitions, got {space}")
    if draws_per_pair < 1:
        raise ValueError(f"draws_per_pair must be at least 1, got {draws_per_pair}")
    gamma = discount_factor("discount", discount)
    n_states, n_actions = int(model.state_space.n), int(model.action_space.n)  # type: ignore[attr-defined]
    initial = np.bincount(model.sample_initial(draws_per_pair * n_states, rng), minlength=n_states)
    absorbing = np.flatnonzero(model.is_absorbing(np.arange(n_states)))
    return FiniteMDP(
        _transition_frequencies(model, n_states, n_actions, draws_per_pair, rng),
        initial / initial.sum(),
        gamma,
        absorbing_state=int(absorbing[0]) if absorbing.size else None,
    )


def _transition_frequencies(
    model: GenerativeModel, n_states: int, n_actions: int, draws_per_pair: int, rng: np.random.Generator
) -> sp.csr_array:
    n_pairs = n_states * n_actions
    pairs_at_once = max(1, _DRAWS_AT_ONCE // draws_per_pair)
    blocks = []
    for start in range(0, n_pairs, pairs_at_once):
        stop = min(start + pairs_at_once, n_pairs)
        pairs = np.repeat(np.arange(start, stop), draws_per_pair)
        after = model.sample_next(pairs // n_actions, pairs % n_actions, rng)
        counts = sp.coo_array((np.ones(pairs.size), (pairs - start, after)), shape=(stop - start, n_states))
        blocks.append(sp.csr_array(counts))  # sums the repeated entries
    return sp.csr_array(sp.vstack(blocks) / draws_per_pair)
