"""Schemes of pipeline-parallel training as objects: schedules, simulated steps, searches, plans.

    import pipelab
    step = pipelab.simulate("zbv:P=4,M=16", model="gpt-6.6b", cluster="dgx-a100")
    step.bubble, step.mfu            # a notebook draws `step` itself

Functions and options are those of the command line (docs/python.md, docs/cli.md).
"""
from pipelab._core import Error, UsageError
from pipelab._core import version as __version__
from pipelab.commands import clusters, compare, models, plan, schemes, search, simulate, synthesize
from pipelab.results import Comparison, Plan, SearchResult, Simulation, Synthesis
from pipelab.schedule import Schedule
from pipelab.torch_model import Model, from_torch

__all__ = [
    "Comparison", "Error", "Model", "Plan", "Schedule", "SearchResult", "Simulation", "Synthesis",
    "UsageError", "clusters", "compare", "from_torch", "models", "plan", "schemes", "search",
    "simulate", "synthesize",
]
