"""Drawing where there is no screen: MuJoCo needs a library of graphics, and says so in many words or in none."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lfd_gym.demonstrations.human_expert import has_screen

#: Files and folders of MuJoCo, of Gymnasium and of what they draw with, by which an error is known to be of graphics.
_GRAPHICS = {"OpenGL", "glfw", "gl_context.py", "mujoco_rendering.py", "egl", "osmesa"}

_REMEDY = (
    "MuJoCo needs OpenGL: without a screen, install libegl1 and libgl1 (apt-get install libegl1 libgl1) and set "
    "MUJOCO_GL=egl, or install libosmesa6 and set MUJOCO_GL=osmesa"
)


@contextmanager
def drawing_without_screen() -> Iterator[None]:
    """Let MuJoCo and SDL draw where there is no screen; what they take by themselves needs one, or complains.

    MuJoCo chooses when it is imported first. What is set already stays as it is.
    """
    wanted = {} if has_screen() else {"MUJOCO_GL": "egl", "SDL_VIDEODRIVER": "dummy"}
    missing = {name: value for name, value in wanted.items() if not os.environ.get(name)}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]


def mend_windows() -> None:
    """Let Gymnasium 0.29 open windows on MuJoCo from 3.0 on, which has a list in place of one number that they show."""
    mujoco = sys.modules.get("mujoco")
    if mujoco is not None and not hasattr(mujoco.MjData, "solver_iter"):
        mujoco.MjData.solver_iter = property(lambda data: data.solver_niter[0])


def cannot_be_drawn(name: str, error: Exception) -> OSError:
    """Return what to say of an environment that could not be drawn."""
    reason = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".: ")
    remedy = f". {_REMEDY}" if is_of_graphics(error) else ""
    return OSError(f"{name} cannot be drawn here: {reason}{remedy}")


def is_of_graphics(error: BaseException | None) -> bool:
    """Whether an error came out of MuJoCo's libraries of graphics."""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if not _GRAPHICS.isdisjoint(Path(frame.f_code.co_filename).parts):
                return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def one_error() -> Iterator[None]:
    """Leave unsaid what libraries of graphics say beside the error that they raise.

    They warn, and a viewer that could not be made fails once more when it is thrown away.
    """
    usual = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: None
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="glfw")
            yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            traceback.clear_frames(cause.__traceback__)  # throws the viewer away now
            cause = cause.__cause__ or cause.__context__
        raise
    finally:
        sys.unraisablehook = usual
