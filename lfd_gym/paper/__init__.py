"""The paper's experiment, and its statements at work."""
