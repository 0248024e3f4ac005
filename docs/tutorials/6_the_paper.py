# %% [markdown]
# # The paper, from Section 2 to Appendix E
#
# Kamoutsi, Banjac and Lygeros, *Efficient Performance Bounds for Primal-Dual Reinforcement Learning from
# Demonstrations* (ICML 2021), in the order of its sections and in its own words as far as code allows.
# [The map](../paper_map.md) has every statement with its code and test.

# %%
import gymnasium as gym
import numpy as np

import lfd_gym as lfd
from lfd_gym import plots

rng = np.random.default_rng(0)

# %% [markdown]
# ## Section 2: Markov decision processes
#
# The gridworld of Appendix E, smaller. `FiniteMDP` has the transitions, ν₀ and γ; expected costs and occupancy measures
# are normalised by 1 − γ.

# %%
env = gym.make("lfd_gym/StochasticGridworld-v0", size=8, cost_seed=3)
mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
costs = env.unwrapped.cost_features  # (S·A, n_c), the paper's C
c_true = costs[:, 0]
expert = mdp.optimal_policy(c_true)
occupancy = mdp.occupancy(expert)  # μ of the expert, (S, A)

print("⟨μ, 1⟩ =", occupancy.sum().round(12))
print("⟨μ, c_true⟩ =", (occupancy.ravel() @ c_true).round(6), "= ρ =", round(mdp.expected_cost(expert, c_true), 6))

# %% [markdown]
# ## Section 3: learning from an expert whose costs are unknown
#
# δ_C(π, π_E) = max over w of ρ_w(π) − ρ_w(π_E), and the apprentice makes it least. With the expert's expectations known
# exactly α* = 0 (Lemma 1), since the expert is optimal for a cost of the class; and the weights of the dual are costs
# for which it is (Proposition 2).

# %%
rho = costs.T @ occupancy.ravel()
apprentice = lfd.solve_cutting_plane(mdp, costs, rho)
print("α* between", f"{apprentice.lower_bound:.1e} and {apprentice.upper_bound:.1e}")
print("w =", apprentice.cost_weights.round(6))
print(lfd.explains(mdp, costs, expert, apprentice.cost_weights))

# %% [markdown]
# The linear program (P) says the same:

# %%
program = lfd.solve_linear_program(mdp, costs, rho)
print("difference of the two:", f"{abs(program.apprentice_value - apprentice.apprentice_value):.1e}")

# %% [markdown]
# ## Section 4: the relaxed saddle-point problem
#
# μ becomes Φθ and u becomes Ψλ. Without approximation Φ and Ψ are identities; the radius β of λ is computed, so that
# the values of every cost in the class fit.

# %%
demonstrations = lfd.collect(env, expert, 200, 100, rng)
rho_hat = lfd.feature_expectations(demonstrations, costs, discount=0.9)
print(
    "|ρ̂ − ρ| =",
    abs(rho_hat.values - rho).max().round(4),
    "at most",
    rho_hat.radius(delta=0.05).max().round(4),
    "(95 %)",
)
problem = lfd.SaddlePointProblem.tabular(mdp, costs, rho_hat.values)
print("β =", round(problem.value_radius, 1))

# %% [markdown]
# ## Section 5: Algorithm 1
#
# Stochastic mirror descent: each round draws two next states from the simulator and never looks at the transition
# probabilities.

# %%
model = lfd.as_generative_model(env)
solution = lfd.solve_mirror_descent(problem, model, n_iterations=1_000_000, rng=rng, progress=False)
print("residual", round(solution.residual, 3), "after", f"{solution.oracle_calls:,} draws")
print("true cost above the expert's:", round(mdp.expected_cost(solution.policy, c_true) - rho[0], 4))

# %%
plots.draw_residuals(solution)

# %% [markdown]
# The schedule is a practical one; `schedule="paper"` is the one that Theorem 1 is about, whose constants are made for a
# proof: [what each reaches](../algorithm_1.md#which-schedule).
#
# ## Theorem 1 and certificates
#
# What the theorem asks for beforehand, and what the certificate of the very same policy says afterwards:

# %%
from lfd_gym.assessment import bounds

size = bounds.ProblemSize.of(problem)
print(bounds.theorem_1(size, accuracy=0.1, delta=0.05))
task = lfd.Task(env, demonstrations, discount=0.9)
print(lfd.certify(solution.policy, task, delta=0.05).conclusion)

# %% [markdown]
# ## Appendix E: the experiment
#
# The cost of the learned policy over the number of demonstrations. The paper's figure has 16 × 16 cells and 20 runs for
# each number; `lfd-gym reproduce figure` makes it. In small:

# %%
for m in (1, 10, 100):
    found = []
    for _ in range(5):
        some = lfd.feature_expectations(lfd.collect(model, expert, m, 200, rng), costs, discount=0.9)
        found.append(mdp.expected_cost(lfd.solve_cutting_plane(mdp, costs, some.values).policy, c_true))
    print(f"{m:4} demonstrations: {np.mean(found):+.4f} ± {np.std(found):.4f}")
print(f"          the expert: {rho[0]:+.4f}")

# %%
plots.draw_policy(solution.policy, task)

# %% [markdown]
# Where we differ from the paper, and why: [its slips](../paper_slips.md). Proposition 5 in a sharper form, with its
# proof: [theory](../theory.md).
