"""Datasets become Minari's with its reference scores, and are made again by one command."""

import make_datasets
import numpy as np
import pytest

import lfd_gym as lfd

minari = pytest.importorskip("minari")


def test_minari_normalises_by_the_reference_scores(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    found = lfd.datasets.to_minari("mountaincar-expert", "mountaincar/expert-v0", author="somebody")
    known = lfd.datasets.info("mountaincar-expert")
    assert found.storage.metadata["ref_min_score"] == known.random_return
    assert found.storage.metadata["ref_max_score"] == known.expert_return
    assert found.storage.metadata["num_episodes_average_score"] == 100
    scores = minari.get_normalized_score(found, np.array([known.random_return, known.expert_return]))
    np.testing.assert_allclose(scores, [0.0, 1.0])
    assert lfd.Demonstrations.from_minari("mountaincar/expert-v0") == lfd.datasets.load("mountaincar-expert")


def test_one_command_makes_them_again(tmp_path):
    assert make_datasets.main(["--names", "mountaincar-expert", "--out", str(tmp_path)]) == 0
    made, kept = lfd.Demonstrations.load(tmp_path / "mountaincar-expert.npz"), lfd.datasets.load("mountaincar-expert")
    np.testing.assert_array_equal(made.offsets, kept.offsets)
    np.testing.assert_array_equal(made.actions, kept.actions)
    np.testing.assert_allclose(made.observations, kept.observations, atol=1e-5)
    assert set(make_datasets.SOURCES) == set(lfd.datasets.names())
