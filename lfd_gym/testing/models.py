"""Checks for generative models, ours and yours.

Every check raises an `AssertionError` that names the check and says what was found. Seeds are fixed, so a model passes
or fails once and for all. The χ² checks fail a right model with probability 1e-6 (over the choice of the seed).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray, IntArray, count

_BATCH = 48
_REPEATS = 8  # copies of each pair in a batch, which show whether the transitions are random
_ROLLOUT = 12
_FALSE_ALARM = 1e-6
_DRAWS_PER_PAIR = 500
_EXPECTED_COUNT = 5.0  # of a cell of the χ² statistic


def check_generative_model(
    model: GenerativeModel,
    *,
    mdp: FiniteMDP | None = None,
    env: gym.Env[Any, Any] | None = None,
    seed: int = 0,
    n_draws: int = 200_000,
) -> None:
    """Check that ``model`` keeps the promises of `GenerativeModel`; raise an `AssertionError` if it does not.

    What is checked: the interface; shapes, types and membership in the spaces; that calls change neither their
    arguments nor NumPy's global stream, and depend on nothing but their arguments (the same seed gives the same draws
    whatever was called before); that ``rng`` is used; that absorbing states stay; with ``mdp``, that the draws follow
    its initial distribution and its transitions; with ``env``, that the environment behind the model is left as it was.

    Parameters
    ----------
    model
        The model to check.
    mdp
        The exact distributions, for a model with the same states and actions.
    env
        The environment that the model uses. It is reset and stepped, with and without calls of the model in between.
    seed
        Seed of everything drawn here.
    n_draws
        About how many transitions are drawn for the comparison with ``mdp``. At least 500 go to each pair examined; if
        they do not suffice for all pairs, a random part of these is examined.

    Examples
    --------
    >>> import lfd_gym as lfd
    >>> from lfd_gym.testing import check_generative_model
    >>> mdp = lfd.FiniteMDP([[[0.5, 0.5]], [[0.0, 1.0]]], initial_distribution=[1.0, 0.0], discount=0.9)
    >>> check_generative_model(lfd.as_generative_model(mdp), mdp=mdp)
    """
    _check_interface(model)
    count("seed", seed, 0)
    count("n_draws", n_draws)
    sample = _collect(model, seed)
    _check_inputs_unchanged(model, sample, seed)
    _check_stateless(model, sample, seed)
    _check_initial(model, seed)
    _check_next(model, sample)
    _check_observations(model, sample)
    _check_absorbing(model, sample)
    _check_rng_used(model, sample, seed)
    if mdp is not None:
        _check_initial_distribution(model, mdp, seed, n_draws)
        _check_kernel(model, mdp, seed, n_draws)
    if env is not None:
        _check_env_untouched(model, env, sample, seed)


@dataclass(frozen=True)
class _Sample:
    """Pairs met on the way from initial states under random actions, each of them `_REPEATS` times in a row."""

    states: NDArray[Any]
    actions: NDArray[Any]
    successors: NDArray[Any]


def _require(condition: bool | np.bool_, check: str, found: str) -> None:
    if not condition:
        raise AssertionError(f"check_generative_model, {check}: {found}")


def _generator(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def _same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    left, right = np.asarray(left), np.asarray(right)
    return left.shape == right.shape and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")


# -- interface, shapes, spaces -----------------------------------------------------------------------------------------


def _check_interface(model: GenerativeModel) -> None:
    for name in ("state_space", "action_space", "observation_space"):
        _require(isinstance(getattr(model, name, None), gym.Space), "interface", f"{name} is not a gymnasium.Space")
    for name, n_arguments in (("sample_initial", 2), ("sample_next", 3), ("observe", 1), ("is_absorbing", 1)):
        method = getattr(model, name, None)
        _require(callable(method), "interface", f"there is no method {name}")
        try:
            inspect.signature(method).bind(*range(n_arguments))  # type: ignore[arg-type]
        except TypeError:
            _require(False, "interface", f"{name} does not take {n_arguments} arguments")


def _collect(model: GenerativeModel, seed: int) -> _Sample:
    """Follow random actions from initial states; the draws of this rollout are checked elsewhere."""
    rng = _generator(seed, 0)
    space = copy.deepcopy(model.action_space)  # drawing from the model's own space would change its environment's
    space.seed(seed)
    states = np.asarray(model.sample_initial(_BATCH, rng))
    _check_batch("sample_initial", states, model.state_space, _BATCH, np.zeros(_BATCH, dtype=np.bool_))
    visited, played = [], []
    for step in range(_ROLLOUT):
        actions = np.stack([np.asarray(space.sample()) for _ in range(_BATCH)])
        if step % 3 == 0:
            visited.append(states[: _BATCH // 3])
            played.append(actions[: _BATCH // 3])
        successors = np.asarray(model.sample_next(states.copy(), actions.copy(), rng))
        found = f"sample_next returned shape {successors.shape} for states of shape {states.shape}"
        _require(successors.shape == states.shape, "shapes", found)
        states = successors
    states = np.repeat(np.concatenate(visited), _REPEATS, axis=0)
    actions = np.repeat(np.concatenate(played), _REPEATS, axis=0)
    return _Sample(states, actions, np.array(model.sample_next(states.copy(), actions.copy(), rng)))


def _check_batch(
    method: str, batch: NDArray[Any], space: gym.Space[Any], size: int, absorbing: NDArray[np.bool_]
) -> None:
    shape = (size, *(space.shape or ()))
    _require(batch.shape == shape, "shapes", f"{method} returned an array of shape {batch.shape} instead of {shape}")
    wanted = np.dtype(space.dtype)
    kinds = {"i": "iu", "u": "iu"}.get(wanted.kind, wanted.kind)
    _require(batch.dtype.kind in kinds, "types", f"{method} returned {batch.dtype}, but its space holds {wanted}")
    for k in np.flatnonzero(~absorbing):
        element = batch[k].astype(wanted)
        _require(space.contains(element), "spaces", f"{method} returned {batch[k]}, which is not in {space}")


def _check_initial(model: GenerativeModel, seed: int) -> None:
    for size in (0, 1, 5):
        states = np.asarray(model.sample_initial(size, _generator(seed, 1)))
        _check_batch("sample_initial", states, model.state_space, size, np.zeros(size, dtype=np.bool_))


def _check_next(model: GenerativeModel, sample: _Sample) -> None:
    for states in (sample.states, sample.successors):
        ended = np.asarray(model.is_absorbing(states))
        is_mask = ended.shape == (len(states),) and ended.dtype == np.bool_
        _require(is_mask, "types", f"is_absorbing returned shape {ended.shape} and {ended.dtype}, not one bool a state")
        _check_batch("sample_next", states, model.state_space, len(states), ended)
    empty = np.asarray(model.sample_next(sample.states[:0], sample.actions[:0], _generator(0)))
    _check_batch("sample_next", empty, model.state_space, 0, np.zeros(0, dtype=np.bool_))


def _check_observations(model: GenerativeModel, sample: _Sample) -> None:
    for states in (sample.states, sample.successors, sample.states[:0]):
        observations = np.asarray(model.observe(states))
        ended = np.asarray(model.is_absorbing(states))
        _check_batch("observe", observations, model.observation_space, len(states), ended)
        again = model.observe(states)
        _require(
            _same(observations, again), "determinism", "observe returned two different answers for the same states"
        )


# -- absorbing states --------------------------------------------------------------------------------------------------


def _check_absorbing(model: GenerativeModel, sample: _Sample) -> None:
    rng = _generator(0)
    candidates = sample.successors
    if isinstance(model.state_space, gym.spaces.Discrete):
        first = int(model.state_space.start)
        candidates = np.arange(first, first + min(int(model.state_space.n), 1_000_000))
    states = candidates[np.asarray(model.is_absorbing(candidates))]
    if len(states) == 0:
        return
    kept = np.resize(np.arange(len(states)), len(sample.actions))  # with every action of the sample
    states = states[kept]
    after = np.asarray(model.sample_next(states, sample.actions, rng))
    _require(_same(after, states), "absorbing states", "sample_next leaves an absorbing state")


# -- arguments and seeds alone decide ----------------------------------------------------------------------------------


def _calls(model: GenerativeModel, sample: _Sample) -> dict[str, Callable[[np.random.Generator], NDArray[Any]]]:
    return {
        "sample_initial": lambda rng: np.array(model.sample_initial(_BATCH, rng)),
        "sample_next": lambda rng: np.array(model.sample_next(sample.states, sample.actions, rng)),
    }


def _check_inputs_unchanged(model: GenerativeModel, sample: _Sample, seed: int) -> None:
    states, actions = sample.states.copy(), sample.actions.copy()
    stream = np.random.get_state(legacy=False)  # noqa: NPY002 - to see whether the model touches it
    successors = np.asarray(model.sample_next(states, actions, _generator(seed, 2)))
    model.sample_initial(_BATCH, _generator(seed, 2))
    model.observe(states)
    model.is_absorbing(states)
    _require(_same(states, sample.states), "inputs unchanged", "a call changed the states it was given")
    _require(_same(actions, sample.actions), "inputs unchanged", "a call changed the actions it was given")
    shared = np.shares_memory(successors, states)
    _require(not shared, "inputs unchanged", "sample_next returned a view of the states it was given")
    after: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    same = after["state"]["pos"] == stream["state"]["pos"] and _same(after["state"]["key"], stream["state"]["key"])
    _require(same, "rng", "a call drew from NumPy's global stream instead of rng")


def _check_stateless(model: GenerativeModel, sample: _Sample, seed: int) -> None:
    """Repeat calls with the same seed, at once and after other calls."""
    for name, call in _calls(model, sample).items():
        first = call(_generator(seed, 3))
        again = call(_generator(seed, 3))
        _require(_same(first, again), "determinism", f"{name} drew differently with the same seed")
        model.sample_initial(3, _generator(seed, 4))
        model.sample_next(sample.states[::-1], sample.actions[::-1], _generator(seed, 5))
        model.observe(sample.successors)
        after = call(_generator(seed, 3))
        _require(_same(first, after), "statelessness", f"{name} depends on the calls before it")


def _check_rng_used(model: GenerativeModel, sample: _Sample, seed: int) -> None:
    """If the draws of one batch differ where they need not, two seeds have to give two batches."""
    for name, call in _calls(model, sample).items():
        first, second = call(_generator(seed, 6)), call(_generator(seed, 7))
        groups = first.reshape(-1, _REPEATS, *first.shape[1:]) if name == "sample_next" else first[None]
        is_random = not _same(groups, np.repeat(groups[:, :1], groups.shape[1], axis=1))
        ignored = is_random and _same(first, second)
        _require(not ignored, "rng", f"{name} draws at random, but two different seeds gave the same draws")
        if name == "sample_next" and not is_random and _same(first, second):
            order = _generator(seed, 8).permutation(len(first))
            shuffled = np.asarray(model.sample_next(sample.states[order], sample.actions[order], _generator(seed, 6)))
            together = "sample_next treats a pair differently depending on its place in the batch"
            _require(_same(shuffled, first[order]), "batch order", together)


# -- agreement with exact distributions --------------------------------------------------------------------------------


def _check_initial_distribution(model: GenerativeModel, mdp: FiniteMDP, seed: int, n_draws: int) -> None:
    if not isinstance(mdp, FiniteMDP):
        raise TypeError(f"mdp must be a FiniteMDP, got {type(mdp).__name__}")
    spaces = (gym.spaces.Discrete(mdp.n_states), gym.spaces.Discrete(mdp.n_actions))
    found = f"the model has {model.state_space} and {model.action_space}, the MDP {spaces[0]} and {spaces[1]}"
    _require((model.state_space, model.action_space) == spaces, "exact kernel", found)
    drawn = [model.sample_initial(n_draws // 4 + 1, _generator(seed, 9, part)) for part in range(4)]
    counts = np.bincount(np.concatenate(drawn), minlength=mdp.n_states)
    support = np.flatnonzero(mdp.initial_distribution)
    statistic, freedom = _chi_square(counts, support, mdp.initial_distribution[support], "initial distribution", "")
    _require_fit(statistic, freedom, "initial distribution", "sample_initial")


def _check_kernel(model: GenerativeModel, mdp: FiniteMDP, seed: int, n_draws: int) -> None:
    n_pairs = mdp.n_states * mdp.n_actions
    examined = min(n_pairs, max(n_draws // _DRAWS_PER_PAIR, 1))
    pairs = _generator(seed, 10).choice(n_pairs, size=examined, replace=False)
    states, actions = np.divmod(pairs, mdp.n_actions)
    per_batch = max(n_draws // examined, _DRAWS_PER_PAIR) // 4
    repeated = np.repeat(np.arange(examined), per_batch)
    drawn = [  # with four seeds, so that a model that ignores rng is found out
        model.sample_next(states[repeated], actions[repeated], _generator(seed, 11, part)) for part in range(4)
    ]
    by_pair = np.stack(drawn).reshape(4, examined, per_batch)
    total, total_freedom = 0.0, 0
    for k, (pair, state, action) in enumerate(zip(pairs, states, actions, strict=True)):
        row = mdp.transitions[[pair], :]
        counts = np.bincount(by_pair[:, k].ravel(), minlength=mdp.n_states)
        where = f" from state {state} under action {action}"
        statistic, freedom = _chi_square(counts, row.indices, row.data, "exact kernel", where)
        total, total_freedom = total + statistic, total_freedom + freedom
    _require_fit(total, total_freedom, "exact kernel", "sample_next")


def _chi_square(
    counts: IntArray, support: NDArray[Any], probabilities: FloatArray, check: str, where: str
) -> tuple[float, int]:
    """Return Pearson's statistic and its degrees of freedom; unlikely outcomes are counted together."""
    observed = counts[support]
    if observed.sum() < counts.sum():
        strange = int(np.setdiff1d(np.flatnonzero(counts), support)[0])
        _require(False, check, f"state {strange} was drawn{where}, which has probability zero")
    order = np.argsort(probabilities)
    expected = counts.sum() * probabilities[order]
    before = np.cumsum(expected) - expected
    # Cells are cut where the running total of expected counts passes a multiple of the least count; the rest at the end
    # joins the last cell.
    last = max(expected.sum() // _EXPECTED_COUNT - 1, 0)
    cells = np.unique(np.minimum(before // _EXPECTED_COUNT, last), return_inverse=True)[1]
    expected_in_cell = np.bincount(cells, weights=expected)
    observed_in_cell = np.bincount(cells, weights=observed[order])
    statistic = ((observed_in_cell - expected_in_cell) ** 2 / expected_in_cell).sum()
    return float(statistic), expected_in_cell.size - 1


def _require_fit(statistic: float, freedom: int, check: str, method: str) -> None:
    if freedom == 0:
        return  # every outcome is certain, and no other was drawn
    level = float(chdtrc(freedom, statistic))
    found = f"the draws of {method} have χ² = {statistic:.1f} on {freedom} degrees of freedom (p = {level:.1e})"
    _require(level > _FALSE_ALARM, check, f"{found}: they do not follow the exact distribution")


# -- the environment behind the model ----------------------------------------------------------------------------------


def _check_env_untouched(model: GenerativeModel, env: gym.Env[Any, Any], sample: _Sample, seed: int) -> None:
    """Compare an episode with and without calls of the model between its steps."""
    alone = _episode(env, seed, lambda: None)

    def use_model() -> None:
        rng = _generator(seed, 12)
        model.sample_initial(2, rng)
        model.sample_next(sample.states[-9:], sample.actions[-9:], rng)
        model.observe(sample.states[:2])

    together = _episode(env, seed, use_model)
    _require(
        len(alone) == len(together) and all(map(_same, alone, together)),
        "environment untouched",
        "an episode of the environment changes if the model is used between its steps",
    )


def _episode(env: gym.Env[Any, Any], seed: int, between: Callable[[], None]) -> list[NDArray[Any]]:
    """Record two episodes, the second with the stream the first one left."""
    record: list[NDArray[Any]] = []
    env.action_space.seed(seed)
    for start in (seed, None):
        observation, _ = env.reset(seed=start)
        record.append(np.asarray(observation))
        for _ in range(_ROLLOUT):
            between()
            observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            record += [np.asarray(observation), np.asarray([reward, terminated, truncated], dtype=np.float64)]
            if terminated or truncated:
                break
    return record
