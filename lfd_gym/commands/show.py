"""The command ``show``: a picture of an environment, or an episode played in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import tyro
from numpy.typing import NDArray

from lfd_gym.commands.arguments import Imports, choose_environment, make_env
from lfd_gym.commands.experts import Acting
from lfd_gym.commands.graphics import cannot_be_drawn, drawing_without_screen, mend_windows, one_error
from lfd_gym.commands.pictures import check_video, write_png, write_video
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.environments import time_limit
from lfd_gym.envs.named import import_modules
from lfd_gym.envs.rendering import Picture, render_grid
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
    """Record an episode: a .gif, or an .mp4, which needs imageio-ffmpeg. Without --expert it is random play, or the
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
        if self.horizon is not None and self.horizon < 1:
            raise ValueError(f"horizon must be at least 1, got {self.horizon}")
        if self.window:
            self._episode(env_id, kwargs)
            return
        with drawing_without_screen():
            if self.video is not None:
                self._episode(env_id, kwargs)
            else:
                self._picture(env_id, kwargs)

    # -- an episode ---------------------------------------------------------------------------------------------------

    def _episode(self, env_id: str, kwargs: dict[str, Any]) -> None:
        if self.video is not None and self.window:
            raise ValueError("give either --video or --window")
        if self.video is not None:
            check_video(self.video, self.force)
        else:
            from lfd_gym.demonstrations.human_expert import check_screen

            check_screen()
        env = make_env(env_id, kwargs, render_mode="human" if self.window else "rgb_array")
        if self.window:
            mend_windows()
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
            picture = _rendered(env)
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
        self.pictures.append(_rendered(self.env))


def _rendered(env: gym.Env[Any, Any]) -> Picture:
    """Return a picture of an environment, or say why there is none."""
    try:
        with one_error():
            picture: Any = env.render()
    except Exception as error:  # whatever a graphics library raises
        raise cannot_be_drawn(env.spec.id if env.spec else str(env), error) from error
    if picture is None:
        raise ValueError(f"{env} draws nothing with render_mode='rgb_array'")
    return np.array(picture, dtype=np.uint8)
