"""Pictures and texts of gridworlds."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from lfd_gym.envs import StochasticGridworldEnv, render_grid
from lfd_gym.envs.rendering import render_text
from lfd_gym.model.mdp import one_hot

UP, DOWN, LEFT, RIGHT = range(4)
CELL = 40


def cell(picture, state, size, cell_size=CELL):
    row, column = divmod(state, size)
    return picture[row * cell_size : (row + 1) * cell_size, column * cell_size : (column + 1) * cell_size].astype(float)


def test_cost_map_is_blue_white_and_vermilion():
    picture = render_grid([-1.0, 0.0, 1.0, 0.5], size=2)
    assert picture.shape == (80, 80, 3)
    assert picture.dtype == np.uint8
    cheap, free, costly, half = (cell(picture, state, 2)[20, 20] for state in range(4))
    assert cheap[2] > cheap[0] + 100  # blue over red
    assert (free > 240).all()
    assert costly[0] > costly[2] + 100  # red over blue
    np.testing.assert_allclose(half, (free + costly) / 2, atol=1)


def test_costs_of_pairs_are_averaged_and_large_costs_shrink_the_scale():
    costs = np.array([-1.0, 0.0, 1.0, 0.5])
    expected = render_grid(costs, size=2)
    np.testing.assert_array_equal(render_grid(np.repeat(costs, 4), size=2), expected)
    np.testing.assert_array_equal(render_grid(np.tile(costs[:, None], 4), size=2), expected)
    np.testing.assert_array_equal(render_grid(10 * costs, size=2), expected)


@pytest.mark.parametrize("action", [UP, DOWN, LEFT, RIGHT])
def test_arrows_point_where_the_action_goes(action):
    picture = render_grid(np.zeros(1), size=1, policy=one_hot([action], 4))
    ink = 255 - picture.mean(axis=2)[1:-1, 1:-1]  # without the lines
    ink[ink < 30] = 0
    rows, columns = np.indices(ink.shape) - (ink.shape[0] - 1) / 2
    balance = np.array([(ink * rows).sum(), (ink * columns).sum()]) / ink.sum()  # the head outweighs the tail
    down, right = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}[action]
    assert balance @ [down, right] > 1
    assert abs(balance @ [right, down]) < 0.6


def test_less_probable_actions_are_fainter():
    policy = np.array([[0.75, 0.25, 0.0, 0.0]])
    picture = render_grid(np.zeros(1), size=1, policy=policy).astype(float)
    up_head, down_head, left_head = picture[15, 24, 0], picture[24, 23, 0], picture[20, 10, 0]  # beside the shafts
    assert up_head < down_head - 50
    assert down_head < left_head - 50
    assert left_head >= 250


def test_agent_and_occupancy_mark_their_cells():
    plain = render_grid(np.zeros(4), size=2).astype(float)
    marked = render_grid(np.zeros(4), size=2, agent=2, occupancy=[0.0, 0.25, 0.0, 0.75]).astype(float)
    darkness = [(cell(plain, state, 2) - cell(marked, state, 2)).mean() for state in range(4)]
    assert darkness[0] == 0
    assert 0 < darkness[1] < darkness[3]
    assert (cell(marked, 2, 2)[20, 20] < 30).all()  # the agent's disc
    pairs = np.array([[0.0, 0.0, 0, 0], [0.25, 0, 0, 0], [0, 0, 0, 0], [0.25, 0.25, 0.25, 0]])
    np.testing.assert_array_equal(render_grid(np.zeros(4), size=2, agent=2, occupancy=pairs), marked)


@pytest.mark.parametrize(("size", "with_policy", "width"), [(16, False, 640), (256, False, 512), (256, True, 2560)])
def test_pictures_stay_handy_and_arrows_legible(size, with_policy, width):
    policy = np.full((size**2, 4), 0.25) if with_policy else None
    assert render_grid(np.zeros(size**2), size=size, policy=policy).shape == (width, width, 3)
    assert render_grid(np.zeros(9), size=3, agent=0, cell_size=5).shape == (15, 15, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cost": np.zeros(5)}, r"cost must have shape \(4,\), got \(5,\)"),
        ({"cost": [0, np.nan, 0, 0]}, "cost must be finite"),
        ({"agent": 4}, r"agent must lie in \[0, 4\), got 4"),
        ({"policy": np.ones((4, 4))}, "policy must have rows that sum to 1"),
        ({"occupancy": np.zeros(3)}, r"occupancy must have shape \(4,\)"),
        ({"occupancy": [1, -1, 0, 0]}, "occupancy must be nonnegative, got -1.0 at state 1"),
        ({"cell_size": 0}, "cell_size must be an integer of at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        render_grid(**{"cost": np.zeros(4), "size": 2, **arguments})


def test_text_shows_costs_agent_arrows_and_occupancy():
    costs = [-1.0, 0.0, 1.0, 0.5]
    assert render_text(costs, 2, agent=1) == " - [.]\n +  + \n"
    text = render_text(costs, 2, agent=None, policy=one_hot([UP, DOWN, LEFT, RIGHT], 4), occupancy=[0.0, 0.1, 0.4, 0.2])
    assert text == " -↑0  .↓2 \n +←9  +→5 \n"


def test_modes_of_the_environment():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, render_mode="rgb_array")
    env.reset(seed=0, options={"state": 6})
    source = env.unwrapped
    np.testing.assert_array_equal(env.render(), render_grid(source.state_costs[:, 0], 4, agent=6))
    policy, occupancy = np.full((16, 4), 0.25), np.full(16, 1 / 16)
    source.set_overlay(policy=policy, occupancy=occupancy)
    both = render_grid(source.state_costs[:, 0], 4, agent=6, policy=policy, occupancy=occupancy)
    np.testing.assert_array_equal(env.render(), both)
    source.set_overlay()
    np.testing.assert_array_equal(env.render(), render_grid(source.state_costs[:, 0], 4, agent=6))

    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, render_mode="ansi")
    env.reset(seed=0, options={"state": 6})
    assert env.render() == render_text(source.state_costs[:, 0], 4, agent=6)


def test_window_shows_the_picture(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    import pygame

    env = StochasticGridworldEnv(size=4, render_mode="human")
    env.reset(seed=0)
    for action in (RIGHT, DOWN):
        env.step(action)  # draws by itself
        shown = pygame.surfarray.array3d(pygame.display.get_surface()).transpose(1, 0, 2)
        np.testing.assert_array_equal(shown, render_grid(env.state_costs[:, 0], 4, agent=env.state))
    assert env.render() is None
    env.close()
    assert not pygame.display.get_init()
    env.close()  # twice does no harm


def test_window_without_pygame_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = StochasticGridworldEnv(size=4, render_mode="human")
    with pytest.raises(gym.error.DependencyNotInstalled, match=r"pip install 'lfd-gym\[human\]'"):
        env.reset(seed=0)


def test_pictures_need_neither_pygame_nor_matplotlib():
    code = (
        "import sys; sys.modules.update(pygame=None, matplotlib=None);"
        "from lfd_gym.envs import StochasticGridworldEnv as Env; env = Env(render_mode='rgb_array');"
        "env.reset(seed=0); print(env.render().shape)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "(640, 640, 3)\n"


def test_rendering_without_a_mode_warns():
    with pytest.warns(UserWarning, match="render_mode"):
        assert StochasticGridworldEnv().render() is None
