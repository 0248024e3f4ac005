"""Mixtures that choose once an episode which of several policies plays it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import checked
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.policies.files import policy_from_data, policy_to_data
from lfd_gym.policies.policy import Actor, Arrays, Policy
from lfd_gym.validation import IntArray, distribution


class MixturePolicy(Policy):
    """At the start of an episode, policy k is chosen with probability w_k; it plays the episode to its end.

    Its expected costs are the weighted means of those of the policies, for every cost and in every environment. It is
    no policy that looks at the present observation alone, so that ``sample``, ``greedy`` and ``probabilities``, which
    know of no episode, are refused. `lfd_gym.mixture_policy` finds such a one of the same expected costs, on a finite
    MDP.

    ``predict`` follows Stable-Baselines3's convention for recurrent policies: it returns a state, which holds the
    choices and is to be handed back at the next step. Without one, or where ``episode_start`` is true, it chooses anew.

    Parameters
    ----------
    policies
        Whatever `lfd_gym.as_policy` takes.
    weights
        Their probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> left, right = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> mixture = MixturePolicy([left, right], weights=[0.5, 0.5])
    >>> act = mixture.start(4, np.random.default_rng(0))
    >>> everyone, seen = np.arange(4), np.zeros(4, dtype=int)
    >>> bool((act(everyone, seen) == act(everyone, seen)).all())
    True
    """

    kind: ClassVar[str] = "mixture"

    @checked
    def __init__(self, policies: Sequence[PolicyLike], weights: ArrayLike) -> None:
        self.policies = tuple(as_policy(policy) for policy in policies)
        self.weights = distribution("weights", weights, len(self.policies))
        actions = [policy.action_space for policy in self.policies if policy.action_space is not None]
        if any(space != actions[0] for space in actions):
            raise ValueError(f"policies must act in one space, got {actions}")
        self.action_space = actions[0] if actions else None
        seen = (policy.outer_observation_space or policy.observation_space for policy in self.policies)
        self.take_observations_of(next((space for space in seen if space is not None), None))

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Refuse: only episodes can be played."""
        self._refuse()

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Refuse: only episodes can be played."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(
            f"{self} chooses once an episode, so that its actions do not follow from an observation: begin episodes "
            "with start(n, rng), as collecting and evaluating do, or keep the state of predict"
        )

    def start(self, n: int, rng: np.random.Generator, *, deterministic: bool = False) -> Actor:
        """Choose who plays each of ``n`` episodes; if ``deterministic``, by their best actions."""
        chosen = self._choose(n, rng)
        place = np.empty(n, dtype=np.int64)  # of an episode among those of the policy that plays it
        actors: dict[int, Actor] = {}
        for k in np.unique(chosen):
            own = np.flatnonzero(chosen == k)
            place[own] = np.arange(own.size)
            actors[k] = self.policies[k].start(own.size, rng, deterministic=deterministic)

        def act(who: IntArray, observations: NDArray[Any]) -> NDArray[Any]:
            players = chosen[who]
            rows = {k: np.flatnonzero(players == k) for k in np.unique(players)}
            return _merged({k: actors[k](place[who[own]], observations[own]) for k, own in rows.items()}, rows)

        return act

    def act(
        self,
        observations: NDArray[Any],
        rng: np.random.Generator,
        *,
        state: Any = None,
        starts: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Let those act who were chosen; ``state`` holds the choices, and what each policy remembers."""
        n = len(observations)
        if state is None:
            state, starts = (np.zeros(n, dtype=np.int64), (None,) * len(self.policies)), np.ones(n, dtype=bool)
        starts = np.zeros(n, dtype=bool) if starts is None else starts
        chosen, memories = state[0].copy(), list(state[1])
        chosen[starts] = self._choose(int(starts.sum()), rng)
        taken, rows = {}, {k: np.flatnonzero(chosen == k) for k in np.unique(chosen)}
        for k, own in rows.items():
            # All observations: a memory cannot be divided. Where another policy plays, what is remembered is never
            # used, because this one takes over at the start of an episode only.
            actions, memories[k] = self.policies[k].act(
                observations, rng, state=memories[k], starts=starts, deterministic=deterministic
            )
            taken[k] = actions[own]
        return _merged(taken, rows), (chosen, tuple(memories))

    def _choose(self, n: int, rng: np.random.Generator) -> IntArray:
        return np.asarray(rng.choice(len(self.policies), size=n, p=self.weights), dtype=np.int64)

    @contextmanager
    def acting(self, rng: np.random.Generator) -> Iterator[None]:
        """As each of the policies."""
        with ExitStack() as stack:
            for policy in self.policies:
                stack.enter_context(policy.acting(rng))
            yield

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return the weights and what files keep of the policies."""
        parts = [policy_to_data(policy) for policy in self.policies]
        arrays = {f"{k}:{name}": array for k, (_, own) in enumerate(parts) for name, array in own.items()}
        return {"policies": [data for data, _ in parts]}, {"weights": self.weights, **arrays}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> MixturePolicy:
        """Return the mixture of the kept policies."""
        policies = []
        for k, part in enumerate(data["policies"]):
            own = {name: array for name, array in arrays.items() if name.startswith(f"{k}:")}
            policies.append(policy_from_data(part, {name.removeprefix(f"{k}:"): own[name] for name in own}))
        return cls(policies, arrays["weights"])

    def __repr__(self) -> str:
        return f"MixturePolicy({len(self.policies)} policies)"


def _merged(actions: Mapping[int, NDArray[Any]], rows: Mapping[int, IntArray]) -> NDArray[Any]:
    """Return the actions that each policy took on its own rows, in the order of the rows."""
    order = np.concatenate(list(rows.values())).argsort()
    return np.asarray(np.concatenate([actions[k] for k in rows])[order])
