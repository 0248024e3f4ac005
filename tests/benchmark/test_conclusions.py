"""The sentence that a benchmark ends with says who reaches the expert, and where."""

import pytest

from lfd_gym.benchmark import conclusion, summarise


def rows(scores):
    """Rows of (environment, m, learner) → scores of its seeds."""
    used = {"env_steps": 1, "oracle_calls": 2, "cpu_seconds": 0.5}
    knows = {"access": "episodes", "costs": None, "expert": False}
    return [
        {
            **{"environment": environment, "n_demonstrations": m, "learner": learner, "seed": seed, "status": "ok"},
            **{"knows": knows, "facts": {}, "evaluation": {"normalised_score": score, "resources": used}},
        }
        for (environment, m, learner), found in scores.items()
        for seed, score in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (
            {("a", 1, "x"): [1.0, 0.9], ("b", 1, "x"): [0.95], ("a", 1, "y"): [0.99], ("b", 1, "y"): [0.2]},
            "From one demonstration, x reaches the expert on 2 of 2; y on 1 of 2 environments (a mean score of 0.95 or "
            "more).",
        ),
        ({("a", 5, "x"): [0.9, 0.99]}, "From 5 demonstrations, nobody reaches the expert"),
        (
            {("a", 1, "x"): [1.0], ("b", 5, "x"): [1.0], ("a", 1, "z"): [0.0], ("a", 50, "z"): [1.0]},
            "From the fewest demonstrations (1 or 5), x reaches the expert on 2 of 2 environments (a mean score "
            "of 0.95 or more); z does not.",
        ),
        (
            {("a", 1, "x"): [1.0], ("a", 1, "y"): [1.1], ("a", 1, "expert"): [1.0], ("a", 1, "z"): [0.1]},
            "From one demonstration, y and x reach the expert on a (a mean score of 0.95 or more); z does not.",
        ),
        ({("a", 1, "x"): [None]}, "No run of a learner came to an end with a score."),
    ],
)
def test_the_sentence(scores, said):
    assert conclusion(rows(scores)).startswith(said)


def test_runs_without_scores_are_summarised_without():
    (entry,) = summarise(rows({("a", 1, "x"): [None, None]}))
    assert entry.score is None
    assert (entry.n_runs, entry.steps, entry.cpu_seconds) == (2, 3.0, 0.5)
    ranked = summarise(rows({("a", 1, "x"): [None], ("a", 1, "y"): [0.1]}))
    assert [entry.learner for entry in ranked] == ["y", "x"]
