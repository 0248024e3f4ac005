"""Dataset aggregation (Ross, Gordon & Bagnell 2011), by `imitation`. It queries the expert."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from lfd_gym.baselines.behavioral_cloning import BehavioralCloning
from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.baselines.neural.seeding import SeededTorch
from lfd_gym.baselines.playing import padded_demonstrations, quiet_logger, training_envs
from lfd_gym.policies.conversion import as_policy, policy_table
from lfd_gym.policies.stable_baselines import StableBaselinesPolicy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task

try:
    import datasets.utils as progress  # type: ignore[import-untyped]
    from imitation.algorithms.dagger import LinearBetaSchedule, SimpleDAggerTrainer
except ImportError as error:
    raise ImportError("this learner needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error


@dataclass(frozen=True)
class Dagger(Learner):
    """Clone, play, ask the expert what it would have done there, and clone again.

    The budget is a number of environment steps, in each of which the expert is asked: on top of the demonstrations. The
    expert's most probable action is its answer.

    Attributes
    ----------
    n_envs
        Environments played side by side.
    steps_per_round
        Steps between two fits.
    gradient_steps
        Of each fit.
    rampdown_rounds
        The expert's share of the played actions falls to zero over so many rounds.
    cloning
        Settings of the fit; a batch must not be larger than the steps of the first round and the demonstrations.
    """

    n_envs: int = 8
    steps_per_round: int = 2000
    gradient_steps: int = 500
    rampdown_rounds: int = 2
    cloning: BehavioralCloning = field(default_factory=lambda: BehavioralCloning(batch_size=256))

    needs: ClassVar[Access] = "episodes"
    needs_actions: ClassVar[bool] = True
    asks_expert: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "environment steps"
    default_budget: ClassVar[int] = 20_000

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Run rounds until the budget is spent; the last round is finished."""
        with SeededTorch(rng), _no_progress_bars(), tempfile.TemporaryDirectory(prefix="lfd_gym_dagger_") as scratch:
            venv = training_envs(task, self.n_envs, rng)
            trainer = SimpleDAggerTrainer(
                venv=venv,
                scratch_dir=scratch,
                expert_policy=_expert(task, venv, rng),
                expert_trajs=padded_demonstrations(task, rng).to_imitation(),
                rng=rng,
                beta_schedule=LinearBetaSchedule(self.rampdown_rounds),
                bc_trainer=self.cloning.trainer(venv.observation_space, venv.action_space, rng),
                custom_logger=quiet_logger(),
            )
            trainer.train(
                budget,
                rollout_round_min_episodes=1,
                rollout_round_min_timesteps=min(self.steps_per_round, budget),
                bc_train_kwargs={"n_batches": self.gradient_steps, "log_rollouts_venv": None, "progress_bar": False},
            )
            rounds = trainer.round_num
        # imitation counts whole trajectories; unfinished ones are not recorded.
        steps = int(getattr(venv, "n_steps_taken", budget))
        return LearningResult(
            as_policy(trainer.policy),
            resources=Resources(env_steps=steps, expert_queries=steps),
            facts={"n_rounds": rounds},
        )


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Keep `datasets`, with which every trajectory is saved, from drawing a progress bar for each."""
    shown = not progress.are_progress_bars_disabled()
    progress.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            progress.enable_progress_bars()


def _expert(task: Task, venv: Any, rng: np.random.Generator) -> Any:
    if task.expert is None:
        raise ValueError("dagger queries the expert: it needs Task(expert=...)")
    if task.dynamics is None:
        return task.expert
    table = policy_table(task.expert, task.dynamics)
    return StableBaselinesPolicy(table, venv.observation_space, venv.action_space, rng)
