"""The commands ``train`` and ``evaluate``."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lfd_gym.assessment.certificate import certify
from lfd_gym.assessment.evaluation import Evaluation, evaluate
from lfd_gym.baselines import Learner, LearningResult, make_learner
from lfd_gym.commands.arguments import (
    Imports,
    as_words,
    choose_environment,
    described,
    make_task,
    parse_kwargs,
    read_demonstrations,
)
from lfd_gym.commands.judged import FRESH, Judged
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.envs.named import import_modules
from lfd_gym.learning import best_learner, learn
from lfd_gym.training.export import check_export, export_sb3
from lfd_gym.training.run_folder import RunLog, check_run_target, read_resources, write_run


@dataclass(frozen=True)
class Train:
    """Learn from demonstrations, and write a folder with the policy, its certificate and its evaluation."""

    demonstrations: str
    """A .npz file, a folder that imitation saved, or minari:ID."""
    out: Path
    """The folder to write."""
    env: str | None = None
    """What gymnasium.make takes, MODULE:ID for one that a module of yours registers; the environment that the
    demonstrations name if not given."""
    learner: str | None = None
    """A name in the registry of lfd_gym.baselines, e.g. cutting_plane, bc, gail; MODULE:NAME for one of your own. By
    default the best that the environment allows."""
    budget: int | None = None
    """In the learner's own unit (planner calls, gradient steps, environment steps); its default if not given."""
    discount: float = 0.9
    """Of the costs."""
    horizon: int | None = None
    """Only the first so many steps count; if not given, all do."""
    seed: int = 0
    """Of the learner."""
    delta: float = 0.05
    """The certificate holds with probability 1 - delta."""
    rollouts: int | None = None
    """How many episodes the policy is judged by, where the model is not known."""
    cost_features: Path | None = None
    """A .npy file, (S*A, n_c); by default the environment's own, see lfd_gym.Task."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of the environment as NAME=VALUE, e.g. size=8 is_slippery=False; without --env they override those that
    the demonstrations name."""
    settings: tuple[str, ...] = ()
    """Settings of the learner as NAME=VALUE, e.g. learning_rate=0.01."""
    allow_mismatch: bool = False
    """Whether demonstrations may be of another environment, or of one made with other arguments."""
    export_sb3: Path | None = None
    """Where to write the policy as a model of Stable-Baselines3 (.zip), to go on training it there on the reward; for
    learners of networks, such as bc and gail."""
    resume: bool = False
    """Go on with the same call, which was stopped. Learners that may take hours (mirror_descent, primal_dual_rl) keep
    what they have learned so far in OUT.checkpoint."""
    force: bool = False
    """Replace the folder of an earlier run; anything else is left alone."""
    imports: Imports = ()
    """Modules of yours that the environment comes from; what demonstrations name is not imported."""

    def run(self) -> None:
        """Learn, evaluate, write."""
        check_run_target(self.out, self.force)  # before hours are spent on what could not be written
        if self.export_sb3 is not None:
            check_export(self.export_sb3, self.force)
        import_modules(self.imports)
        settings = parse_kwargs(self.settings, "settings")
        if settings and self.learner is None:
            raise ValueError("--settings are those of a learner: --learner must be given")
        if self.learner is not None:
            _make_learner(self.learner, settings)  # wrong settings are said before anything else is looked at
        demonstrations = read_demonstrations(self.demonstrations, self.env, parse_kwargs(self.env_kwargs))
        source = demonstrations.provenance
        env_id, kwargs = choose_environment(
            self.env,
            self.env_kwargs,
            recorded=(source.env_id, source.env_kwargs),
            where="--env must be given: the file of demonstrations",
            imports=self.imports,
        )
        if env_id is None:
            raise ValueError("--env must be given: the demonstrations do not say their environment")
        self._learn(env_id, kwargs, demonstrations, settings)

    def _learn(
        self, env_id: str, kwargs: dict[str, Any], demonstrations: Demonstrations, settings: dict[str, Any]
    ) -> None:
        log = RunLog()
        task = make_task(
            env_id,
            kwargs,
            self.discount,
            self.cost_features,
            demonstrations,
            horizon=self.horizon,
            allow_mismatch=self.allow_mismatch,
        )
        name, why = (self.learner, "") if self.learner is not None else best_learner(task)
        if name == "grid":  # a policy that looks ahead with the simulator could not be written
            settings = {"savable": True, **settings}
        learner = self._keeping(_make_learner(name, settings))
        log.write(f"{described(env_id, kwargs)}: {demonstrations}")
        if why:
            log.write(f"learner: {name} ({why})")
        if self.resume:
            log.write(f"going on from {self.checkpoint}")
        try:
            result = learn(task, learner, rng=np.random.default_rng(self.seed), budget=self.budget)
        except KeyboardInterrupt:
            if self.checkpoint.exists():
                print(f"the same call with --resume goes on from {self.checkpoint}", file=sys.stderr)
            raise
        log.write(f"{result.learner} learned in {result.resources.wall_seconds:.2f} s")
        metrics: dict[str, Any] = {"resources": result.resources.to_dict(), "facts": dict(result.facts)}
        rng = np.random.default_rng([self.seed, FRESH])
        evaluation = evaluate(result.policy, task, rng=rng, resources=result.resources, n_rollouts=self.rollouts)
        metrics["evaluation"] = evaluation.to_dict()
        log.write(str(evaluation))
        certificate = None
        if task.costs is not None:
            found = certify(result.policy, task, delta=self.delta, rng=rng, n_rollouts=self.rollouts)
            certificate = found.to_dict()
            log.write(str(found))
        for line in (*_how_it_ended(result), *no_better_than_random(evaluation)):
            log.write(f"note: {line}")
        config = {**self._config(), "env": env_id, "env_kwargs": as_words(kwargs), "learner": name}
        write_run(
            self.out,
            config=config,
            policy=result.policy,
            cost_weights=result.cost_weights,
            certificate=certificate,
            metrics=metrics,
            log=log,
            overwrite=self.force,
        )
        self.checkpoint.unlink(missing_ok=True)
        print(f"written to {self.out}")
        if self.export_sb3 is not None:
            model = export_sb3(result.policy, task.env, self.export_sb3, overwrite=self.force)
            print(f"exported to {self.export_sb3}: load it with stable_baselines3.{model}.load")

    @property
    def checkpoint(self) -> Path:
        """What a learner keeps on the way."""
        return self.out.with_name(f"{self.out.name}.checkpoint")

    def _keeping(self, learner: Learner) -> Learner:
        """Return the learner as one that keeps checkpoints, if it is of that kind."""
        given: Any = learner
        keeps = is_dataclass(given) and any(part.name == "checkpoint" for part in fields(given))
        if not keeps or given.checkpoint is not None:
            if self.resume:
                raise ValueError(f"--resume must not be given: {learner.name} keeps nothing in {self.checkpoint}")
            return learner
        if self.checkpoint.exists() and not self.resume:
            raise FileExistsError(
                f"{self.checkpoint} is there, of a run that was stopped: --resume goes on with it; to begin anew, "
                "remove it"
            )
        if self.resume and not self.checkpoint.exists():
            raise FileNotFoundError(f"--resume must not be given: there is no {self.checkpoint} to go on from")
        resumable: Learner = replace(given, checkpoint=str(self.checkpoint))
        return resumable

    def _config(self) -> dict[str, Any]:
        config = asdict(self)
        return {name: str(value) if isinstance(value, Path) else value for name, value in config.items()}


