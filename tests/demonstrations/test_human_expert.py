"""A person at the keyboard: with events put into pygame's queue, and with real keys on a virtual screen."""

import os
import shutil
import subprocess
import sys
import time

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym  # noqa: F401  (registers the gridworld)
from lfd_gym import Demonstrations
from lfd_gym.demonstrations.human_expert import KeyboardPolicy, collect_from_keyboard

GRIDWORLD = "lfd_gym/StochasticGridworld-v0"


@pytest.fixture
def pygame(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    import pygame

    pygame.display.init()
    yield pygame
    pygame.quit()


def make_gridworld(**settings):
    return gym.make(GRIDWORLD, size=3, intended_probability=1.0, render_mode="human", **settings)


def press(pygame, *names):
    for name in names:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.key.key_code(name)))


def test_arrow_keys_move_the_agent(pygame):
    env = make_gridworld()
    env.reset()
    press(pygame, "up", "up", "left", "left", "a", "down", "right")  # a is nothing
    demos = collect_from_keyboard(env, 1, 6, np.random.default_rng(0))
    env.close()
    assert demos.actions.tolist() == [0, 0, 2, 2, 1, 3]
    assert demos.observations[4] == 0  # the top left corner, wherever it began
    assert demos.observations[-2:].tolist() == [3, 4]
    assert demos.provenance.env_id == GRIDWORLD
    assert demos.horizon == 6


def test_escape_keeps_the_trajectories_before(pygame):
    env = make_gridworld()
    env.reset()
    press(pygame, "up", "down", "left", "right", "up", "escape")
    demos = collect_from_keyboard(env, 5, 2, np.random.default_rng(0))
    assert demos.actions.tolist() == [0, 1, 2, 3]
    assert len(demos) == 2
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    with pytest.raises(ValueError, match="closed before the first trajectory was complete"):
        collect_from_keyboard(env, 5, 2, np.random.default_rng(0))
    env.close()


@pytest.mark.parametrize(
    ("env_id", "actions"),
    [("FrozenLake", [0, 1, 2, 3]), ("CliffWalking", [3, 2, 1, 0]), ("Taxi", [3, 0, 2, 1])],
)
def test_arrows_of_other_grids(pygame, env_id, actions):
    from lfd_gym.demonstrations.human_expert import _default_keys

    versions = [name for name in gym.registry if name.startswith(f"{env_id}-v")]
    env_id = max(versions)  # the newest that this Gymnasium has
    policy = KeyboardPolicy(_default_keys(gym.make(env_id)))
    press(pygame, "left", "down", "right", "up")
    assert [int(policy(np.zeros(1))[0]) for _ in range(4)] == actions


def test_wrong_use_is_named(pygame):
    with pytest.raises(ValueError, match="render_mode='human'"):
        collect_from_keyboard(gym.make(GRIDWORLD), 1, 5, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"keys must be given for .*CartPole"):
        collect_from_keyboard(gym.make("CartPole-v1", render_mode="human"), 1, 5, np.random.default_rng(0))
    with pytest.raises(ValueError, match="one environment at a time, not in 2"):
        KeyboardPolicy({"left": 0})(np.zeros(2))


PLAY = """
import sys
import gymnasium as gym, numpy as np
import lfd_gym
from lfd_gym.demonstrations.human_expert import collect_from_keyboard
env = gym.make("lfd_gym/StochasticGridworld-v0", size=3, intended_probability=1.0, render_mode="human")
env.reset()
print("ready", flush=True)
collect_from_keyboard(env, 2, 3, np.random.default_rng(0)).save(sys.argv[1])
env.close()
"""


@pytest.mark.skipif(
    shutil.which("Xvfb") is None or shutil.which("xdotool") is None, reason="needs Xvfb and xdotool for real keys"
)
def test_real_keys_on_a_virtual_screen(tmp_path):
    reading, writing = os.pipe()
    screen = subprocess.Popen(["Xvfb", "-displayfd", str(writing), "-screen", "0", "640x480x24"], pass_fds=[writing])
    try:
        display = ":" + os.read(reading, 16).decode().strip()
        environment = os.environ | {"DISPLAY": display, "SDL_VIDEODRIVER": "x11"}
        out = tmp_path / "demos.npz"
        player = subprocess.Popen([sys.executable, "-c", PLAY, out], env=environment, stdout=subprocess.PIPE, text=True)
        try:
            while player.stdout.readline().strip() not in ("ready", ""):  # pygame greets on standard output
                pass
            # Without a window manager keys go to the window under the pointer; SDL centres its window.
            subprocess.run(["xdotool", "mousemove", "320", "240"], env=environment, check=True, timeout=30)
            for key in ("Up", "Left", "Down", "Right", "Right", "Up"):
                time.sleep(0.4)
                subprocess.run(["xdotool", "key", key], env=environment, check=True, timeout=30)
            assert player.wait(timeout=30) == 0
        finally:
            player.kill()
            player.wait()
    finally:
        screen.kill()
        screen.wait()
        os.close(reading)
        os.close(writing)
    demos = Demonstrations.load(out)
    assert demos.actions.tolist() == [0, 2, 1, 3, 3, 0]
    assert demos.lengths.tolist() == [3, 3]
