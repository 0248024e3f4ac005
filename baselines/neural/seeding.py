"""The same seed, the same networks. Importing this module imports torch."""

from __future__ import annotations

import numpy as np

try:
    import torch as th
except ImportError as error:
    raise ImportError(
        "learners with networks need the 'sb3' extra, those of `imitation` that one: pip install 'lfd-gym[sb3]' or "
        "'lfd-gym[imitation]'"
    ) from error


class SeededTorch:
    """Within this block torch's global generator is seeded from ``rng``, and it is put back afterwards.

    Networks of Stable-Baselines3 draw their weights and actions from it. One thread: networks this small only lose time
    by sharing the work.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.seed = int(rng.integers(2**31))

    def __enter__(self) -> int:
        self._state, self._threads = th.get_rng_state(), th.get_num_threads()
        self._numpy = np.random.get_state()  # noqa: NPY002 - Stable-Baselines3 draws from NumPy's global generator
        th.manual_seed(self.seed)
        np.random.seed(self.seed)  # noqa: NPY002
        th.set_num_threads(1)
        return self.seed

    def __exit__(self, *exception: object) -> None:
        th.set_rng_state(self._state)
        th.set_num_threads(self._threads)
        np.random.set_state(self._numpy)  # noqa: NPY002
