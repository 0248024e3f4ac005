"""Pictures of policies, occupancies, values, costs, certificates, runs and comparisons, on Axes of matplotlib."""

from lfd_gym.plots.axes import save_figure
from lfd_gym.plots.certificates import draw_certificate
from lfd_gym.plots.curves import draw_comparison, draw_residuals
from lfd_gym.plots.policies import draw_cost, draw_occupancy, draw_policy, draw_values
from lfd_gym.plots.visits import save_visit_map, visit_counts

__all__ = [
    "draw_certificate",
    "draw_comparison",
    "draw_cost",
    "draw_occupancy",
    "draw_policy",
    "draw_residuals",
    "draw_values",
    "save_figure",
    "save_visit_map",
    "visit_counts",
]
