"""Costs: n_c functions of what is seen and done, and the set that their weights live in.

Every cost lies in [−1, 1] and is zero once an episode has ended. Over finitely many states they are a *table*,
(S·A, n_c), whose row x·A + a belongs to the pair (x, a); over others a function of observations and actions.
`Costs.rows` serves both, so that only what wants the numbers themselves asks for ``table``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import checked
from lfd_gym.costs.sets import ConvexSet, CostClass, cost_weights_set
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.validation import LARGEST_UNIT, FloatArray, check_delta, check_type, count, finite_array, indices_below

#: (observations, actions) → (n, n_c).
CostFunction: TypeAlias = Callable[[NDArray[Any], Any], ArrayLike]


class Costs(ABC):
    """What a policy pays for, in n_c costs.

    Attributes
    ----------
    weights
        The set W: the class of costs is {Σ w_i c_i : w ∈ W}.
    uses_actions
        Whether the costs depend on actions; if not, ``rows`` takes None in their place.
    row_norm
        The largest Euclidean norm that a row can have, if that is known and less than its entries in [−1, 1] allow.
    chosen_from_demonstrations
        Whether the costs were chosen after looking at demonstrations. Then what these say of the costs is no
        independent estimate of the expert's, and no statement about the expert can rest on it.
    """

    uses_actions: bool = True
    row_norm: float | None = None
    chosen_from_demonstrations: bool = False

    @checked
    def __init__(self, weights: CostClass = "simplex", names: Sequence[str] | None = None) -> None:
        self.weights: ConvexSet = cost_weights_set("weights", weights)
        self._names = None if names is None else tuple(names)
        if self._names is not None and self.n_costs not in (None, len(self._names)):
            raise ValueError(f"names must be {self.n_costs}, one for each cost, got {len(self._names)}")

    @property
    @abstractmethod
    def n_costs(self) -> int | None:
        """n_c; None for a function that does not say and has not been asked yet."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the costs are called: c0, c1, … unless names were given."""
        return self._names if self._names is not None else tuple(f"c{i}" for i in range(self.n_costs or 0))

    @property
    def table(self) -> FloatArray | None:
        """(S·A, n_c) over finitely many pairs, else None."""
        return None

    @abstractmethod
    def rows(
        self, observations: NDArray[Any], actions: NDArray[Any] | None, ended: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """Return the costs of a batch of pairs, (n, n_c).

        ``ended`` says where the episode is over and nothing is paid. Without it, rows of NaN among the observations are
        recognised; the absorbing state of a finite model, an integer like any other, is not.
        """

    def check_ends(self, name: str, model: GenerativeModel) -> None:  # noqa: B027 - nothing to check, by default
        """Refuse costs that are paid in the absorbing states of ``model``; a function is not asked about these."""

    @checked
    def deviation(self, n_samples: float, delta: float) -> float:
        """With probability 1 − ``delta``: a bound of the support function of (mean − expectation).

        The mean is over independent rows, or discounted averages of rows such as those of trajectories. Where
        ``row_norm`` is known there is no price for the number of costs.
        """
        check_delta(delta)
        return self.weights.deviation(self._known_number(), n_samples, delta, norm=self.row_norm)

    @property
    def largest_distance(self) -> float:
        """No two policies can be farther apart in the class."""
        n_costs = self._known_number()
        if self.weights.nonnegative:
            return 2 * float(self.weights.support(np.ones(n_costs)))
        return 2 * self.weights.radius(n_costs) * (math.sqrt(n_costs) if self.row_norm is None else self.row_norm)

    def _known_number(self) -> int:
        if self.n_costs is None:
            raise ValueError(f"n_costs of {self} must be known: give it, or ask for rows first")
        return self.n_costs

    def check_actions(self, actions: NDArray[Any] | None) -> None:
        """Refuse None in place of actions if the costs depend on them."""
        if actions is None and self.uses_actions:
            raise ValueError(
                f"actions are not known, but {self} depend on them: give costs of observations alone, such as "
                "FourierCosts with actions=False, or FunctionCosts with uses_actions=False"
            )

    def __repr__(self) -> str:
        count = "some" if self.n_costs is None else self.n_costs
        return f"{type(self).__name__}({count} costs, {self.weights})"


class TableCosts(Costs):
    """Costs of finitely many pairs.

    Parameters
    ----------
    table
        (S·A, n_c) with entries in [−1, 1]; a copy is kept, if it can be written to.
    n_actions
        A.
    weights
        ``"simplex"``, ``"ball"``, or any `ConvexSet`.
    names
        One for each cost.

    Examples
    --------
    >>> costs = TableCosts([[1.0, 0.0], [0.5, 0.0], [0.0, 1.0], [0.0, 1.0]], n_actions=2)
    >>> costs.rows(np.array([0, 1]), np.array([1, 0]))
    array([[0.5, 0. ],
           [0. , 1. ]])
    """

    def __init__(
        self,
        table: ArrayLike,
        n_actions: int,
        weights: CostClass = "simplex",
        names: Sequence[str] | None = None,
        *,
        name: str = "table",
    ) -> None:
        self._table = check_cost_features(name, table)
        if self._table.flags.writeable:  # what was checked stays what it was
            self._table = self._table.copy(order="K")
            self._table.flags.writeable = False
        if len(self._table) % count("n_actions", n_actions):
            raise ValueError(f"{name} must have S*A rows with A = {n_actions}, got {len(self._table)}")
        self.n_actions = n_actions
        super().__init__(weights, names)

    @property
    def n_costs(self) -> int:
        """n_c."""
        return int(self._table.shape[1])

    @property
    def table(self) -> FloatArray:
        """(S·A, n_c)."""
        return self._table

    @cached_property
    def row_norm(self) -> float:  # type: ignore[override]
        """The largest Euclidean norm of a row."""
        return float(np.sqrt(np.einsum("ij,ij->i", self._table, self._table).max(initial=0.0)))

    @checked
    def rows(
        self, observations: NDArray[Any], actions: NDArray[Any] | None, ended: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """Look the pairs up; a table says itself what is paid at the end."""
        self.check_actions(actions)
        states = indices_below("observations", observations, len(self._table) // self.n_actions)
        chosen = indices_below("actions", cast(Any, actions), self.n_actions)
        if states.shape != chosen.shape:
            raise ValueError(f"actions must have the shape of observations, {states.shape}, got {chosen.shape}")
        return np.asarray(self._table[states * self.n_actions + chosen])

    def check_ends(self, name: str, model: GenerativeModel) -> None:
        """Refuse what rollouts, which end there, would not count. The table may leave out states that come last."""
        n_states = getattr(model.state_space, "n", None)
        if n_states is not None:
            for state in np.flatnonzero(model.is_absorbing(np.arange(n_states))):
                check_end_is_free(name, self._table, int(state), self.n_actions)


class FunctionCosts(Costs):
    """Costs given by a function of batches.

    Parameters
    ----------
    function
        (observations, actions) → (n, n_c), entries in [−1, 1].
    n_costs
        n_c, if it is to be known before the function is first called.
    weights, names
        As for `TableCosts`.
    uses_actions
        Whether the function looks at the actions; if not, it may be called with None in their place.

    Examples
    --------
    >>> costs = FunctionCosts(lambda observations, actions: np.abs(observations[:, :1]))
    >>> costs.rows(np.array([[0.5], [np.nan]]), np.array([0, 0]))  # NaN: the episode is over
    array([[0.5],
           [0. ]])
    """

    def __init__(
        self,
        function: CostFunction,
        n_costs: int | None = None,
        weights: CostClass = "simplex",
        names: Sequence[str] | None = None,
        uses_actions: bool = True,
    ) -> None:
        if not callable(function):
            raise TypeError(f"function must map (observations, actions) to costs, got {type(function).__name__}")
        if n_costs is not None:
            count("n_costs", n_costs)
        check_type("uses_actions", uses_actions, (bool, np.bool_), "bool")
        self.function = function
        self.uses_actions = uses_actions
        self._n_costs = n_costs if n_costs is not None or names is None else len(names)
        super().__init__(weights, names)

    @property
    def n_costs(self) -> int | None:
        """n_c, once it is known."""
        return self._n_costs

    def rows(
        self, observations: NDArray[Any], actions: NDArray[Any] | None, ended: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """Ask the function, and see to it that the end is free."""
        self.check_actions(actions)
        costs = np.asarray(self.function(observations, actions), dtype=np.float64)
        wanted = (len(observations), "n_c" if self._n_costs is None else self._n_costs)
        if costs.ndim != 2 or len(costs) != len(observations) or self._n_costs not in (None, costs.shape[1]):
            advice = "; a single cost is one column, costs[:, None]" if costs.ndim == 1 else ""
            raise ValueError(f"costs must return shape {wanted}, got {costs.shape}".replace("'", "") + advice)
        self._n_costs = costs.shape[1]
        if np.issubdtype(np.asarray(observations).dtype, np.floating):
            costs = np.where(hidden_rows(observations)[:, None], 0.0, costs)
        if ended is not None:
            costs = np.where(ended[:, None], 0.0, costs)
        if not np.abs(costs).max(initial=0.0) <= 1:  # or NaN; in the simulators' inner loop the full check is slow
            check_cost_features("costs(observations, actions)", costs, "divide by a number that is fixed beforehand")
        return costs


def as_costs(
    name: str,
    costs: Costs | ArrayLike | CostFunction,
    n_actions: int | None,
    cost_class: CostClass | None = None,
    n_pairs: int | None = None,
) -> Costs:
    """Return ``costs`` as an object: an array as a table over ``n_actions`` actions, a function as one.

    ``cost_class`` is the simplex if None; costs that come with their own set keep it. A table must have ``n_pairs``
    rows, if these are known.
    """
    if isinstance(costs, Costs):
        if cost_class is not None and cost_weights_set("cost_class", cost_class) != costs.weights:
            raise ValueError(f"cost_class must be that of the costs, {costs.weights}, got {cost_class}")
        return costs
    weights = cost_weights_set("cost_class", "simplex" if cost_class is None else cost_class)
    if callable(costs):
        return FunctionCosts(costs, weights=weights)
    if n_actions is None:
        raise ValueError(f"{name} must be a function of (observations, actions) where states are not finitely many")
    costs = finite_array(name, costs, (n_pairs, None))
    return TableCosts(costs, n_actions, weights, name=name)


def model_costs(
    name: str, costs: Costs | ArrayLike | CostFunction, dynamics: FiniteDynamics, cost_class: CostClass | None = None
) -> TableCosts:
    """Return ``costs`` as a table over the pairs of a known model, or say why they are none."""
    n_pairs = dynamics.n_states * dynamics.n_actions
    found = as_costs(name, costs, dynamics.n_actions, cost_class, n_pairs)
    if not isinstance(found, TableCosts):
        raise ValueError(f"{name} must be an (S*A, n_c) array when the model is known, got {found}")
    if len(found.table) != n_pairs:
        raise ValueError(f"{name} must have shape ({n_pairs}, any), got {found.table.shape}")
    if dynamics.absorbing_state is not None:
        check_end_is_free(name, found.table, dynamics.absorbing_state, dynamics.n_actions)
    return found


def check_cost_features(
    name: str, cost_features: ArrayLike, advice: str = "lfd_gym.normalise_costs rescales them"
) -> FloatArray:
    """Return costs as an (S·A, n_c) array with entries in [−1, 1], or name the feature that is not."""
    features = finite_array(name, cost_features, (None, None))
    if features.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column")
    largest = np.abs(features).max(axis=0, initial=0.0)
    if (largest > LARGEST_UNIT).any():
        column = int(np.argmax(largest > LARGEST_UNIT))
        raise ValueError(f"{name} must lie in [-1, 1], but feature {column} reaches {largest[column]}; {advice}")
    return features


def check_end_is_free(name: str, features: FloatArray, state: int, n_actions: int) -> None:
    """Check that nothing is paid in the absorbing ``state``: that is what makes the end of a trajectory its end."""
    costs = features[state * n_actions : (state + 1) * n_actions]
    if costs.any():
        action, column = (int(i) for i in np.argwhere(costs)[0])
        raise ValueError(
            f"{name} must be zero in the absorbing state {state}, where trajectories end, "
            f"got {costs[action, column]} for action {action}, feature {column}"
        )


def hidden_rows(observations: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which observations stand for the absorbing state: the rows that contain NaN."""
    return np.asarray(np.isnan(observations).any(axis=tuple(range(1, observations.ndim))))


@checked
def normalise_costs(cost_features: ArrayLike) -> FloatArray:
    """Divide each feature that leaves [−1, 1] by its largest absolute value; the others stay as they are.

    Signs and zeros are kept, so costs at an absorbing state stay zero. A weight w_i learned for the result is
    w_i / max(1, max |c_i|) for the feature as it was.

    Parameters
    ----------
    cost_features
        (S·A, n_c), or (S·A,) for one cost.

    Examples
    --------
    >>> normalise_costs([[4.0, 0.5], [-8.0, 0.0]])
    array([[ 0.5,  0.5],
           [-1. ,  0. ]])
    """
    array = np.asarray(cost_features, dtype=np.float64)
    features = finite_array("cost_features", array, (None,) * max(1, min(array.ndim, 2)))
    return np.asarray(features / np.maximum(1.0, np.abs(features).max(axis=0, initial=0.0)))
