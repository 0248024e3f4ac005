"""Shim."""

# mypy: ignore-errors
from lfd_gym.policies.policy import *  # noqa
from lfd_gym.policies.policy import PolicyLike as Policy  # noqa
from lfd_gym.policies.policy import as_policy, policy_table, sample_rows, Predictor  # noqa


def draw_actions(policy, observations, action_space, rng, *, deterministic=False):
    return as_policy(policy, deterministic=deterministic).sample(observations, rng)
