"""Pictures of gridworlds: the cost of each cell, the agent, the arrows of a policy and the heat of an occupancy.

Costs run from blue (−1, cheap) over white (0) to vermilion (+1, costly), which colour-blind readers can tell apart.
The pictures are painted with NumPy alone; only the window of the ``human`` mode needs pygame.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import checked
from lfd_gym.envs.tabular import index_below, integer_at_least
from lfd_gym.validation import FloatArray, finite_array, policy_array

Picture = NDArray[np.uint8]

_CHEAP = np.array([0, 114, 178])
_FREE = np.array([250, 250, 250])
_DEAR = np.array([213, 94, 0])
_LINE = np.array([205, 205, 205])
_INK = np.array([25, 25, 25])
_PAPER = np.array([255, 255, 255])
_HEAT = np.array([68, 1, 84])
_SMALLEST_ARROW = 10  # pixels; below this an arrow cannot be told from a dot
_ARROWS = "↑↓←→"


@checked
def render_grid(
    cost: ArrayLike,
    size: int,
    agent: int | None = None,
    policy: ArrayLike | None = None,
    occupancy: ArrayLike | None = None,
    cell_size: int | None = None,
) -> Picture:
    """Paint an n-by-n gridworld as an (n·cell, n·cell, 3) array of bytes.

    Parameters
    ----------
    cost
        (S,) costs of the states, or (S·A,) or (S, A) costs of the pairs, which are averaged over the actions. Costs
        beyond [−1, 1] shrink the colour scale.
    size
        n, with S = n².
    agent
        The state to mark.
    policy
        (S, A): an arrow for each action (up, down, left, right), the fainter the less probable.
    occupancy
        (S, A) or (S,): a dark square in each cell, the darker the larger (by its square root).
    cell_size
        Pixels per cell; by default what makes the picture about 640 pixels wide and arrows legible.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym.envs import render_grid
    >>> render_grid(np.zeros(9), size=3, agent=4).shape
    (120, 120, 3)
    """
    costs = _state_costs(cost, size)
    if agent is not None:
        agent = index_below("agent", agent, size**2)
    costs = costs / max(1.0, np.abs(costs).max())
    arrows = None if policy is None else policy_array("policy", policy, size**2, 4)
    heat = None if occupancy is None else _heat(occupancy, size)
    if cell_size is None:
        cell_size = max(_SMALLEST_ARROW if policy is not None else 1, min(40, 640 // size))
    integer_at_least("cell_size", cell_size, 1)
    picture = np.empty((size * cell_size, size * cell_size, 3), dtype=np.uint8)
    for row in range(size):  # by rows of cells, so that a large grid needs little more memory than its picture
        states = slice(row * size, (row + 1) * size)
        cells = np.repeat(_colours(costs[states]), cell_size**2, axis=0).reshape(size, cell_size, cell_size, 3)
        if heat is not None:
            _blend(cells, _HEAT, 0.8 * heat[states, None, None] * _square(cell_size))
        if cell_size >= 8:
            _blend(cells, _LINE, _border(cell_size))
        if arrows is not None:
            _blend(cells, _PAPER, 0.8 * _strongest(arrows[states] ** 2, _arrow_masks(cell_size, halo=0.04)))
            _blend(cells, _INK, _strongest(arrows[states], _arrow_masks(cell_size)))
        if agent is not None and agent // size == row:
            cell = cells[agent % size]
            _blend(cell, _PAPER, _disc(cell_size, 0.36))
            _blend(cell, _INK, _disc(cell_size, 0.30))
        strip = cells.transpose(1, 0, 2, 3).reshape(cell_size, size * cell_size, 3)
        picture[row * cell_size : (row + 1) * cell_size] = np.rint(strip)
    if cell_size >= 8:
        picture[0] = picture[:, 0] = _LINE
    return picture


def render_text(
    cost: ArrayLike,
    size: int,
    agent: int | None = None,
    policy: ArrayLike | None = None,
    occupancy: ArrayLike | None = None,
) -> str:
    """Write an n-by-n gridworld as text: ``+`` costly, ``-`` cheap, ``.`` free, brackets around the agent.

    A policy adds the arrow of each state's most probable action, an occupancy its share of the largest in tenths.
    """
    costs = _state_costs(cost, size)
    words = np.where(costs > 0, "+", np.where(costs < 0, "-", "."))
    if policy is not None:
        best = policy_array("policy", policy, size**2, 4).argmax(axis=1)
        words = np.char.add(words, np.array(list(_ARROWS))[best])
    if occupancy is not None:
        tenths = np.minimum(10 * _heat(occupancy, size) ** 2, 9).astype(int)
        words = np.char.add(words, tenths.astype(str))
    cells = [f"[{word}]" if state == agent else f" {word} " for state, word in enumerate(words)]
    return "\n".join("".join(cells[start : start + size]) for start in range(0, size**2, size)) + "\n"


class Window:
    """A pygame window that shows one picture after another."""

    def __init__(self, title: str) -> None:
        try:
            import pygame
        except ImportError as error:
            raise gym.error.DependencyNotInstalled(
                "render_mode='human' needs the 'human' extra: pip install 'lfd-gym[human]'"
            ) from error
        self._pygame = pygame
        pygame.display.init()
        pygame.display.set_caption(title)
        self._clock = pygame.time.Clock()

    def show(self, picture: Picture, frames_per_second: int) -> None:
        """Show ``picture``, waiting so that no more than ``frames_per_second`` are shown."""
        height, width, _ = picture.shape
        screen = self._pygame.display.get_surface()
        if screen is None or screen.get_size() != (width, height):
            screen = self._pygame.display.set_mode((width, height))
        self._pygame.surfarray.blit_array(screen, picture.transpose(1, 0, 2))
        self._pygame.event.pump()
        self._pygame.display.flip()
        self._clock.tick(frames_per_second)

    def close(self) -> None:
        """Close the window."""
        self._pygame.display.quit()


def _state_costs(cost: ArrayLike, size: int) -> FloatArray:
    array = np.asarray(cost, dtype=np.float64)
    if array.shape == (4 * size**2,):
        array = array.reshape(size**2, 4)
    if array.ndim == 2:
        return np.asarray(finite_array("cost", array, (size**2, 4)).mean(axis=1))
    return finite_array("cost", array, (size**2,))


def _heat(occupancy: ArrayLike, size: int) -> FloatArray:
    array = np.asarray(occupancy, dtype=np.float64)
    states = finite_array("occupancy", array.sum(axis=1) if array.ndim == 2 else array, (size**2,))
    if states.min() < 0:
        raise ValueError(f"occupancy must be nonnegative, got {states.min()} at state {states.argmin()}")
    return np.asarray(np.sqrt(states / max(states.max(), np.finfo(np.float64).tiny)))


def _colours(costs: FloatArray) -> FloatArray:
    """(n, 3) colours of costs in [−1, 1]."""
    towards = np.where(costs[:, None] < 0, _CHEAP, _DEAR)
    return np.asarray(_FREE + 0.75 * np.abs(costs)[:, None] * (towards - _FREE))


def _blend(cells: FloatArray, colour: NDArray[np.int64], opacity: FloatArray) -> None:
    cells += opacity[..., None] * (colour - cells)


def _strongest(probabilities: FloatArray, masks: FloatArray) -> FloatArray:
    """(n, cell, cell) opacity: where arrows overlap, the strongest counts."""
    return np.asarray(np.max(probabilities[:, :, None, None] * masks, axis=1))


def _coverage(cell_size: int, inside: Callable[[FloatArray, FloatArray], NDArray[np.bool_]]) -> FloatArray:
    """(cell, cell) share of each pixel that lies inside a shape given over x (right) and y (up) in [−½, ½]."""
    fine = 8
    ticks = (np.arange(cell_size * fine) + 0.5) / (cell_size * fine) - 0.5
    y, x = np.meshgrid(-ticks, ticks, indexing="ij")
    return np.asarray(inside(x, y).reshape(cell_size, fine, cell_size, fine).mean(axis=(1, 3)))


@lru_cache(maxsize=8)
def _arrow_masks(cell_size: int, halo: float = 0.0) -> FloatArray:
    """(4, cell, cell) opacity of the arrows up, down, left and right, grown by ``halo`` on each side."""

    def inside(x: FloatArray, y: FloatArray) -> NDArray[np.bool_]:
        shaft = (np.abs(x) <= 0.04 + halo) & (y >= -0.3 - halo) & (y <= 0.1)
        head = (y >= 0.04 - halo) & (np.abs(x) <= 0.62 * (0.34 - y) + 1.2 * halo) & (y <= 0.34 + halo)
        return shaft | head

    up = _coverage(cell_size, inside)
    return np.stack([up, up[::-1], up.T, up.T[:, ::-1]])


@lru_cache(maxsize=8)
def _disc(cell_size: int, radius: float) -> FloatArray:
    return _coverage(cell_size, lambda x, y: x**2 + y**2 <= radius**2)


@lru_cache(maxsize=8)
def _square(cell_size: int) -> FloatArray:
    return _coverage(cell_size, lambda x, y: np.maximum(np.abs(x), np.abs(y)) <= 0.38)


@lru_cache(maxsize=8)
def _border(cell_size: int) -> FloatArray:
    mask = np.zeros((cell_size, cell_size))
    mask[-1, :] = mask[:, -1] = 1.0
    return mask
