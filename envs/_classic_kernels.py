"""The steps of Gymnasium's classic control environments for whole batches, with their operations in their order.

Every kernel takes the states (n, d), which it overwrites by their successors, one move for each, and the constants by
the names that the environment has for them. The successor of an absorbing state, and of a step that ends the episode,
is a row of NaN. A row that leads to infinity or to angles of many turns it keeps and marks in ``left``: what happens
there is for the environment to say. It returns the number of such rows. What is not finite is looked for before it is
cut to bounds, as no two languages agree on the larger of a number and NaN.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit_melted, jit_raw
from lfd_gym.validation import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

#: Acrobot turns an angle back by 2π at a time: without end for one too large to be changed by that.
_LARGEST_ANGLE = 1000.0


@jit_raw
def step_cart_pole(
    states: FloatArray,
    actions: IntArray,
    left: BoolArray,
    euler: bool,
    gravity: float,
    masspole: float,
    total_mass: float,
    length: float,
    polemass_length: float,
    force_mag: float,
    tau: float,
    theta_threshold_radians: float,
    x_threshold: float,
) -> int:
    """Step CartPole, by Euler's method or, unless ``euler``, by the semi-implicit one."""
    n_left = 0
    for k in range(len(states)):
        x, x_dot, theta, theta_dot = states[k, 0], states[k, 1], states[k, 2], states[k, 3]
        if math.isnan(x):
            continue
        force = force_mag if actions[k] == 1 else -force_mag
        cosine = math.cos(theta)
        sine = math.sin(theta)
        temp = (force + polemass_length * (theta_dot * theta_dot) * sine) / total_mass
        theta_acc = (gravity * sine - cosine * temp) / (
            length * (4.0 / 3.0 - masspole * (cosine * cosine) / total_mass)
        )
        x_acc = temp - polemass_length * theta_acc * cosine / total_mass
        if euler:
            x = x + tau * x_dot
            x_dot = x_dot + tau * x_acc
            theta = theta + tau * theta_dot
            theta_dot = theta_dot + tau * theta_acc
        else:
            x_dot = x_dot + tau * x_acc
            x = x + tau * x_dot
            theta_dot = theta_dot + tau * theta_acc
            theta = theta + tau * theta_dot
        if not (math.isfinite(x) and math.isfinite(x_dot) and math.isfinite(theta) and math.isfinite(theta_dot)):
            left[k] = True
            n_left += 1
        elif x < -x_threshold or x > x_threshold or theta < -theta_threshold_radians or theta > theta_threshold_radians:
            states[k, :] = np.nan
        else:
            states[k, 0], states[k, 1], states[k, 2], states[k, 3] = x, x_dot, theta, theta_dot
    return n_left


@jit_raw
def step_mountain_car(
    states: FloatArray,
    actions: IntArray,
    left: BoolArray,
    force: float,
    gravity: float,
    max_speed: float,
    min_position: float,
    max_position: float,
    goal_position: float,
    goal_velocity: float,
) -> int:
    """Step MountainCar."""
    n_left = 0
    for k in range(len(states)):
        position, velocity = states[k, 0], states[k, 1]
        if math.isnan(position):
            continue
        speed = velocity + ((actions[k] - 1) * force + math.cos(3 * position) * (-gravity))
        velocity = min(max(speed, -max_speed), max_speed)
        place = position + velocity
        position = min(max(place, min_position), max_position)
        if position == min_position and velocity < 0:
            velocity = 0.0
        if not (math.isfinite(place) and math.isfinite(speed)):
            left[k] = True
            n_left += 1
        elif position >= goal_position and velocity >= goal_velocity:
            states[k, :] = np.nan
        else:
            states[k, 0], states[k, 1] = position, velocity
    return n_left


@jit_raw
def step_mountain_car_continuous(
    states: FloatArray,
    actions: NDArray[np.float32],
    left: BoolArray,
    power: float,
    min_action: float,
    max_action: float,
    max_speed: float,
    min_position: float,
    max_position: float,
    goal_position: float,
    goal_velocity: float,
) -> int:
    """Step MountainCarContinuous, which keeps its state as float32.

    NumPy makes a float32 of a number of Python that it meets with the float32 of an action: so does this.
    """
    n_left = 0
    single_power, single_min, single_max = _single(power), _single(min_action), _single(max_action)
    for k in range(len(states)):
        position, velocity = states[k, 0], states[k, 1]
        if math.isnan(position):
            continue
        action = np.float64(actions[k])
        slope = 0.0025 * math.cos(3 * position)
        if action < single_min:  # a number of Python takes the place of the action
            push = min(min_action, max_action) * power - slope
        elif action > single_max:
            push = max_action * power - slope
        else:
            push = _single(_single(single_power * action) - _single(slope))
        speed = velocity + push
        velocity = min(max(speed, -max_speed), max_speed)
        place = position + velocity
        position = min(max(place, min_position), max_position)
        if position == min_position and velocity < 0:
            velocity = 0.0
        if not (math.isfinite(place) and math.isfinite(speed)):
            left[k] = True
            n_left += 1
        elif position >= goal_position and velocity >= goal_velocity:
            states[k, :] = np.nan
        else:
            states[k, 0], states[k, 1] = _single(position), _single(velocity)
    return n_left


