"""Generative models: simulators that answer "what may come next from this state and action?".

A generative model is stateless: what it returns depends on its arguments alone. It works on batches: states are arrays
whose first axis is the batch; for finite models they are integer vectors. The absorbing state, where there is one, is
the last state of a finite model made from an environment, and a row of NaN in any other model.
"""

from __future__ import annotations

import copy
import operator
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from lfd_gym._jit import jit
from lfd_gym.arguments import checked
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray, IntArray


@runtime_checkable
class GenerativeModel(Protocol):
    """What Algorithm 1 needs of a simulator.

    Attributes
    ----------
    state_space, action_space, observation_space
        Gymnasium spaces of single states, actions and observations.

    Notes
    -----
    A model whose observations tell the state may also offer ``states_of(observations)``, which returns one state for
    each observation such that `observe` gives the observations back, up to rounding. One that cannot has no such
    attribute: ask by ``hasattr(model, "states_of")``. Finite models, classic control and InvertedPendulum have it.

    A model that knows rewards may offer ``sample_rewarded(states, actions, rng)``, which returns what `sample_next`
    does and the (n,) rewards of these steps, zero from an absorbing state. It is there for `lfd_gym.optimal_policy`,
    which makes experts: no learner asks for it.
    """

    state_space: gym.Space[Any]
    action_space: gym.Space[Any]
    observation_space: gym.Space[Any]

    def sample_initial(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw ``n`` independent initial states."""
        ...

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one next state for each pair, independently; an absorbing state stays."""
        ...

    def observe(self, states: ArrayLike) -> NDArray[Any]:
        """Return what a policy sees of each state. Finite models are fully observed: it returns the states."""
        ...

    def is_absorbing(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which states stand for "the episode has ended". Costs there are zero."""
        ...


class TabularModel:
    """A generative model of a finite MDP, by alias tables: one uniform number and O(1) time a draw.

    Parameters
    ----------
    transitions
        (S·A, S), as for `FiniteMDP`.
    initial_distribution
        (S,).
    absorbing_state
        As for `FiniteMDP`.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import TabularModel
    >>> model = TabularModel(np.array([[0.0, 1.0], [1.0, 0.0]]), initial_distribution=[1.0, 0.0])
    >>> model.sample_next([0, 1, 0], [0, 0, 0], np.random.default_rng(0))
    array([1, 0, 1])
    """

    @checked
    def __init__(
        self,
        transitions: sp.csr_array | ArrayLike,
        initial_distribution: ArrayLike,
        absorbing_state: int | None = None,
    ) -> None:
        self._build(FiniteDynamics(transitions, initial_distribution, absorbing_state))  # type: ignore[arg-type]

    @classmethod
    @checked
    def of(cls, source: FiniteMDP | FiniteDynamics) -> TabularModel:
        """Return the generative model of an MDP, or of dynamics; it shares the arrays of the transitions."""
        model = cls.__new__(cls)  # they are validated already, which is most of the work for millions of pairs
        model._build(source.dynamics if isinstance(source, FiniteMDP) else source)
        return model

    def _build(self, dynamics: FiniteDynamics) -> None:
        self.dynamics = dynamics
        self.n_states, self.n_actions = dynamics.n_states, dynamics.n_actions
        self.absorbing_state = dynamics.absorbing_state
        self.state_space: gym.Space[Any] = gym.spaces.Discrete(self.n_states)
        self.action_space: gym.Space[Any] = gym.spaces.Discrete(self.n_actions)
        self.observation_space: gym.Space[Any] = self.state_space
        support = np.flatnonzero(dynamics.initial_distribution).astype(np.int32)
        #: Alias table of the initial distribution, with one row.
        self.initial_table = AliasTable(
            np.array([0, support.size], dtype=np.int32), support, dynamics.initial_distribution[support]
        )
        #: Alias table of the transitions, one row per pair.
        self.transition_table = AliasTable(
            dynamics.transitions.indptr, dynamics.transitions.indices, dynamics.transitions.data
        )

    @checked
    def sample_initial(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw ``n`` independent initial states."""
        check_generator("rng", rng)
        return self.initial_table.sample(np.zeros(batch_size("n", n), dtype=np.int64), rng)

    @checked
    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw one next state for each state-action pair."""
        state_array, action_array = _integers("states", states), _integers("actions", actions)
        if state_array.shape != action_array.shape:
            raise ValueError(
                f"states and actions must have the same length, got {state_array.shape} and {action_array.shape}"
            )
        drawn = np.empty(state_array.size, dtype=np.int64)
        uniforms = check_generator("rng", rng).random(drawn.size)
        wrong = _sample_pairs(*self.transition_table.arrays, self.n_actions, state_array, action_array, uniforms, drawn)
        if wrong >= 0:
            _check_range("states", state_array[wrong:], self.n_states)
            _check_range("actions", action_array[wrong:], self.n_actions)
        return drawn

    @checked
    def observe(self, states: ArrayLike) -> IntArray:
        """Return the states themselves."""
        return _check_range("states", _integers("states", states), self.n_states)

    @checked
    def states_of(self, observations: ArrayLike) -> IntArray:
        """Return the states that are seen: the observations themselves."""
        return _check_range("observations", _integers("observations", observations), self.n_states)

    @checked
    def is_absorbing(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which states are the absorbing one."""
        array = _check_range("states", _integers("states", states), self.n_states)
        return np.asarray(array == (-1 if self.absorbing_state is None else self.absorbing_state))


class AliasTable:
    """Walker's alias method over the rows of a CSR matrix of distributions.

    The slots of a row are equally likely, and each is shared by at most two outcomes. Both stand in the slot: a draw
    reads one place of each array and takes no branch, which measured three to five times faster than following slots.

    Attributes
    ----------
    offsets
        (R + 1,) row r owns the slots ``offsets[r]:offsets[r + 1]``.
    outcomes
        The value of each slot.
    thresholds, aliases
        Slot k yields ``outcomes[k]`` with probability ``thresholds[k]``, else ``aliases[k]``.
    """

    def __init__(self, offsets: NDArray[Any], outcomes: NDArray[Any], probabilities: FloatArray) -> None:
        self.offsets = offsets
        self.outcomes = outcomes
        self.thresholds = np.ones(probabilities.size)
        self.aliases = outcomes.copy()
        _build_alias(offsets, outcomes, probabilities, self.thresholds, self.aliases)

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], FloatArray, NDArray[Any]]:
        """What `draw_alias` takes first: offsets, outcomes, thresholds, aliases."""
        return self.offsets, self.outcomes, self.thresholds, self.aliases

    def sample(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw one outcome for each of ``rows``, which are trusted to be rows of the table."""
        return _sample_rows(*self.arrays, rows, check_generator("rng", rng).random(rows.size))


@jit
def _build_alias(
    offsets: NDArray[Any],
    outcomes: NDArray[Any],
    probabilities: FloatArray,
    thresholds: FloatArray,
    aliases: NDArray[Any],
) -> None:
    """Vose's construction, row by row, of thresholds that start at one."""
    longest = 0
    for row in range(offsets.size - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    small = np.empty(longest, dtype=np.int64)
    large = np.empty(longest, dtype=np.int64)
    scaled = np.empty(longest)
    for row in range(offsets.size - 1):
        start = offsets[row]
        size = offsets[row + 1] - start
        n_small = 0
        n_large = 0
        for k in range(size):
            scaled[k] = probabilities[start + k] * size
            if scaled[k] < 1.0:
                small[n_small] = k
                n_small += 1
            else:
                large[n_large] = k
                n_large += 1
        # Each round fills one slot; slots left over at the end are full up to rounding.
        while n_small > 0 and n_large > 0:
            n_small -= 1
            low = small[n_small]
            high = large[n_large - 1]
            thresholds[start + low] = scaled[low]
            aliases[start + low] = outcomes[start + high]
            scaled[high] = (scaled[high] + scaled[low]) - 1.0
            if scaled[high] < 1.0:
                n_large -= 1
                small[n_small] = high
                n_small += 1


@jit
def draw_alias(
    offsets: NDArray[Any],
    outcomes: NDArray[Any],
    thresholds: FloatArray,
    aliases: NDArray[Any],
    row: int,
    uniform: float,
) -> int:
    """Draw from ``row``: the integer part of uniform·size says the slot, the fraction is held against the threshold."""
    start = offsets[row]
    size = offsets[row + 1] - start
    position = uniform * size
    slot = int(position)  # at most size - 1: for uniform <= 1 - 2⁻⁵³ the product rounds to less than size
    k = start + slot
    kept = outcomes[k]
    drawn = aliases[k]  # read in any case: the compiler then selects without a branch
    if position - slot < thresholds[k]:
        drawn = kept
    return drawn  # type: ignore[no-any-return]


@jit
def _sample_rows(
    offsets: NDArray[Any],
    outcomes: NDArray[Any],
    thresholds: FloatArray,
    aliases: NDArray[Any],
    rows: IntArray,
    uniforms: FloatArray,
) -> IntArray:
    drawn = np.empty(rows.size, dtype=np.int64)
    for n in range(rows.size):
        drawn[n] = draw_alias(offsets, outcomes, thresholds, aliases, rows[n], uniforms[n])
    return drawn


@jit
def _sample_pairs(
    offsets: NDArray[Any],
    outcomes: NDArray[Any],
    thresholds: FloatArray,
    aliases: NDArray[Any],
    n_actions: int,
    states: IntArray,
    actions: IntArray,
    uniforms: FloatArray,
    drawn: IntArray,
) -> int:
    """Fill ``drawn``; return the first position that holds no valid pair, −1 if there is none."""
    # As unsigned numbers the negative ones are large, too. This also tells the compiler that rows are not negative.
    n_states, end = np.uint64((offsets.size - 1) // n_actions), np.uint64(n_actions)
    for n in range(states.size):
        if np.uint64(states[n]) >= n_states or np.uint64(actions[n]) >= end:
            return n
        row = states[n] * n_actions + actions[n]
        drawn[n] = draw_alias(offsets, outcomes, thresholds, aliases, row, uniforms[n])
    return -1


def _integers(name: str, values: ArrayLike) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        raise ValueError(f"{name} must be a vector of integers, got shape {array.shape} and dtype {array.dtype}")
    return array.astype(np.int64, copy=False)


def _check_range(name: str, array: IntArray, size: int) -> IntArray:
    outside = (array < 0) | (array >= size)
    if outside.any():
        raise ValueError(f"{name} must lie in [0, {size}), got {array[outside][0]}")
    return array


#: What `GenerativeModel` asks for.
MODEL_METHODS = ("sample_initial", "sample_next", "observe", "is_absorbing")
MODEL_SPACES = ("state_space", "action_space", "observation_space")
#: How many states a model is tried out with: a batch, and seldom the size of a state.
_TRIED = 7


def check_model(name: str, value: Any) -> None:
    """Refuse what is no generative model; those of MDPs and environments have to be asked for."""
    if isinstance(value, type) or not isinstance(value, GenerativeModel):
        raise TypeError(
            f"{name} must be a GenerativeModel, such as lfd_gym.as_generative_model gives for an environment or a "
            f"FiniteMDP, got {what_is_lacking(value)}"
        )


def what_is_lacking(value: Any) -> str:
    """Say what was given in place of a world: a class instead of an object, or what a model lacks."""
    if isinstance(value, type):
        return f"the class {value.__name__}: make an object of it, {value.__name__}(...)"
    missing = [name for name in (*MODEL_METHODS, *MODEL_SPACES) if not hasattr(value, name)]
    lacking = f", which lacks {', '.join(missing)}" if len(missing) < len(MODEL_METHODS + MODEL_SPACES) else ""
    return f"{value!r:.80}{lacking}"


def check_batches(name: str, model: GenerativeModel) -> None:
    """Refuse a model of somebody else's that does not take several states at once, as one written for single ones."""
    if type(model).__module__.startswith("lfd_gym."):
        return
    rng = np.random.default_rng(0)
    space = copy.deepcopy(model.action_space)
    space.seed(0)
    actions = np.stack([np.asarray(space.sample()) for _ in range(_TRIED)])
    states = _batch(name, model, "sample_initial", model.state_space, _TRIED, rng)
    _batch(name, model, "sample_next", model.state_space, states, actions, rng)
    _batch(name, model, "observe", model.observation_space, states)
    ended = _batch(name, model, "is_absorbing", gym.spaces.MultiBinary(()), states)
    if ended.dtype != np.bool_:
        raise TypeError(f"{name}.is_absorbing must return True or False for each state, got {ended.dtype}")


def _batch(name: str, model: GenerativeModel, method: str, space: gym.Space[Any], *arguments: Any) -> NDArray[Any]:
    """Ask a model about a few states at once, and return what it says of each."""
    advice = (
        "the methods of a GenerativeModel take and return batches, with the states as rows; "
        "lfd_gym.testing.check_generative_model looks at the rest"
    )
    try:
        found = np.asarray(getattr(model, method)(*arguments))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise TypeError(f"{name}.{method} failed for {_TRIED} states at once ({what}): {advice}") from error
    wanted = (_TRIED, *(space.shape or ()))
    if found.shape != wanted:
        raise TypeError(f"{name}.{method} must return shape {wanted} for {_TRIED} states, got {found.shape}: {advice}")
    return found


def batch_size(name: str, value: Any) -> int:
    """Return ``value`` as a nonnegative integer, or say what is wrong with it."""
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if size < 0:
        raise ValueError(f"{name} must not be negative, got {size}")
    return size


def check_generator(name: str, value: Any) -> np.random.Generator:
    """Return ``value`` if it is a NumPy generator: seeds and global streams are not taken in its place."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(f"{name} must be a numpy.random.Generator, such as np.random.default_rng(0), got {value!r}")
    return value