def _make_learner(name: str, settings: dict[str, Any]) -> Learner:
    """Return a learner by its name; MODULE:NAME may be of the current folder."""
    import_modules([name.rpartition(":")[0]] if ":" in name else [])
    return make_learner(name, **settings)


def _how_it_ended(result: LearningResult) -> list[str]:
    """Say if a learner stopped before it had found what it looks for."""
    status = result.facts.get("status", "optimal")
    if status == "optimal":
        return []
    return [f"{result.learner} stopped with status {status!r}, before what it looks for was found; see --budget"]


def no_better_than_random(evaluation: Evaluation) -> list[str]:
    """Say if a policy is no better than random play, as far as that is known."""
    score, ours, random = evaluation.normalised_score, evaluation.episode_return, evaluation.random_return
    if score is not None:
        worse = score <= 1e-9  # that of random play itself is zero up to rounding
        return [f"the policy is no better than random play: its score is {score:.3f}"] if worse else []
    if ours is not None and random is not None and ours <= random:
        return [f"the policy is no better than random play: its return is {ours:.2f}, that of random play {random:.2f}"]
    return []


@dataclass(frozen=True)
class Evaluate(Judged):
    """Evaluate the policy of a run folder, or any other: exactly on a tabular environment, else by episodes."""

    def run(self) -> None:
        """Evaluate, print, write."""
        if self.out is not None and self.out.exists() and not self.force:
            raise FileExistsError(f"{self.out} exists already; --force replaces it")
        evaluation = self.evaluation()
        print(evaluation)
        for line in no_better_than_random(evaluation):
            print(f"note: {line}")
        if self.out is not None:
            self.write_json(self.out, evaluation.to_dict())

    def evaluation(self) -> Evaluation:
        """Return the evaluation."""
        import_modules(self.imports)
        task, _ = self.task()
        if task.costs is None:
            raise ValueError(f"--demonstrations must be given: {task.env} has no costs of its own")
        return evaluate(
            self.policy(task.env),
            task,
            deterministic=self.deterministic,
            resources=read_resources(self.folder) if self.folder is not None else None,
            rng=self.rng(),
            n_rollouts=self.rollouts,
            engine=self.engine(),
        )
