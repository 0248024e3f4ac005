"""The linearly relaxed saddle-point problem, how much it loses, and its deterministic solver."""