@jit_raw
def step_pendulum(
    states: FloatArray,
    actions: NDArray[np.float32],
    left: BoolArray,
    g: float,
    m: float,
    l: float,  # noqa: E741 - its name in the environment
    dt: float,
    max_speed: float,
    max_torque: float,
) -> int:
    """Step Pendulum. NumPy makes a float32 of the factor of the torque, which is one: so does this."""
    n_left = 0
    limit = _single(max_torque)
    factor = _single(3.0 / (m * (l * l)))
    for k in range(len(states)):
        angle, speed = states[k, 0], states[k, 1]
        if math.isnan(angle):
            continue
        torque = min(max(np.float64(actions[k]), -limit), limit)
        new_speed = speed + (3 * g / (2 * l) * math.sin(angle) + _single(factor * torque)) * dt
        bounded = min(max(new_speed, -max_speed), max_speed)
        new_angle = angle + bounded * dt
        if not (math.isfinite(new_angle) and math.isfinite(new_speed)):
            left[k] = True
            n_left += 1
        else:
            states[k, 0], states[k, 1] = new_angle, bounded
    return n_left


@jit_raw
def step_acrobot(
    states: FloatArray,
    torques: FloatArray,
    left: BoolArray,
    nips: bool,
    LINK_LENGTH_1: float,
    LINK_MASS_1: float,
    LINK_MASS_2: float,
    LINK_COM_POS_1: float,
    LINK_COM_POS_2: float,
    LINK_MOI: float,
    MAX_VEL_1: float,
    MAX_VEL_2: float,
    dt: float,
) -> int:
    """Step Acrobot by Runge and Kutta's method of order 4, with the equations of the book or of the ``nips`` paper."""
    n_left = 0
    half = dt / 2.0
    body = (LINK_MASS_1, LINK_MASS_2, LINK_LENGTH_1, LINK_COM_POS_1, LINK_COM_POS_2, LINK_MOI)
    for k in range(len(states)):
        a0, b0, v0, w0 = states[k, 0], states[k, 1], states[k, 2], states[k, 3]  # two angles, their speeds
        if math.isnan(a0):
            continue
        torque = torques[k]
        dv1, dw1 = _accelerations(a0, b0, v0, w0, torque, nips, body)
        v1, w1 = v0 + half * dv1, w0 + half * dw1
        dv2, dw2 = _accelerations(a0 + half * v0, b0 + half * w0, v1, w1, torque, nips, body)
        v2, w2 = v0 + half * dv2, w0 + half * dw2
        dv3, dw3 = _accelerations(a0 + half * v1, b0 + half * w1, v2, w2, torque, nips, body)
        v3, w3 = v0 + dt * dv3, w0 + dt * dw3
        dv4, dw4 = _accelerations(a0 + dt * v2, b0 + dt * w2, v3, w3, torque, nips, body)
        a = a0 + dt / 6.0 * (v0 + 2 * v1 + 2 * v2 + v3)
        b = b0 + dt / 6.0 * (w0 + 2 * w1 + 2 * w2 + w3)
        v = v0 + dt / 6.0 * (dv1 + 2 * dv2 + 2 * dv3 + dv4)
        w = w0 + dt / 6.0 * (dw1 + 2 * dw2 + 2 * dw3 + dw4)
        if not (abs(a) < _LARGEST_ANGLE and abs(b) < _LARGEST_ANGLE and math.isfinite(v) and math.isfinite(w)):
            left[k] = True
            n_left += 1
            continue
        a, b = _wrapped(a), _wrapped(b)
        v, w = min(max(v, -MAX_VEL_1), MAX_VEL_1), min(max(w, -MAX_VEL_2), MAX_VEL_2)
        if -math.cos(a) - math.cos(b + a) > 1.0:
            states[k, :] = np.nan
        else:
            states[k, 0], states[k, 1], states[k, 2], states[k, 3] = a, b, v, w
    return n_left


@jit_melted
def _accelerations(
    a: float,
    b: float,
    v: float,
    w: float,
    torque: float,
    nips: bool,
    body: tuple[float, float, float, float, float, float],
) -> tuple[float, float]:
    """Return the accelerations of Acrobot's two angles ``a`` and ``b`` with speeds ``v`` and ``w``."""
    m1, m2, l1, lc1, lc2, moment = body
    cosine, sine = math.cos(b), math.sin(b)
    d1 = m1 * (lc1 * lc1) + m2 * (l1 * l1 + lc2 * lc2 + 2 * l1 * lc2 * cosine) + moment + moment
    d2 = m2 * (lc2 * lc2 + l1 * lc2 * cosine) + moment
    phi2 = m2 * lc2 * 9.8 * math.cos(a + b - math.pi / 2.0)
    phi1 = (
        -m2 * l1 * lc2 * (w * w) * sine
        - 2 * m2 * l1 * lc2 * w * v * sine
        + (m1 * lc1 + m2 * l1) * 9.8 * math.cos(a - math.pi / 2)
        + phi2
    )
    inertia = m2 * (lc2 * lc2) + moment - d2 * d2 / d1
    if nips:
        dw = (torque + d2 / d1 * phi1 - phi2) / inertia
    else:
        dw = (torque + d2 / d1 * phi1 - m2 * l1 * lc2 * (v * v) * sine - phi2) / inertia
    return -(d2 * dw + phi1) / d1, dw


@jit_melted
def _wrapped(angle: float) -> float:
    """Return ``angle`` less or plus 2π as often as it takes to be in [−π, π]."""
    while angle > math.pi:
        angle = angle - 2 * math.pi
    while angle < -math.pi:
        angle = angle + 2 * math.pi
    return angle


@jit_melted
def _single(number: float) -> float:
    """Return ``number`` rounded to float32."""
    return np.float64(np.float32(number))


@jit_raw
def nan_rows_are_whole(states: FloatArray) -> bool:
    """Whether NaN stand in rows of nothing else."""
    for k in range(len(states)):
        first = math.isnan(states[k, 0])
        for j in range(1, states.shape[1]):
            if math.isnan(states[k, j]) != first:
                return False
    return True
