"""All learners by name; a learner's module is imported only when it is asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib import import_module
from typing import Any

from lfd_gym.baselines.learner import Learner

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
    "lpal": "exact:Lpal",
    "mce_irl": "mce_irl:MceIrl",
    "mirror_descent": "saddle_point:MirrorDescent",
    "mwal": "apprenticeship:Mwal",
    "plug_in": "exact:PlugIn",
    "primal_dual_hybrid": "saddle_point:PrimalDualHybrid",
    "random": "reference_policies:Random",
    "tabular_bc": "counting:TabularBC",
}


def learner_names() -> list[str]:
    """Return the names of all registered learners, sorted."""
    return sorted(_LEARNERS)


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
        module, _, attribute = factory.partition(":")
        factory = getattr(import_module(f"lfd_gym.baselines.{module}"), attribute)
    if dataclasses.is_dataclass(factory):
        known = [part.name for part in dataclasses.fields(factory)]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise ValueError(f"learner {name!r} has no setting {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    learner: Learner = factory(**settings)
    return learner


def register_learner(name: str, factory: Callable[..., Learner]) -> None:
    """Add a learner under a new name, so that benchmarks and the command line find it."""
    if name in _LEARNERS:
        raise ValueError(f"learner {name!r} is registered already")
    _LEARNERS[name] = factory
