"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import importlib.util
import pkgutil

import pytest

import lfd_gym

MODULES = sorted(
    found.name for found in pkgutil.walk_packages(lfd_gym.__path__, "lfd_gym.") if not found.name.endswith("__main__")
)
#: What `pip install lfd-gym` leaves out. With `imitation` installed all of it must be there.
EXTRAS = {"imitation", "stable_baselines3", "torch", "minari", "mujoco", "seals", "highspy", "ray", "quantecon"}
CORE_ONLY = importlib.util.find_spec("imitation") is None


def load(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing_extra = (error.name or "").split(".")[0] in EXTRAS or "pip install 'lfd-gym[" in str(error)
        if CORE_ONLY and missing_extra:
            pytest.skip(f"{name}: {error}")
        raise


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    module = load(name)
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.failed == 0


def test_the_public_classes_have_examples():
    """Guards against a finder that finds nothing."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [test for test in finder.find(lfd_gym.FiniteMDP, "FiniteMDP") if test.examples]
    assert examples
    assert {"lfd_gym.model.mdp", "lfd_gym.envs.garnet", "lfd_gym.baselines.learner"} <= set(MODULES)
