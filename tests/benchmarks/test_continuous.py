"""The benchmark of continuous tasks: small cells of it run for real."""

import json

import changed_physics
import continuous
import gymnasium as gym
import numpy as np
import pytest
from experts import load_expert

import lfd_gym as lfd


def test_a_cell_is_run_written_down_and_not_run_again(tmp_path, monkeypatch, capsys):
    out = tmp_path / "results.jsonl"
    command = "--tasks MountainCar-v0 --experts rule --demonstrations 1 --learners grid --seeds 0 --episodes 5"
    arguments = [*command.split(), "--out", str(out)]
    assert continuous.main(arguments) == 0
    (record,) = [json.loads(line) for line in out.read_text().splitlines()]
    assert record["score"] > 0.7
    assert record["cpu"] > 0
    assert record["mode"] in ("vote", "lookahead", "draw", "mixture")
    printed = capsys.readouterr()
    assert f"{record['score']:.3f} [{record['score']:.3f}]" in printed.out
    assert "1/1 MountainCar-v0 rule m=1 plain grid seed 0" in printed.err
    monkeypatch.setattr(continuous, "measured", None)  # would fail
    assert continuous.main([*arguments, "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("| task | expert |")


def test_a_cell_that_fails_is_said_to_and_left_out(tmp_path, monkeypatch, capsys):
    def fail(cell, options):
        raise ValueError("no such luck")

    monkeypatch.setattr(continuous, "measured", fail)
    monkeypatch.setattr(continuous, "warm_up", lambda cell: None)
    command = "--tasks MountainCar-v0 --experts rule --demonstrations 1 --learners grid --seeds 0"
    assert continuous.main([*command.split(), "--out", str(tmp_path / "none.jsonl")]) == 1
    assert "ValueError: no such luck" in capsys.readouterr().err


def test_subsampled_pairs_weigh_what_the_steps_they_stand_for_weigh():
    expert = load_expert("MountainCar-v0", "rule")
    demos = lfd.collect(gym.make("MountainCar-v0"), expert, 2, rng=np.random.default_rng(0))
    fewer = continuous.subsampled(demos, 5)
    np.testing.assert_array_equal(fewer.offsets, demos.offsets)
    np.testing.assert_array_equal(fewer.terminated, demos.terminated)
    first, known = demos[0], fewer[0]
    assert len(np.unique(known.observations[:-1], axis=0)) == -(-len(first.actions) // 5)
    np.testing.assert_array_equal(known.observations[5:10], np.repeat(first.observations[5:6], 5, axis=0))
    np.testing.assert_array_equal(known.observations[-1], first.observations[-1])


def test_noise_comes_as_often_as_said():
    expert, space = load_expert("Pendulum-v1", "rule"), gym.make("Pendulum-v1").action_space
    noisy = continuous.NoisyPolicy(expert, continuous.UniformPolicy(space), 0.1)
    seen = np.tile([0.0, 1.0, 0.5], (5000, 1)).astype(np.float32)
    rng = np.random.default_rng(0)
    actions = noisy.sample(seen, rng)
    assert actions.shape == (5000, 1)
    assert np.mean(actions != expert.sample(seen, rng)) == pytest.approx(0.1, abs=0.02)


def test_other_costs_differ_in_what_they_say():
    demos = lfd.collect(
        gym.make("MountainCar-v0"), load_expert("MountainCar-v0", "rule"), 1, rng=np.random.default_rng(0)
    )
    default = lfd.FourierCosts.from_demonstrations(demos)
    assert continuous.other_costs(default, "n100").n_costs == 101
    wide = continuous.other_costs(default, "wide")
    assert wide.n_costs == default.n_costs
    np.testing.assert_allclose(wide.frequencies * 2, default.frequencies)


@pytest.mark.parametrize("env_id", changed_physics.CHANGES)
def test_changes_are_of_constants_that_count(env_id):
    plain, changed = (changed_physics.make_env(env_id, change) for change in (None, changed_physics.CHANGES[env_id][1]))
    model, other = lfd.as_generative_model(plain), lfd.as_generative_model(changed)
    rng = np.random.default_rng(0)
    states = model.sample_initial(20, rng)
    actions = np.array([plain.action_space.sample() for _ in states])
    assert not np.allclose(model.sample_next(states, actions, rng), other.sample_next(states, actions, rng), atol=1e-6)
    with pytest.raises(ValueError, match="has no constant 'colour'"):
        changed_physics.make_env(env_id, {"colour": 1.0})


def test_planning_for_the_true_cost_brings_the_weaker_car_up():
    change = changed_physics.CHANGES["MountainCar-v0"][1]
    found = changed_physics.changed_references("MountainCar-v0", "rule", 0.99, n_episodes=5, seed=0)
    expert = changed_physics.returns_of("MountainCar-v0", load_expert("MountainCar-v0", "rule"), change, 5, seed=0)
    assert found.expert.mean() >= expert.mean() > found.random.mean() == -200
