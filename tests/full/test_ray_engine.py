"""A real Ray on this machine gives the same outcomes as local processes."""

from pathlib import Path

from engine_cases import square_or_misbehave

from lfd_gym.benchmark.engines import ProcessEngine, RayEngine


def test_ray_runs_and_survives_like_processes(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # where Ray's workers find engine_cases
    items = [1, "fail", 2, "die", 3]
    local = dict(ProcessEngine(2).run(square_or_misbehave, items, time_limit=20.0))
    remote = dict(RayEngine(n_workers=2).run(square_or_misbehave, items, time_limit=20.0))
    assert {item: outcome.value for item, outcome in remote.items()} == {i: o.value for i, o in local.items()}
    assert remote["fail"].error.startswith("ValueError: no good")
    assert "worker process died" in remote["die"].error
