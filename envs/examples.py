"""Small MDPs whose occupancies and values are known in closed form."""

import numpy as np

from lfd_gym.model.mdp import FiniteMDP


def stay_or_switch(discount: float, success: float = 0.8) -> FiniteMDP:
    """Two states: action 0 stays, action 1 reaches the other state with probability ``success``. Starts in state 0.

    The policy that leaves state 0 and stays in state 1 spends the share (1−γ)/(1−γ(1−success)) of the discounted time
    in state 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym.envs.examples import stay_or_switch
    >>> mdp = stay_or_switch(discount=0.5, success=0.8)
    >>> leave_then_stay = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> mdp.occupancy(leave_then_stay).sum(axis=1).round(6)
    array([0.555556, 0.444444])
    """
    stay, switch = np.eye(2), np.array([[1 - success, success], [success, 1 - success]])
    return FiniteMDP(np.stack([stay, switch], axis=1), np.array([1.0, 0.0]), discount)


def self_loops(n_states: int, n_actions: int, discount: float) -> FiniteMDP:
    """No action moves the agent: the value of a policy is its cost, its occupancy ν₀(x) π(a|x). Starts uniformly.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym.envs.examples import self_loops
    >>> self_loops(n_states=2, n_actions=1, discount=0.9).value_function([[1.0], [1.0]], [0.3, -0.4]).round(6)
    array([ 0.3, -0.4])
    """
    transitions = np.repeat(np.eye(n_states), n_actions, axis=0)
    return FiniteMDP(transitions, np.full(n_states, 1 / n_states), discount)
