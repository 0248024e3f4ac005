"""The first call says that kernels are compiled, and no bar counts that time."""

import os
import subprocess
import sys

WORDS = ["collect", "--env", "CartPole-v1", "--expert", "random", "--trajectories", "1", "--force", "--out", "pole.npz"]
LATER = "import sys; from lfd_gym.cli import main; sys.exit(main(sys.argv[1:]))"


def test_it_is_said_once_and_only_the_first_time(tmp_path):
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(
            [sys.executable, "-c", LATER, *WORDS],
            cwd=tmp_path,
            env=settings,
            capture_output=True,
            text=True,
            check=True,
        ).stderr.count("compiling kernels, once\n")
        for _ in range(2)
    ]
    assert said == [1, 0]


BAR = """
import io, time
import numba
from tqdm import tqdm
from lfd_gym._jit import announce_compiling

said = []
end = announce_compiling(lambda: said.append("once"))
bar = tqdm(total=100, file=io.StringIO())
began = time.perf_counter()
for f in (lambda x: x + 1, lambda x: x * 2):
    numba.njit(f)(1)
compiling = time.perf_counter() - began
bar.update()
counted = bar.format_dict["elapsed"]
bar.close()
end()
numba.njit(lambda x: x - 1)(1)
print(said, counted < compiling / 2)
"""


def test_bars_leave_it_out():
    done = subprocess.run([sys.executable, "-c", BAR], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "['once'] True"
