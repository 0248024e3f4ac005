"""The imitation-style trainer, the policies it returns, and the files of a run."""
