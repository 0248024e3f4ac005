"""Settings of every test."""

from hypothesis import HealthCheck, settings

# Kernels are compiled when they are first called, which may be while an example is being drawn.
settings.register_profile("compiling", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("compiling")
