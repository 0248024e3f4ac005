"""The commands ``train`` and ``evaluate``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import tyro

from lfd_gym.assessment.certificate import certify
from lfd_gym.assessment.evaluation import Evaluation, evaluate
from lfd_gym.baselines import make_learner
from lfd_gym.commands.demonstrations import parse_kwargs, read_demonstrations
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.envs.named import check_named_environment, import_modules
from lfd_gym.files import replacing_file
from lfd_gym.learning import best_learner, learn
from lfd_gym.policies.files import load_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.task import Task
from lfd_gym.training.run_folder import (
    RunLog,
    check_run_target,
    read_config,
    read_policy,
    read_resources,
    write_run,
)

#: The flag ``--import``, which is no name in Python.
Imports = Annotated[tuple[str, ...], tyro.conf.arg(name="import")]


#: Beside the seed of a command: what rollouts that judge a policy are drawn from, and no learner.
FRESH = 19


@dataclass(frozen=True)
class Train:
    """Learn from demonstrations, and write a folder with the policy, its certificate and its evaluation."""

    demonstrations: str
    """A .npz file, a folder that imitation saved, or minari:ID."""
    out: Path
    """The folder to write."""
    env: str | None = None
    """What gymnasium.make takes; the environment that the demonstrations name if not given."""
    learner: str | None = None
    """A name in the registry of lfd_gym.baselines, e.g. cutting_plane, bc, gail; MODULE:NAME for one of your own. By
    default the best that the environment allows."""
    budget: int | None = None
    """In the learner's own unit (planner calls, gradient steps, environment steps); its default if not given."""
    discount: float = 0.9
    """Of the costs."""
    seed: int = 0
    """Of the learner."""
    delta: float = 0.05
    """The certificate holds with probability 1 - delta."""
    cost_features: Path | None = None
    """A .npy file, (S*A, n_c); by default the environment's own, see lfd_gym.Task."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of the environment as NAME=JSON, e.g. size=8 cost_seed=1; without --env those of the demonstrations."""
    settings: tuple[str, ...] = ()
    """Settings of the learner as NAME=JSON, e.g. learning_rate=0.01."""
    force: bool = False
    """Replace the folder of an earlier run; anything else is left alone."""
    imports: Imports = ()
    """Modules of yours that the environment comes from; what demonstrations name is not imported."""

    def run(self) -> None:
        """Learn, evaluate, write."""
        check_run_target(self.out, self.force)  # before hours are spent on what could not be written
        import_modules(self.imports)
        demonstrations = read_demonstrations(self.demonstrations, self.env, self.env_kwargs)
        named = self if self.env is not None else replace(self, **_environment_of(demonstrations, self.imports))
        named._learn(named.env or "", demonstrations)

    def _learn(self, env_id: str, demonstrations: Demonstrations) -> None:
        log = RunLog()
        settings = parse_kwargs(self.settings)
        if settings and self.learner is None:
            raise ValueError("--settings are those of a learner: --learner must be given")
        if self.learner is not None:
            make_learner(self.learner, **settings)  # wrong settings are said before anything else is looked at
        task = make_task(env_id, self.env_kwargs, self.discount, self.cost_features, demonstrations)
        name, why = (self.learner, "") if self.learner is not None else best_learner(task)
        if name == "grid":  # a policy that looks ahead with the simulator could not be written
            settings = {"savable": True, **settings}
        learner = make_learner(name, **settings)
        log.write(f"{env_id}: {demonstrations}")
        result = learn(task, learner, rng=np.random.default_rng(self.seed), budget=self.budget)
        why = f" ({why})" if why else ""
        log.write(f"{result.learner}{why} learned in {result.resources.wall_seconds:.2f} s")
        metrics: dict[str, Any] = {"resources": result.resources.to_dict(), "facts": dict(result.facts)}
        rng = np.random.default_rng([self.seed, FRESH])
        evaluation = evaluate(result.policy, task, rng=rng, resources=result.resources)
        metrics["evaluation"] = evaluation.to_dict()
        log.write(str(evaluation))
        certificate = None
        if task.costs is not None:
            found = certify(result.policy, task, delta=self.delta, rng=rng)
            certificate = found.to_dict()
            log.write(str(found))
        write_run(
            self.out,
            config={**self._config(), "learner": self.learner or result.learner},
            policy=result.policy,
            cost_weights=result.cost_weights,
            certificate=certificate,
            metrics=metrics,
            log=log,
            overwrite=self.force,
        )
        print(f"written to {self.out}")

    def _config(self) -> dict[str, Any]:
        config = asdict(self)
        return {name: str(value) if isinstance(value, Path) else value for name, value in config.items()}


