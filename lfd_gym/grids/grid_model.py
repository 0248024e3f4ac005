"""A simulator over real vectors as a finite model on a grid.

The state of the finite model is a point p of the grid. Action a is held for k steps of the simulator (``repeat``);
where they lead, x', is written as a mean Σ λ_j p_j of points (`Grid.interpolate`), and λ is taken for the distribution
of the next point. This is Gordon's averager (1995): the Bellman operator of the finite model is that of the simulator
followed by interpolation, still a contraction with γ^k, so everything that is known of finite models holds for it
exactly. What it says of the simulator carries the error of interpolation: with e the largest difference between V* and
its interpolation, its values are off by at most γ^k e/(1 − γ^k). Interpolation also *diffuses*: a step that moves less
than a cell turns into a random walk along it. That is why actions are held until they move half a cell or so.

What is paid while an action is held is the discounted mean over its k steps, so that with the discount γ^k expected
costs are those of single steps: (1 − γ)/(1 − γ^k) · Σ_{j<k} γ^j c(x_j, a), zero after an end.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import Costs
from lfd_gym.envs.processes import sample_next_in_processes
from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.grid import Grid
from lfd_gym.grids.stepping import steps_in_compiled_code
from lfd_gym.model.generative_model import GenerativeModel, check_generator
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray, discount_factor

#: States, from which all is tried twice to see whether a simulator is random; and draws of each pair if it is.
_N_TRIED_TWICE = 500
DRAWS_OF_NOISE = 8
#: Rows of costs computed at a time.
_BLOCK = 50_000


class GridModel:
    """A simulator on a grid: the finite model, its costs, and what it says of states between the points.

    Parameters
    ----------
    simulator
        Over a `Box` of states, whose entries are the axes of the grid.
    grid
        The points.
    discount
        γ of single steps.
    rng
        Drives the simulator.
    actions
        The actions that are planned with; if not given those of `ActionGrid`.
    repeat
        k: for how many steps an action is held.
    deterministic
        Whether the simulator draws nothing; by default it is tried, see `gives_the_same_twice`.
    n_draws
        How often each pair is drawn; by default once if the simulator is deterministic, else 8 times.
    rewarded
        Whether the simulator is asked for rewards on the way: it must have ``sample_rewarded``. Learners do not ask.

    Attributes
    ----------
    deterministic
        Whether the simulator draws nothing.
    transitions
        (S·A, S) rows of interpolation weights.
    absorbing_state
        The last state, after all points of the grid; None if the simulator is known never to end.
    share_outside
        How many of the pairs lead out of the box of the grid, where the edge stands for them.
    n_steps
        Steps of the simulator that were taken.
    reward_cost
        (S·A,) minus the rewards, averaged as costs are, in their own scale; None unless ``rewarded``.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> simulator = lfd.as_generative_model(gym.make("Pendulum-v1"))
    >>> angles, speeds = np.linspace(-np.pi, np.pi, 40, endpoint=False), np.linspace(-8, 8, 41)
    >>> grid = lfd.Grid([angles, speeds], periods=[2 * np.pi, 0])
    >>> model = lfd.GridModel(simulator, grid, discount=0.95, rng=np.random.default_rng(0))
    >>> model.mdp(initial_states=[[np.pi, 0.0]])
    FiniteMDP(n_states=1640, n_actions=11, discount=0.95, nonzeros=70431)
    """

    @checked
    def __init__(
        self,
        simulator: GenerativeModel,
        grid: Grid,
        *,
        discount: float,
        rng: np.random.Generator,
        actions: ActionGrid | None = None,
        repeat: int = 1,
        deterministic: bool | None = None,
        n_draws: int | None = None,
        rewarded: bool = False,
    ) -> None:
        check_generator("rng", rng)
        shape = simulator.state_space.shape
        if shape != (grid.n_dimensions,):
            raise ValueError(f"grid must have as many axes as states have entries, got {grid} for states of {shape}")
        if repeat < 1:
            raise ValueError(f"repeat must be at least 1, got {repeat}")
        if n_draws is not None and n_draws < 1:
            raise ValueError(f"n_draws must be at least 1, got {n_draws}")
        self.simulator, self.grid, self.repeat = simulator, grid, repeat
        self.discount = discount_factor("discount", discount)
        self.actions = ActionGrid(simulator.action_space) if actions is None else actions
        self.n_actions = len(self.actions)
        never_ends = bool(getattr(simulator, "never_ends", False))
        self.absorbing_state = None if never_ends else grid.n_points
        self.n_states = grid.n_points + (not never_ends)
        if deterministic is None:
            states = rng.uniform(*grid.bounds, (_N_TRIED_TWICE, grid.n_dimensions))
            deterministic = gives_the_same_twice(simulator, states, self.actions, rng)
        self.deterministic = deterministic
        self.n_draws = n_draws or (1 if deterministic else DRAWS_OF_NOISE)
        self.n_steps = 0
        #: What was seen on the way, of the first draw: (S·A, d) states after 1, …, k − 1 steps.
        self._on_the_way: list[FloatArray] = []
        self.reward_cost = np.zeros(self.n_states * self.n_actions) if rewarded else None
        self.transitions = self._build(rng)

    def _build(self, rng: np.random.Generator) -> sp.csr_array:
        points = self.grid.points
        n_points, n_actions, n_corners = len(points), self.n_actions, self.grid.n_corners
        starts = np.repeat(points, n_actions, axis=0)
        held = np.tile(self.actions.actions, (n_points, *(1,) * (self.actions.actions.ndim - 1)))
        columns = np.empty((len(starts), self.n_draws, n_corners), dtype=np.int32)
        weights = np.empty((len(starts), self.n_draws, n_corners))
        n_outside, n_ended = 0, 0
        with tqdm(total=self.n_draws * self.repeat, unit=" steps", delay=1, disable=None, leave=False) as bar:
            bar.set_description("building the grid model")
            for draw in range(self.n_draws):
                states = starts
                for step in range(self.repeat):
                    if draw == 0 and step > 0:
                        self._on_the_way.append(states)
                    states, rewards = self._advance(states, held, rng)
                    if self.reward_cost is not None:
                        factor = self._mean_factor * self.discount**step / self.n_draws
                        self.reward_cost[: len(starts)] -= factor * rewards
                    bar.update()
                ended = self.simulator.is_absorbing(states)
                going = np.flatnonzero(~ended)
                columns[going, draw], weights[going, draw] = self.grid.interpolate(states[going])
                n_outside += going.size - int(self.grid.inside(states[going]).sum())
                if ended.any():
                    n_ended += int(ended.sum())
                    columns[ended, draw] = self._end()
                    weights[ended, draw] = [1.0] + [0.0] * (n_corners - 1)
        n_drawn = len(starts) * self.n_draws
        if n_ended == n_drawn:
            raise ValueError(
                f"simulator must go on from some state of the grid: all of {n_points} points and {n_actions} actions "
                f"end the episode within {self.repeat} step{'s' if self.repeat > 1 else ''}"
            )
        self.share_outside = n_outside / n_drawn
        weights /= self.n_draws
        width = self.n_draws * n_corners
        offsets = np.arange(0, len(starts) * width + 1, width)
        data, indices = weights.ravel(), columns.ravel()
        if self.absorbing_state is not None:
            data = np.append(data, np.ones(n_actions))
            indices = np.append(indices, np.full(n_actions, self.absorbing_state, dtype=np.int32))
            offsets = np.append(offsets, offsets[-1] + 1 + np.arange(n_actions))
        matrix = sp.csr_array((data, indices, offsets), shape=(self.n_states * n_actions, self.n_states))
        matrix.eliminate_zeros()
        matrix.sum_duplicates()
        return matrix

    def _end(self) -> int:
        if self.absorbing_state is None:
            raise ValueError("simulator says that it never ends, but an episode has ended in it")
        return self.absorbing_state

    def _advance(
        self, states: FloatArray, actions: NDArray[np.generic], rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Take one step from each state, and check where it leads; return the rewards too, zero if not asked for."""
        source: Any = self.simulator if self.reward_cost is None else _RewardsBeside(self.simulator)
        compiled = steps_in_compiled_code(self.simulator)
        draw = source.sample_next if compiled else partial(sample_next_in_processes, source)
        drawn = np.asarray(draw(states, actions, rng), dtype=np.float64)
        following, rewards = drawn[:, : self.grid.n_dimensions], drawn[:, self.grid.n_dimensions :].sum(axis=1)
        self.n_steps += len(states)
        wrong = ~(np.isfinite(following).all(axis=1) | self.simulator.is_absorbing(following))
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"simulator must lead to finite states, got {following[row]} from {states[row]} by {actions[row]}"
            )
        return following, rewards

    # -- the finite model ---------------------------------------------------------------------------------------------

    @cached_property
    def mdp_discount(self) -> float:
        """γ^k."""
        return self.discount**self.repeat

    @cached_property
    def _mean_factor(self) -> float:
        """What makes a mean of the discounted sum over the steps that an action is held."""
        return (1 - self.discount) / (1 - self.mdp_discount)

    @checked
    def mdp(self, initial_states: ArrayLike, weights: ArrayLike | None = None) -> FiniteMDP:
        """Return the finite model that begins in ``initial_states``, alike or with ``weights``."""
        return FiniteMDP(
            self.transitions, self.spread(initial_states, weights), self.mdp_discount, self.absorbing_state
        )

    def spread(self, states: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
        """Spread a distribution over ``states`` over the points of the grid, (S,)."""
        corners, shares = self.grid.interpolate(states)
        own = np.full(len(corners), 1 / len(corners)) if weights is None else np.asarray(weights, dtype=np.float64)
        mass = (shares * own[:, None]).ravel()
        return np.asarray(np.bincount(corners.ravel(), mass, minlength=self.n_states), dtype=np.float64)

    def table(self, costs: Costs) -> FloatArray:
        """Return ``costs`` of all pairs, (S·A, n_c), averaged over the steps that an action is held."""
        n_actions, n_pairs = self.n_actions, self.grid.n_points * self.n_actions
        points = self.grid.points
        n_costs = costs.rows(self.simulator.observe(points[:1]), self.actions.actions[:1]).shape[1]
        table = np.zeros((self.n_states * n_actions, n_costs))
        for step in range(self.repeat):
            factor = self._mean_factor * self.discount**step
            if step == 0 and not costs.uses_actions:
                rows = costs.rows(self.simulator.observe(points), None)
                table[:n_pairs] = factor * np.repeat(rows, n_actions, axis=0)
                continue
            for first in range(0, n_pairs, _BLOCK):
                pairs = np.arange(first, min(first + _BLOCK, n_pairs))
                states = points[pairs // n_actions] if step == 0 else self._on_the_way[step - 1][pairs]
                done = self.actions.actions[pairs % n_actions] if costs.uses_actions else None
                table[pairs] += factor * costs.rows(self.simulator.observe(states), done)
        return table

    def spread_costs(
        self, costs: Costs, states: ArrayLike, actions: NDArray[np.generic] | None, weights: FloatArray
    ) -> FloatArray:
        """Return the weighted sum of the costs of pairs, (n_c,), with each pair spread over the grid.

        It is what the finite model would pay for them: the costs of the points around a state and of the known actions
        around an action, as the apprentice on the grid pays them too.
        """
        points = self.grid.points
        corners, shares = self.grid.interpolate(states)
        index, parts = (
            (np.zeros((len(corners), 1), dtype=np.int64), np.ones((len(corners), 1)))
            if actions is None or not costs.uses_actions
            else self.actions.interpolate(actions)
        )
        pairs = (corners[:, :, None] * self.n_actions + index[:, None, :]).ravel()
        mass = (shares[:, :, None] * parts[:, None, :] * weights[:, None, None]).ravel()
        used, place = np.unique(pairs, return_inverse=True)
        measure = np.bincount(place.ravel(), mass)
        total = np.zeros(1)
        for first in range(0, len(used), _BLOCK):
            some = used[first : first + _BLOCK]
            done = self.actions.actions[some % self.n_actions] if costs.uses_actions else None
            total = total + measure[first : first + _BLOCK] @ costs.rows(
                self.simulator.observe(points[some // self.n_actions]), done
            )
        return total

    # -- between the points -------------------------------------------------------------------------------------------

    def lookahead(self, states: FloatArray, pair_costs: FloatArray, values: FloatArray) -> FloatArray:
        """Return (n, A) what each action costs from here on: k steps of the simulator, and the values where they lead.

        Parameters
        ----------
        states
            (n, d).
        pair_costs, values
            (S·A,) and (S,) of the finite model; they are interpolated.
        """
        n_actions = self.n_actions
        corners, shares = self.grid.interpolate(states)
        now = np.einsum("nk,nka->na", shares, pair_costs.reshape(-1, n_actions)[corners])
        following = np.repeat(states, n_actions, axis=0)
        held = np.tile(self.actions.actions, (len(states), *(1,) * (self.actions.actions.ndim - 1)))
        rng = np.random.default_rng(0)  # a deterministic simulator draws nothing
        for _ in range(self.repeat):
            following = self.simulator.sample_next(following, held, rng)
        going = ~self.simulator.is_absorbing(following)
        later = np.full(len(following), 0.0 if self.absorbing_state is None else values[self.absorbing_state])
        corners, shares = self.grid.interpolate(following[going])
        later[going] = (values[corners] * shares).sum(axis=1)
        return np.asarray((1 - self.mdp_discount) * now + self.mdp_discount * later.reshape(-1, n_actions))

    def __repr__(self) -> str:
        return f"GridModel({self.grid}, {self.n_actions} actions held for {self.repeat})"


class _RewardsBeside:
    """A simulator whose next states have the reward of the step as one more entry: so it comes back from processes."""

    def __init__(self, simulator: GenerativeModel) -> None:
        self._simulator = simulator

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> FloatArray:
        following, rewards = self._simulator.sample_rewarded(states, actions, rng)  # type: ignore[attr-defined]
        return np.column_stack([following, rewards])


def gives_the_same_twice(
    simulator: GenerativeModel, states: FloatArray, actions: ActionGrid, rng: np.random.Generator
) -> bool:
    """Say whether a simulator leads to the same twice from ``states``, of which some are tried, each with one action.

    Noise that is somewhere else is not seen: give states that matter.
    """
    if len(states) > _N_TRIED_TWICE:
        states = states[rng.integers(len(states), size=_N_TRIED_TWICE)]
    done = actions.actions[rng.integers(len(actions), size=len(states))]
    first, second = (simulator.sample_next(states, done, rng) for _ in range(2))
    return bool(np.array_equal(first, second, equal_nan=True))
