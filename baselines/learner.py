"""What every learner is, a task, a budget and a generator in, a result out; and all of them by name."""

from __future__ import annotations

import dataclasses
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from lfd_gym.arguments import check_fields, checked
from lfd_gym.costs.costs import Costs
from lfd_gym.costs.recovered import RecoveredCost
from lfd_gym.policies.conversion import as_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task
from lfd_gym.validation import FloatArray, finite_array

#: Into so many equal parts checkpoints divide a budget.
_N_PARTS = 10


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A policy that a learner had on the way, after so much of its budget."""

    after: int
    policy: Policy


def checkpoints_at(budget: int) -> list[int]:
    """Return after how much of a budget checkpoints are kept: every tenth of it but the last, which is the result."""
    return sorted({budget * k // _N_PARTS for k in range(1, _N_PARTS)} - {0})


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
    costs
        Those of the task, which ``cost_weights`` weigh.
    checkpoints
        Policies on the way, of learners whose policy comes and goes: what the best of them would have been worth is
        for comparisons alone, since to choose it takes the reward. Files do not keep them.
    """

    policy: Policy
    cost_weights: FloatArray | None = None
    values: Any = None
    resources: Resources = field(default_factory=Resources)
    facts: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[tuple[int, float], ...] = ()
    learner: str = ""
    reason: str = ""
    costs: Costs | None = None
    checkpoints: tuple[Checkpoint, ...] = ()

    @property
    def cost(self) -> RecoveredCost | None:
        """The cost that explains the expert, as a function (observations, actions) → (n,); None if none was found.

        It makes rewards, to retrain on here or elsewhere: see `RecoveredCost`.
        """
        if self.cost_weights is None or self.costs is None:
            return None
        return RecoveredCost(self.costs, self.cost_weights)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", as_policy(self.policy))
        if self.cost_weights is not None:
            object.__setattr__(self, "cost_weights", finite_array("cost_weights", self.cost_weights, (None,)))
        check_fields(self)

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
    needs_actions
        Whether the demonstrations must say what was done; learners that match expected costs need what was seen only.
    discounted
        Whether it solves the discounted problem without end, also where only the first steps count for the task.
    budget_unit
        What a budget counts; empty for learners that take none.
    default_budget
        The budget at which the settings were chosen; 0 for learners that take none.
    """

    needs: ClassVar[Access] = "demonstrations"
    asks_expert: ClassVar[bool] = False
    needs_actions: ClassVar[bool] = False
    discounted: ClassVar[bool] = False
    budget_unit: ClassVar[str] = ""
    default_budget: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Refuse settings of another kind than their annotations say, and NaN; subclasses with more to say go on."""
        learner: Any = self  # a class of somebody else's need not be a dataclass
        if not dataclasses.is_dataclass(learner):
            return
        check_fields(learner)
        for setting in dataclasses.fields(learner):
            value = getattr(learner, setting.name)
            if isinstance(value, float) and math.isnan(value):
                raise ValueError(f"{setting.name} must be a number, got nan")

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


# -- all learners by name -------------------------------------------------------------------------------------------

#: Name → "module:class" (imported on demand), or a function that takes settings and returns a learner.
_LEARNERS: dict[str, str | Callable[..., Learner]] = {
    "abbeel_ng": "apprenticeship:AbbeelNg",
    "airl": "adversarial:Airl",
    "apprentice_bc": "counting:ApprenticeBC",
    "bc": "behavioral_cloning:BehavioralCloning",
    "cutting_plane": "exact:CuttingPlane",
    "dagger": "dagger:Dagger",
    "expert": "reference_policies:Expert",
    "gail": "adversarial:Gail",
    "grid": "grid:GridApprentice",
    "iq_learn": "iq_learn:IqLearn",
    "iq_learn_offline": "iq_learn:IqLearnOffline",
    "lpal": "exact:Lpal",
    "mce_irl": "mce_irl:MceIrl",
    "mirror_descent": "saddle_point:MirrorDescent",
    "mwal": "apprenticeship:Mwal",
    "plug_in": "exact:PlugIn",
    "primal_dual_hybrid": "saddle_point:PrimalDualHybrid",
    "primal_dual_rl": "primal_dual_rl:PrimalDualRl",
    "random": "reference_policies:Random",
    "sqil": "sqil:Sqil",
    "tabular_bc": "counting:TabularBC",
}

#: Those of the library `imitation`; the others with networks need Stable-Baselines3 only.
_OF_IMITATION = ("airl", "bc", "dagger", "gail", "mce_irl")


def learner_names() -> list[str]:
    """Return the names of all registered learners, sorted."""
    return sorted(_LEARNERS)


@checked
def make_learner(name: str, **settings: Any) -> Learner:
    """Return a learner by its name.

    Parameters
    ----------
    name
        One of `learner_names`; ``module:name`` imports the module that registers it first, as `gymnasium.make` does
        with environments.
    **settings
        What to change in its settings, see ``docs/baselines.md``.

    Examples
    --------
    >>> make_learner("tabular_bc")
    TabularBC()
    """
    module, _, name = name.rpartition(":")
    if module:
        import_module(module)
    if name not in _LEARNERS:
        raise ValueError(f"there is no learner {name!r}; there are {', '.join(learner_names())}")
    factory = _LEARNERS[name]
    if isinstance(factory, str):
        factory = _imported(name, *factory.split(":"))
    if dataclasses.is_dataclass(factory):
        known = [part.name for part in dataclasses.fields(factory)]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise ValueError(f"learner {name!r} has no setting {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    learner: Learner = factory(**settings)
    return learner


def _imported(name: str, module: str, attribute: str) -> Any:
    """Return the class of a learner, or say which extra it needs and what does without."""
    try:
        return getattr(import_module(f"lfd_gym.baselines.{module}"), attribute)
    except ImportError as error:
        extra = "imitation" if name in _OF_IMITATION else "sb3"
        advice = f"learner {name!r} needs the {extra!r} extra: pip install 'lfd-gym[{extra}]'"
        if name in _OF_IMITATION:
            advice += (
                ", which asks for Gymnasium 0.29. On any line the extra 'sb3' has 'iq_learn_offline', which learns "
                "from data alone, and 'primal_dual_rl', which also plays"
            )
        raise ImportError(f"{advice} ({error.__cause__ or error})") from error


@checked
def register_learner(name: str, factory: Callable[..., Learner]) -> None:
    """Add a learner under a new name, so that benchmarks and the command line find it."""
    if name in _LEARNERS:
        raise ValueError(f"learner {name!r} is registered already")
    _LEARNERS[name] = factory
