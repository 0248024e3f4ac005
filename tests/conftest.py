"""Settings of every test."""

import os
import signal

from hypothesis import HealthCheck, settings

# Kernels are compiled when they are first called, which may be while an example is being drawn. What fails says how to
# draw it again.
settings.register_profile("compiling", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
# Where others wait for the answer, the same examples every time; here and in `make test-fuzz`, new ones.
settings.register_profile("ci", settings.get_profile("compiling"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "compiling")

# A shell that starts the tests in the background has them ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
