"""What every learner is: a task, a budget and a generator in, a result out."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from lfd_gym.policies.policy import Policy, as_policy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task
from lfd_gym.validation import FloatArray


@dataclass(frozen=True, eq=False)
class LearningResult:
    """A learned policy with everything that goes beside it.

    Attributes
    ----------
    policy
        Anything that `lfd_gym.as_policy` takes is turned into a `Policy`.
    cost_weights
        (n_c,) weights of the cost that explains the expert, if the learner finds any.
    values
        The value function of that cost: (S,), or a function of observations.
    resources
        What learning took. A learner fills in what it counts; time and memory are measured for it.
    facts
        Anything else worth recording; JSON values.
    history
        (iteration, residual) pairs on the way.
    learner, reason
        Which learner it was, and why it was chosen, if it was not asked for.
    """

    policy: Policy
    cost_weights: FloatArray | None = None
    values: Any = None
    resources: Resources = field(default_factory=Resources)
    facts: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[tuple[int, float], ...] = ()
    learner: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", as_policy(self.policy))

    def __repr__(self) -> str:
        return f"LearningResult({self.learner}: {self.policy}, {self.resources})"


class Learner(ABC):
    """A way to learn from demonstrations; its settings are the fields of a frozen dataclass.

    Attributes
    ----------
    needs
        The access without which it cannot learn.
    asks_expert
        Whether it asks the expert for actions while it learns, which the others may not.
    budget_unit
        What a budget counts; empty for learners that take none.
    default_budget
        The budget at which the settings were chosen; 0 for learners that take none.
    """

    needs: ClassVar[Access] = "demonstrations"
    asks_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = ""
    default_budget: ClassVar[int] = 0

    @property
    def name(self) -> str:
        """What the learner is called: its class in small letters, with underscores between words."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()

    @abstractmethod
    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Learn a policy for ``task``; the budget is 0 for a learner that takes none."""

    def budget_for(self, task: Task) -> int:
        """Return the budget if none is asked for."""
        return self.default_budget

    def quiet(self) -> Learner:
        """Return the same learner, one that shows no progress."""
        return self
