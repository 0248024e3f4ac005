"""MuJoCo where there is no screen: it draws with EGL, or one line says what to install."""

import os
import shutil
import subprocess
import sys
from ctypes.util import find_library

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("mujoco")

INVERTED = "InvertedPendulum-v4" if gym.__version__.startswith("0.") else "InvertedPendulum-v5"
DISPLAYS = "DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "MUJOCO_GL", "PYOPENGL_PLATFORM"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others have graphics without a screen")


def show(folder, *words, **settings):
    """Run ``lfd-gym show`` on a machine without a screen."""
    environment = {name: value for name, value in os.environ.items() if name not in DISPLAYS} | settings
    line = [sys.executable, "-m", "lfd_gym.cli", "show", INVERTED, *words]
    return subprocess.run(line, capture_output=True, text=True, cwd=folder, env=environment, timeout=200)


@pytest.mark.skipif(find_library("EGL") is None, reason="there is no EGL on this machine")
def test_an_episode_is_recorded_without_a_screen(tmp_path):
    done = show(tmp_path, "--video", "balance.gif", "--horizon", "4")
    assert (done.returncode, done.stderr) == (0, "")
    assert "video: balance.gif (5 frames, 25 per second)" in done.stdout
    with Image.open(tmp_path / "balance.gif") as film:
        first = np.asarray(film.convert("RGB")).astype(int)
        film.seek(film.n_frames - 1)
        last = np.asarray(film.convert("RGB")).astype(int)
    assert first.std() > 10  # neither empty nor of one colour
    assert np.abs(first - last).max() > 50  # the cart has moved


@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="needs Xvfb")
def test_an_episode_is_played_in_a_window(tmp_path):
    pytest.importorskip("pygame")
    line = ["xvfb-run", "-a", sys.executable, "-m", "lfd_gym.cli", "show", INVERTED, "--window", "--horizon", "4"]
    environment = {name: value for name, value in os.environ.items() if name not in DISPLAYS}
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    assert f"random in {INVERTED}: 4 steps" in done.stdout


@pytest.mark.parametrize(
    "settings",
    [{"MUJOCO_GL": "glfw"}, {"MUJOCO_GL": "egl", "__EGL_VENDOR_LIBRARY_DIRS": "/nowhere"}, {"MUJOCO_GL": "wrong"}],
    ids=["needs a screen", "no driver", "no such library"],
)
@pytest.mark.parametrize("words", [["--video", "a.gif"], ["--out", "a.png"]], ids=["film", "picture"])
def test_what_cannot_be_drawn_is_one_line_that_says_what_to_install(tmp_path, settings, words):
    done = show(tmp_path, *words, **settings)
    assert done.returncode == 2
    assert done.stderr.startswith(f"lfd-gym: {INVERTED} cannot be drawn here: ")
    assert done.stderr.count("\n") == 1
    assert "apt-get install libegl1 libgl1) and set MUJOCO_GL=egl" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_commands_say_what_is_wrong_with_the_library_in_a_line(tmp_path):
    line = [sys.executable, "-m", "lfd_gym.cli", "collect", "--env", INVERTED, "--expert", "random", "--out", "a.npz"]
    environment = {**os.environ, "MUJOCO_GL": "wrong"}
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=200)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "MUJOCO_GL" in done.stderr
