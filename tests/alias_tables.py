"""Alias tables of random rows."""

import numpy as np
from hypothesis import strategies as st

from lfd_gym.model.generative_model import AliasTable


def table_of(rows):
    """Return the alias table of a list of probability vectors; outcome k of every row is 10 + k."""
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    outcomes = np.concatenate([10 + np.arange(len(row)) for row in rows])
    return AliasTable(offsets, outcomes, np.concatenate(rows))


def probability_vectors():
    weights = st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=40)
    return weights.map(lambda values: np.array(values) / np.sum(values))
