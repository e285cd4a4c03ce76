# Made by python/tests/make_stubs.py from python/tests/stubs_head.txt and the options of the commands.
import os
from collections.abc import Sequence
from typing import Any

import numpy

Value = str | int | float | os.PathLike[str] | Sequence[str | int | float] | None

__version__: str
__all__: list[str]

class Error(Exception): ...
class UsageError(Error, ValueError): ...

class Schedule:
    def __init__(self, scheme: str | os.PathLike[str], **sizes: Value) -> None: ...
    @classmethod
    def from_text(cls, text: str) -> Schedule: ...
    @classmethod
    def from_csv(cls, text: str) -> Schedule: ...
    @classmethod
    def from_json(cls, text: str) -> Schedule: ...
    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schedule: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def devices(self) -> int: ...
    @property
    def stages(self) -> int: ...
    @property
    def micro_batches(self) -> int: ...
    @property
    def slices(self) -> int: ...
    @property
    def stage_devices(self) -> list[list[list[int]]]: ...
    def actions(self) -> numpy.ndarray[Any, Any]: ...
    def text(self) -> str: ...
    def csv(self) -> str: ...
    def json(self) -> str: ...
    def to_torch(self, stages: Sequence[Any], **options: Any) -> Any: ...

class Simulation:
    figures: dict[str, Any]
    @property
    def makespan(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def bubble(self) -> float: ...
    @property
    def config(self) -> str | None: ...
    @property
    def step_ms(self) -> float | None: ...
    @property
    def tflops_per_device(self) -> float | None: ...
    @property
    def samples_per_second(self) -> float | None: ...
    @property
    def peak_tflops(self) -> float | None: ...
    @property
    def mfu(self) -> float | None: ...
    @property
    def fits(self) -> bool: ...
    @property
    def does_not_fit(self) -> str: ...
    @property
    def note(self) -> str: ...
    @property
    def peak_memory(self) -> list[int] | None: ...
    @property
    def schedule(self) -> Schedule: ...
    def timeline(self) -> numpy.ndarray[Any, Any]: ...
    def text(self, columns: int = ...) -> str: ...
    def svg(self) -> str: ...
    def memory_svg(self) -> str: ...
    def chrome_trace(self) -> str: ...

class SearchResult(Sequence[dict[str, Any]]):
    refused: str
    stopped: bool
    note: str
    @property
    def configs(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Any: ...

class Comparison(Sequence[dict[str, Any]]):
    @property
    def configs(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Any: ...

class Plan:
    data: dict[str, Any]
    def json(self) -> str: ...

class Synthesis:
    figures: dict[str, Any]
    schedule: Schedule
    @property
    def passes(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def lower_bound(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def optimal(self) -> bool: ...
    @property
    def stopped(self) -> bool: ...

class Model:
    data: dict[str, Any]
    def __init__(self, data: dict[str, Any]) -> None: ...
    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def layers(self) -> list[dict[str, Any]]: ...
    @property
    def parameters(self) -> int: ...
    @property
    def flops(self) -> float: ...
    @property
    def split_layers(self) -> list[str]: ...
    def json(self) -> str: ...

def from_torch(module: Any, inputs: Any, name: str | None = ...) -> Model: ...
def schemes() -> list[dict[str, Any]]: ...
def models() -> list[dict[str, Any]]: ...
def clusters() -> list[dict[str, Any]]: ...

def simulate(
    schedule: str | os.PathLike[str] | Schedule | None = ...,
    *,
    keys: str = ...,
    csv: Value = ...,
    json: Value = ...,
    text: Value = ...,
    devices: int | None = ...,
    micro_batches: int | None = ...,
    virtual_stages: int | None = ...,
    recompute: bool | None = ...,
    group_size: int | None = ...,
    replicas: int | None = ...,
    concatenation: Value = ...,
    update_interval: int | None = ...,
    slices: int | None = ...,
    edges: Value = ...,
    stage_devices: Value = ...,
    stage_micro_batches: Value = ...,
    data_parallel: int | None = ...,
    context_parallel: int | None = ...,
    context_exchange: Value = ...,
    expert_parallel: int | None = ...,
    forward: Value = ...,
    backward_input: Value = ...,
    backward_weight: Value = ...,
    p2p_latency: Value = ...,
    atomic_pairs: bool | None = ...,
    recompute_time: Value = ...,
    step: Value = ...,
    reduce: Value = ...,
    bandwidth: Value = ...,
    links: Value = ...,
    overlap: bool | None = ...,
    device_speed: Value = ...,
    bytes: Value = ...,
    activation_bytes: Value = ...,
    weights: Value = ...,
    optimizer_tensors: int | None = ...,
    workspace: Value = ...,
    micro_batch_size: int | None = ...,
    layout: Value = ...,
    execution: Value = ...,
    ranks: Value = ...,
    model: Model | str | os.PathLike[str] | None = ...,
    model_time_unit: Value = ...,
    kernels: Value = ...,
    cluster: Value = ...,
    launches: Value = ...,
    dtype: Value = ...,
    reserve: float | None = ...,
    plan: Plan | str | os.PathLike[str] | None = ...,
    sequential: bool | None = ...,
    arrivals: Value = ...,
    when_full: Value = ...,
) -> Simulation: ...

def search(
    *,
    model: Model | str | os.PathLike[str] | None = ...,
    model_time_unit: Value = ...,
    kernels: Value = ...,
    cluster: Value = ...,
    launches: Value = ...,
    dtype: Value = ...,
    reserve: float | None = ...,
    batch: int | None = ...,
    devices: int | None = ...,
    top: int | None = ...,
    schemes: Value = ...,
    max_tensor: int | None = ...,
    max_context: int | None = ...,
    max_expert: int | None = ...,
    fixed: Value = ...,
    systems: Value = ...,
    explain: Value = ...,
    tokens: Value = ...,
) -> SearchResult: ...

def compare(
    *configs: str | Schedule,
    model: Model | str | os.PathLike[str] | None = ...,
    model_time_unit: Value = ...,
    kernels: Value = ...,
    cluster: Value = ...,
    launches: Value = ...,
    dtype: Value = ...,
    reserve: float | None = ...,
    columns: int | None = ...,
) -> Comparison: ...

def plan(
    *,
    piper_json: Value = ...,
    pipedream_profile: Value = ...,
    dnn_partitioning_json: Value = ...,
    model: Model | str | os.PathLike[str] | None = ...,
    cluster: Value = ...,
    devices: int | None = ...,
    machines: Value = ...,
    memory: Value = ...,
    micro_batches: int | None = ...,
    bandwidth: Value = ...,
    device_speed: Value = ...,
    micro_batch_size: int | None = ...,
    sample_sizes: Value = ...,
    token_step: int | None = ...,
    dtype: Value = ...,
    blocks: bool | None = ...,
    model_time_unit: Value = ...,
    planner: Value = ...,
    time_limit: Value = ...,
    stages: int | None = ...,
    stage_micro_batch_size: int | None = ...,
    objective: Value = ...,
    seed: int | None = ...,
) -> Plan: ...

def synthesize(
    config: str,
    *,
    forward: Value = ...,
    backward_input: Value = ...,
    backward_weight: Value = ...,
    p2p_latency: Value = ...,
    atomic_pairs: bool | None = ...,
    recompute_time: Value = ...,
    step: Value = ...,
    reduce: Value = ...,
    bandwidth: Value = ...,
    links: Value = ...,
    overlap: bool | None = ...,
    device_speed: Value = ...,
    bytes: Value = ...,
    activation_bytes: Value = ...,
    weights: Value = ...,
    optimizer_tensors: int | None = ...,
    workspace: Value = ...,
    micro_batch_size: int | None = ...,
    layout: Value = ...,
    execution: Value = ...,
    ranks: Value = ...,
    model: Model | str | os.PathLike[str] | None = ...,
    model_time_unit: Value = ...,
    kernels: Value = ...,
    cluster: Value = ...,
    launches: Value = ...,
    dtype: Value = ...,
    reserve: float | None = ...,
    devices: int | None = ...,
    micro_batches: int | None = ...,
    virtual_stages: int | None = ...,
    recompute: bool | None = ...,
    data_parallel: int | None = ...,
    memory: Value = ...,
    times: Value = ...,
    time_limit: Value = ...,
    seed: int | None = ...,
    slow_device: Value = ...,
    freedoms: Value = ...,
) -> Synthesis: ...
