"""Compiled kernels are those of the sources as they are now."""

import os
import shutil
import subprocess
import sys

import lfd_gym._jit

INNER = "from _jit import jit_inline\n\n@jit_inline\ndef inner(x):\n    return x + {number}\n"
MIDDLE = "from _jit import jit\nfrom inner import inner\n\n@jit\ndef middle(x):\n    return inner(x)\n"
OUTER = "from _jit import jit\nfrom middle import middle\n\n@jit\ndef outer(x):\n    return middle(x)\n"


def test_a_changed_callee_in_another_file_is_compiled_anew(tmp_path):
    shutil.copy(lfd_gym._jit.__file__, tmp_path)  # alone, so that each run starts fast
    (tmp_path / "middle.py").write_text(MIDDLE)
    (tmp_path / "outer.py").write_text(OUTER)

    def result_and_cache_hits():
        code = "from outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"
        run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return run.stdout.split()

    (tmp_path / "inner.py").write_text(INNER.format(number=10))
    assert result_and_cache_hits() == ["11", "0"]
    assert result_and_cache_hits() == ["11", "1"]
    (tmp_path / "inner.py").write_text(INNER.format(number=20))
    assert result_and_cache_hits() == ["21", "0"]


def test_without_a_place_for_compiled_code_it_is_compiled_every_time():
    """Where neither the package nor the home can be written to, numba finds no place and says so at the import."""
    code = """
import numba.core.caching as caching
for kind in vars(caching).values():
    if hasattr(kind, "_locator_classes"):
        kind._locator_classes = []
import numpy as np, lfd_gym as lfd
mdp = lfd.FiniteMDP(np.array([[0.0, 1.0], [1.0, 0.0]]), [1.0, 0.0], 0.5)
print(mdp.occupancy(np.ones((2, 1))).sum())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-1000:]
    assert abs(float(done.stdout) - 1) < 1e-9


def test_without_the_compiler_kernels_are_plain_functions():
    """As debuggers and `make coverage` need it; the answer is the same."""
    code = """
import numpy as np, lfd_gym as lfd
from lfd_gym.model import _planning_kernels
mdp = lfd.FiniteMDP(np.array([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), [1.0, 0.0], 0.9)
print(any(hasattr(kernel, "py_func") for kernel in vars(_planning_kernels).values()))
print(mdp.optimal_policy(np.array([1.0, 0.3, 0.0, 0.2])).tolist())
"""

    def said(**settings):
        environment = {**os.environ, **settings}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        return done.stdout.split("\n")

    compiled, plain = said(NUMBA_DISABLE_JIT="0"), said(NUMBA_DISABLE_JIT="1")
    assert (compiled[0], plain[0]) == ("True", "False")
    assert compiled[1] == plain[1]
