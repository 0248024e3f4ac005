"""Comparing learners: specs, runs in many processes, summaries and reports."""

from lfd_gym.benchmark.presets import narrowed, preset
from lfd_gym.benchmark.reading import read_spec
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.runner import run_benchmark
from lfd_gym.benchmark.spec import BenchmarkSpec, Cell, EnvironmentSpec, LearnerSpec
from lfd_gym.benchmark.summary import SummaryRow, conclusion, format_tables, summarise
from lfd_gym.engines import Engine, ProcessEngine, RayEngine

__all__ = [
    "BenchmarkSpec",
    "Cell",
    "Engine",
    "EnvironmentSpec",
    "LearnerSpec",
    "ProcessEngine",
    "RayEngine",
    "ResultsFolder",
    "SummaryRow",
    "conclusion",
    "format_tables",
    "narrowed",
    "preset",
    "read_spec",
    "run_benchmark",
    "summarise",
]
