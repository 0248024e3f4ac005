"""Compiled kernels are those of the sources as they are now."""

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