def _environment_of(demonstrations: Demonstrations, imports: Sequence[str]) -> dict[str, Any]:
    """Return the environment that the demonstrations name, as arguments of `Train`."""
    source = demonstrations.provenance
    if source.env_id is None:
        raise ValueError("--env must be given: the demonstrations do not say their environment")
    check_named_environment(
        "--env must be given: the file of demonstrations", source.env_id, source.env_kwargs, imports
    )
    kwargs = tuple(f"{name}={json.dumps(value)}" for name, value in source.env_kwargs.items())
    return {"env": source.env_id, "env_kwargs": kwargs}


@dataclass(frozen=True)
class Evaluate:
    """Evaluate the policy of a run folder, or a saved policy: exactly on a tabular environment, else by episodes."""

    source: tyro.conf.Positional[Path]
    """The folder that `lfd-gym train` wrote, or a policy file (.npz); with a file, --env is needed."""
    env: str | None = None
    """What gymnasium.make takes; that of the run if not given."""
    discount: float | None = None
    """Of the costs; that of the run if not given."""
    cost_features: Path | None = None
    """As for train; those of the run if not given."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of the environment as NAME=JSON; those of the run if not given."""
    demonstrations: str | None = None
    """To compare with; those of the run if not given."""
    deterministic: bool = False
    """Take the most probable action instead of drawing one."""
    rollouts: int | None = None
    """How many episodes, where the model is not known."""
    seed: int = 0
    """Of the episodes."""
    out: Path | None = None
    """Where to write the evaluation as JSON; it is printed as a table in any case."""
    force: bool = False
    """Replace what is there."""
    imports: Imports = ()
    """Modules of yours that the environment comes from; what the folder of a run names is not imported."""

    def run(self) -> None:
        """Evaluate, print, write."""
        import_modules(self.imports)
        evaluation = self.evaluation()
        print(evaluation)
        if self.out is not None:
            with replacing_file(self.out, self.force) as unfinished:
                text = json.dumps(evaluation.to_dict(), indent=2, allow_nan=False)
                unfinished.write_text(text + "\n", encoding="utf-8")
            print(f"written to {self.out}")

    def evaluation(self) -> Evaluation:
        """Return the evaluation."""
        config: dict[str, Any] = {}
        resources = None
        policy: Policy
        if self.source.is_dir():
            config, policy, resources = read_config(self.source), read_policy(self.source), read_resources(self.source)
        else:
            policy = load_policy(self.source)
        env_id = self.env or config.get("env")
        if env_id is None:
            raise ValueError("--env must be given to evaluate a policy file: the file does not say its environment")
        kwargs = self.env_kwargs or config.get("env_kwargs", ())
        check_run_environment(self.source, self.env, self.env_kwargs, config, self.imports)
        discount = self.discount if self.discount is not None else config.get("discount", 0.9)
        costs = self.cost_features or config.get("cost_features")
        place = self.demonstrations or config.get("demonstrations")
        shown = None if place is None else read_demonstrations(place, env_id, kwargs)
        task = make_task(env_id, kwargs, discount, None if costs is None else Path(costs), shown)
        if task.costs is None:
            raise ValueError(f"--demonstrations must be given: {env_id} has no costs of its own")
        return evaluate(
            policy,
            task,
            deterministic=self.deterministic,
            resources=resources,
            rng=np.random.default_rng([self.seed, FRESH]),
            n_rollouts=self.rollouts,
        )


def check_run_environment(
    source: Path, env: str | None, env_kwargs: Sequence[str], config: Mapping[str, Any], imports: Sequence[str]
) -> None:
    """Refuse what the folder of a run says of its environment if that would import code; the user's words may."""
    words = () if env_kwargs else config.get("env_kwargs", ())
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{source / 'config.json'} must have env_kwargs as NAME=JSON words, got {words!r}")
    named = None if env is not None else config.get("env")
    if named is not None or words:
        check_named_environment(str(source / "config.json"), named, parse_kwargs(words), imports)


def make_task(
    env_id: str,
    env_kwargs: Sequence[str],
    discount: float,
    costs: Path | None,
    demonstrations: Demonstrations | None = None,
) -> Task:
    """Return the task on an environment; of a tabular one, the expert is optimal for its true cost."""
    env = gym.make(env_id, **parse_kwargs(env_kwargs))
    table = None if costs is None else np.load(costs, allow_pickle=False)
    task = Task(env, demonstrations, discount=discount, costs=table)
    if task.access != "model" or task.true_cost is None:
        return task
    return replace(task, expert=task.model.optimal_policy(task.true_cost.table[:, 0]))
