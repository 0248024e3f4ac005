"""The command ``certify``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lfd_gym.assessment.certificate import certify
from lfd_gym.commands.judged import Judged
from lfd_gym.envs.named import import_modules
from lfd_gym.files import replacing_file
from lfd_gym.plots import draw_certificate, save_figure


@dataclass(frozen=True)
class Certify(Judged):
    """Say how much worse than the expert a policy can be, and what that rests on.

    With `--env none` there is no environment, and `--held-out` demonstrations tell all.
    """

    held_out: str | None = None
    """Others of the same expert, that were neither learned from nor looked at."""
    delta: float = 0.05
    """Each statement is true with probability 1 - delta."""
    expert: Literal["any", "deterministic"] = "any"
    """Whether the expert is known to do the same whenever it is in the same state."""
    wanted: float | None = None
    """Say how many demonstrations and rollouts a bound of this size would take."""
    picture: Path | None = None
    """Where to draw the bound over the number of demonstrations or rollouts, with what it consists of (.png)."""

    def run(self) -> None:
        """Certify, print, write."""
        for path in (self.out, self.picture):
            if path is not None and path.exists() and not self.force:
                raise FileExistsError(f"{path} exists already; --force replaces it")
        import_modules(self.imports)
        self.check_source()
        if (self.demonstrations or self.config.get("demonstrations") or self.held_out) is None:
            raise ValueError("--demonstrations or --held-out must be given: there is no expert to compare with")
        task, held_out = self.task(self.held_out)
        certificate = certify(
            self.policy(task.env),
            task,
            delta=self.delta,
            rng=self.rng(),
            deterministic=self.deterministic,
            n_rollouts=self.rollouts,
            held_out=held_out,
            expert=self.expert,
            engine=self.engine(),
        )
        print(certificate)
        if self.wanted is not None:
            needed = str(certificate.needed(self.wanted))
            print(needed[0].upper() + needed[1:] + ".")
        if self.out is not None:
            self.write_json(self.out, certificate.to_dict())
        if self.picture is not None:
            with replacing_file(self.picture, self.force) as unfinished:
                save_figure(draw_certificate(certificate), unfinished)
            print(f"picture: {self.picture}")
