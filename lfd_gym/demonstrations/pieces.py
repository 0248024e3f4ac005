"""Estimates from rollouts that are spread over workers, the same whatever their number.

Rollouts are cut into pieces, whose number depends on nothing but how many rollouts there are, and each piece has a
generator of its own, seeded from the caller's. So it does not matter who plays which piece, nor when.

Workers play in copies. A copy may be another environment: what was changed after an environment was made is lost where
that is copied by making it anew, as those of MuJoCo and Box2D are. So one rollout is first played both here and there,
and what differs is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym._splitmix import draw_seeds
from lfd_gym.costs.costs import Costs
from lfd_gym.demonstrations.environments import is_environment
from lfd_gym.demonstrations.estimation import CostEstimate
from lfd_gym.demonstrations.rollout_costs import Returns, played_costs, sampled_costs
from lfd_gym.engines import Engine, Outcome
from lfd_gym.model.criterion import Criterion
from lfd_gym.policies.conversion import as_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import UniformPolicy

#: The policy, the first rollout and the one after the last, and what drives them → what was found.
Play: TypeAlias = Callable[[Policy, int, int, np.random.Generator], tuple[CostEstimate, Returns | None]]

_N_PIECES = 32
#: Pieces have no time limit of their own; engines want a number.
_SECONDS = 1e8
#: How alike costs are that are computed in two processes.
_ALIKE = 1e-9


@dataclass(frozen=True, eq=False)
class _Piece:
    number: int
    policy: Policy
    first: int
    last: int
    seed: int


def in_pieces(
    engine: Engine,
    play: Play,
    policy: Policy,
    action_space: gym.Space[Any],
    n_rollouts: int,
    rng: np.random.Generator,
) -> tuple[CostEstimate, Returns | None]:
    """Return what ``n_rollouts`` of ``policy`` find, played by the workers of ``engine``.

    Parameters
    ----------
    engine
        What runs the pieces.
    play
        Plays rollouts; it is copied to the workers, with all that it holds.
    policy
        What plays.
    action_space
        What random play draws from, which shows whether copies of the environment are alike: it computes the same in
        every process, which networks need not.
    n_rollouts
        How many.
    rng
        Where the seeds of the pieces come from.
    """
    n_pieces = min(_N_PIECES, n_rollouts)
    cuts = np.linspace(0, n_rollouts, n_pieces + 1).astype(int).tolist()
    seeds = draw_seeds(n_pieces + 1, rng).tolist()
    tried = _Piece(-1, _anybody(action_space), 0, 1, seeds[-1])
    here = _played(play, tried)
    pieces = [_Piece(k, policy, cuts[k], cuts[k + 1], seeds[k]) for k in range(n_pieces)]
    found: dict[int, Outcome] = {}
    for piece, outcome in engine.run(partial(_played, play), [tried, *pieces], _SECONDS):
        found[piece.number] = outcome
    failed = next((outcome.error for outcome in found.values() if outcome.error), "")
    if failed:
        raise RuntimeError(f"rollouts have failed in another process: {failed}")
    if not _alike(here, found[tried.number].value):
        raise ValueError(
            "engine must be None for this task: a copy of the environment in another process does not behave as the "
            "one here. What is changed after an environment was made is often lost in copies"
        )
    return _joined([found[k].value for k in range(n_pieces)])


def rollouts(
    source: Any,
    costs: Costs,
    criterion: Criterion,
    horizon: int,
    policy: Policy,
    first: int,
    last: int,
    rng: np.random.Generator,
    *,
    initial_states: NDArray[Any] | None = None,
) -> tuple[CostEstimate, Returns | None]:
    """Play rollouts ``first`` to ``last`` − 1 in an environment or a generative model, see `played_costs`."""
    n = last - first
    if is_environment(source):
        return played_costs(policy, source, costs, criterion, n_episodes=n, horizon=horizon, rng=rng)
    states = None if initial_states is None else initial_states[first:last]
    estimate = sampled_costs(
        policy, source, costs, criterion, n_rollouts=n, horizon=horizon, rng=rng, initial_states=states
    )
    return estimate, None


def _anybody(space: gym.Space[Any]) -> Policy:
    if isinstance(space, gym.spaces.Box) and not space.is_bounded():
        return as_policy(lambda seen: np.zeros((len(seen), *space.shape), space.dtype))
    return UniformPolicy(space)


def _played(play: Play, piece: _Piece) -> tuple[CostEstimate, Returns | None]:
    return play(piece.policy, piece.first, piece.last, np.random.default_rng(piece.seed))


def _alike(one: tuple[CostEstimate, Returns | None], other: tuple[CostEstimate, Returns | None]) -> bool:
    ours, theirs = (
        np.concatenate([part.values, part.unseen_mass, *([] if gained is None else [gained.totals, gained.lengths])])
        for part, gained in (one, other)
    )
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=_ALIKE, atol=_ALIKE, equal_nan=True)


def _joined(parts: list[tuple[CostEstimate, Returns | None]]) -> tuple[CostEstimate, Returns | None]:
    estimates = [estimate for estimate, _ in parts]
    gains = [gained for _, gained in parts if gained is not None]

    def all_of(name: str, of: list[Any]) -> Any:
        return np.concatenate([getattr(part, name) for part in of])

    sums, horizons = all_of("trajectory_values", estimates), {estimate.horizon for estimate in estimates}
    joined = replace(
        estimates[0],
        values=sums.mean(axis=0),
        trajectory_values=sums,
        unseen_mass=all_of("unseen_mass", estimates),
        horizon=horizons.pop() if len(horizons) == 1 else None,
        n_steps=sum(estimate.n_steps for estimate in estimates),
    )
    returns = Returns(*(all_of(name, gains) for name in ("totals", "discounted", "lengths"))) if gains else None
    return joined, returns
