"""Pictures and films of environments and policies."""

import itertools
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import lfd_gym as lfd
from lfd_gym import cli
from lfd_gym.commands.pictures import write_video
from lfd_gym.envs import TabularEnv

GRID = "lfd_gym/StochasticGridworld-v0"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*words):
    return cli.main([str(word) for word in words])


def frames(path):
    with Image.open(path) as film:
        for k in range(film.n_frames):
            film.seek(k)
            yield np.asarray(film.convert("RGB"))


def test_an_episode_is_recorded(capsys):
    assert (
        run("show", "FrozenLake-v1", "--env-kwargs", "is_slippery=False", "--expert", "optimal", "--video", "a.gif")
        == 0
    )
    assert "optimal in FrozenLake-v1: 6 steps, return 1" in capsys.readouterr().out
    pictures = list(frames("a.gif"))
    assert len(pictures) == 7
    env = gym.make("FrozenLake-v1", is_slippery=False, render_mode="rgb_array")
    env.reset()
    shown = pictures[0].astype(int) - env.render()
    assert np.abs(shown).mean() < 10  # but for the colours that a palette has not
    assert all((one != other).any() for one, other in itertools.pairwise(pictures))


def test_random_play_is_recorded_at_the_rate_of_the_environment(capsys):
    assert run("show", "CartPole-v1", "--video", "cart.gif", "--seed", 3) == 0
    assert "random in CartPole-v1" in capsys.readouterr().out
    with Image.open("cart.gif") as film:
        assert film.info["duration"] == 40  # every second of 50 pictures a second
        assert film.size == (300, 200)
    first = Path("cart.gif").read_bytes()
    assert run("show", "CartPole-v1", "--video", "cart.gif", "--seed", 3) == 2
    assert "cart.gif exists already; --force replaces it" in capsys.readouterr().err
    assert run("show", "CartPole-v1", "--video", "cart.gif", "--seed", 3, "--force") == 0
    assert Path("cart.gif").read_bytes() == first


def test_the_policy_of_a_run_is_shown(capsys):
    assert run("collect", "--env", GRID, "--env-kwargs", "size=3", "cost_seed=1", "--out", "grid.npz") == 0
    assert run("train", "--demonstrations", "grid.npz", "--learner", "tabular_bc", "--out", "run") == 0
    capsys.readouterr()
    assert run("show", "run", "--video", "run.gif", "--horizon", 12) == 0
    assert f"policy:run in {GRID}: 12 steps" in capsys.readouterr().out
    assert run("show", "run", "--out", "run.png") == 0
    assert "9 states" in capsys.readouterr().out
    assert lfd.load_policy("run/policy.npz").table.shape == (9, 4)


@pytest.mark.parametrize(
    ("video", "message"),
    [
        ("a.avi", r"video must end in .gif or .mp4, got a.avi"),
        ("nowhere/a.gif", "the folder nowhere does not exist"),
    ],
)
def test_what_cannot_be_recorded_is_said_first(capsys, video, message):
    assert run("show", "CartPole-v1", "--video", video) == 2
    assert message in capsys.readouterr().err


def test_an_mp4_needs_ffmpeg(capsys, monkeypatch):
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        assert run("show", "CartPole-v1", "--video", "a.mp4") == 2
        assert "an .mp4 needs ffmpeg: pip install imageio-ffmpeg, or record a .gif" in capsys.readouterr().err
    else:
        assert run("show", "CartPole-v1", "--video", "a.mp4") == 0
        assert b"ftyp" in Path("a.mp4").read_bytes()[:64]


def test_colours_of_a_film_are_those_of_its_pictures(tmp_path):
    red, blue = (np.full((40, 60, 3), colour, dtype=np.uint8) for colour in ((200, 30, 30), (20, 40, 220)))
    write_video(tmp_path / "a.gif", [red, blue, red], 10.0, overwrite=False)
    for wanted, found in zip([red, blue, red], frames(tmp_path / "a.gif"), strict=True):
        assert np.abs(found.astype(int) - wanted).max() <= 4


def test_what_draws_nothing_is_named(capsys):
    numbers = np.full((2, 1, 2), 0.5), np.array([1.0, 0.0]), np.zeros((2, 1))
    gym.register("Undrawn-v0", lambda: TabularEnv(*numbers), max_episode_steps=5)
    try:
        for words in (["--video", "a.gif"], []):
            assert run("show", "Undrawn-v0", *words) == 2
            assert capsys.readouterr().err.endswith("lfd-gym: Undrawn-v0 cannot be drawn: it takes no render_mode\n")
    finally:
        del gym.registry["Undrawn-v0"]
