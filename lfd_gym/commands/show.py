"""The command ``show``: a picture of an environment, or an episode played in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import tyro
from numpy.typing import NDArray

from lfd_gym.commands.arguments import Imports, choose_environment, make_env
from lfd_gym.commands.experts import Acting
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.environments import time_limit
from lfd_gym.envs.named import import_modules
from lfd_gym.envs.rendering import Picture, render_grid
from lfd_gym.files import replacing_file
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.training.run_folder import read_config

_GRIDWORLD = "lfd_gym/StochasticGridworld-v0"
#: The length of an episode where nothing else ends it, and frames for each second where the environment says nothing.
_LONGEST, _RATE = 1000, 10


@dataclass(frozen=True)
class Show:
    """Draw an environment, a gridworld with its optimal policy, or play or record an episode."""

    source: tyro.conf.Positional[str]
    """What gymnasium.make takes, e.g. lfd_gym/StochasticGridworld-v0; or the folder that `lfd-gym train` wrote, for its
    environment and its policy."""
    acting: Annotated[Acting, tyro.conf.arg(name="")] = field(default_factory=Acting)
    video: Path | None = None
    """Record an episode: a .gif, or an .mp4, which needs imageio and ffmpeg. Without --expert it is random play, or the
    policy of the run."""
    window: bool = False
    """Play an episode in a window."""
    out: Path = Path("env.png")
    """The PNG file to write, where no episode is played."""
    seed: int = 0
    """Draws the episode, the first state in a picture, and the costs of a gridworld, if its arguments do not."""
    horizon: int | None = None
    """The largest number of actions in the episode."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of the environment as NAME=VALUE; they override those of the run."""
    force: bool = False
    """Replace the video that is there."""
    imports: Imports = ()
    """Modules of yours that the environment of the run comes from."""

    def run(self) -> None:
        """Draw, play or record."""
        import_modules(self.imports)
        run = Path(self.source).is_dir()
        config: dict[str, Any] = read_config(Path(self.source)) if run else {}
        env_id, kwargs = choose_environment(
            None if run else self.source,
            self.env_kwargs,
            recorded=(config.get("env"), config.get("env_kwargs", ())),
            where=str(Path(self.source) / "config.json"),
            imports=self.imports,
        )
        if env_id is None:
            raise ValueError(f"{self.source} does not say its environment")
        if self.video is not None or self.window:
            self._episode(env_id, kwargs)
        else:
            self._picture(env_id, kwargs)

    # -- an episode ---------------------------------------------------------------------------------------------------

    def _episode(self, env_id: str, kwargs: dict[str, Any]) -> None:
        if self.video is not None and self.window:
            raise ValueError("give either --video or --window")
        if self.video is not None:
            _check_video(self.video, self.force)
        else:
            from lfd_gym.demonstrations.human_expert import check_screen

            check_screen()
        env = make_env(env_id, kwargs, render_mode="human" if self.window else "rgb_array")
        frames = _Frames(env) if self.video is not None else env
        rng = np.random.default_rng(self.seed)
        who = self.acting.expert or (f"policy:{self.source}" if Path(self.source).is_dir() else "random")
        policy = self.acting.policy(who, env, rng)
        horizon = self.horizon or time_limit(env) or _LONGEST
        episode = collect(frames, policy, 1, horizon, rng, deterministic=self.acting.deterministic)
        env.close()  # type: ignore[no-untyped-call]
        total = "unknown" if episode.rewards is None else f"{float(episode.rewards.sum()):g}"
        print(f"{self.acting.described(who)} in {env_id}: {episode.n_transitions} steps, return {total}")
        if isinstance(frames, _Frames) and self.video is not None:
            rate = float(env.metadata.get("render_fps") or _RATE)
            write_video(self.video, frames.pictures, rate, self.force)
            print(f"video: {self.video} ({len(frames.pictures)} frames, {rate:g} per second)")

    # -- a picture ----------------------------------------------------------------------------------------------------

    def _picture(self, env_id: str, kwargs: dict[str, Any]) -> None:
        if env_id.split(":")[-1] == _GRIDWORLD:
            picture = self._gridworld(env_id, {"cost_seed": self.seed, **kwargs})
        else:
            env: Any = make_env(env_id, kwargs, render_mode="rgb_array")
            env.reset(seed=self.seed)
            picture = np.asarray(env.render(), dtype=np.uint8)
            env.close()
            print(f"{env_id}: observations {env.observation_space}, actions {env.action_space}")
        write_png(self.out, picture)
        print(f"picture: {self.out}")

    def _gridworld(self, env_id: str, kwargs: dict[str, Any]) -> Picture:
        env = make_env(env_id, kwargs)
        mdp = FiniteMDP.from_env(env, self.acting.discount)
        source: Any = env.unwrapped
        cost = source.cost_features[:, 0]
        policy = mdp.optimal_policy(cost)
        print(f"{env_id}: {mdp.n_states} states, {mdp.n_actions} actions, discount {self.acting.discount}")
        print(f"expected cost of the optimal policy: {mdp.expected_cost(policy, cost):.4f}")
        return render_grid(cost, source.size, policy=policy, occupancy=mdp.occupancy(policy))


class _Frames(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps a picture of every state."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.pictures: list[NDArray[np.uint8]] = []

    def reset(self, **settings: Any) -> Any:
        found = self.env.reset(**settings)
        self._draw()
        return found

    def step(self, action: Any) -> Any:
        found = self.env.step(action)
        self._draw()
        return found

    def _draw(self) -> None:
        picture: Any = self.env.render()
        self.pictures.append(np.array(picture, dtype=np.uint8))


def write_png(path: Path, picture: Picture) -> None:
    """Write an RGB picture as a PNG file."""
    from matplotlib.image import imsave

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing_file(path, overwrite=True) as unfinished:
        imsave(unfinished, picture, format="png")


def _check_video(path: Path, force: bool) -> None:
    """Refuse a video that could not be written, before anything is played."""
    if path.suffix not in (".gif", ".mp4"):
        raise ValueError(f"video must end in .gif or .mp4, got {path}")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; --force replaces it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.suffix == ".mp4":
        try:
            import_module("imageio_ffmpeg")
        except ImportError as error:
            raise ImportError(
                "an .mp4 needs ffmpeg: pip install 'imageio[ffmpeg]', or record a .gif, which needs nothing"
            ) from error


def write_video(path: Path, frames: list[NDArray[np.uint8]], rate: float, overwrite: bool) -> None:
    """Write pictures as a film, ``rate`` of them a second."""
    with replacing_file(path, overwrite) as unfinished:
        if path.suffix == ".mp4":
            import imageio.v2 as imageio

            film: Any = imageio.get_writer(
                unfinished, format="FFMPEG", fps=rate, macro_block_size=2, output_params=["-f", "mp4"]
            )
            with film:
                for frame in frames:
                    film.append_data(frame)
        else:
            from PIL import Image

            first, *others = (Image.fromarray(frame) for frame in frames)
            # Viewers slow down what is faster than 50 pictures a second, so that some are left out.
            step = max(1, round(rate / 50))
            first.save(
                unfinished,
                format="GIF",
                save_all=True,
                append_images=others[step - 1 :: step],
                duration=max(20, round(1000 * step / rate)),
                loop=0,
            )
