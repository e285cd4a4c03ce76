"""Models of PyTorch as what --model=FILE takes (docs/models.md, "A layer list")."""
import json
import os

from pipelab import _core
from pipelab.options import AsFile


class Model(AsFile):
    """A list of layers with costs; the option `model` takes it."""

    def __init__(self, data):
        self.data = data

    @classmethod
    def load(cls, path):
        try:
            with open(path, encoding="utf-8") as file:
                return cls(json.load(file))
        except OSError as error:
            raise _core.Error(f"{os.fspath(path)}: {error.strerror}") from None
        except ValueError as error:
            raise _core.Error(f"{os.fspath(path)}: {error}") from None

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json())

    name = property(lambda self: self.data["name"])
    layers = property(lambda self: self.data["layers"], doc="Each a dict, in topological order.")

    @property
    def parameters(self):
        return sum(layer.get("parameters", 0) for layer in self.layers)

    @property
    def flops(self):
        """Of one sample's forward, a multiplication with its addition as 2."""
        return sum(float(layer["flops"]["forward"].split()[0]) for layer in self.layers)

    @property
    def split_layers(self):
        """Names of the layers that a tensor-parallel group divides."""
        return [layer["name"] for layer in self.layers
                if layer.get("tensor_parallel", {}).get("whole") != "all" and "tensor_parallel" in layer]

    def json(self):
        return json.dumps(self.data, indent=1) + "\n"

    def _file(self):
        return "model.json", self.json()

    def __repr__(self):
        return (f"<pipelab.Model {self.name}: {len(self.layers)} layers, {self.parameters} parameters, "
                f"{self.flops:.4g} flops a sample>")


def from_torch(module, inputs, name=None):
    """The model of a torch.nn.Module, by torch.export; PyTorch must be installed.

    `inputs` is a tensor or a tuple of them, whose first dimension is the batch, of any size. Parameters
    and shapes are the module's; flops are those of its products. Parameters that no operation reads
    count in the first layer.
    """
    try:
        import torch
    except ImportError:
        raise _core.Error("from_torch: PyTorch is not installed (pip install torch)") from None
    from pipelab import torch_graph, torch_layers
    if not isinstance(module, torch.nn.Module):
        raise _core.UsageError(f"from_torch: {type(module).__name__}: must be a torch.nn.Module")
    inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    if not inputs or not all(isinstance(i, torch.Tensor) and i.dim() > 0 for i in inputs):
        raise _core.UsageError(
            "from_torch: inputs must be a tensor, or a tuple of tensors, whose first "
            "dimension is the batch")
    try:
        program = torch.export.export(module, inputs, strict=False)
    except Exception as error:  # of many kinds, as the module's own code raises
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise _core.Error(f"from_torch: torch.export cannot read the module: {line}") from error
    graph = torch_graph.Graph(program, module)
    dtype = next((p.dtype for p in module.parameters()), torch.get_default_dtype())
    return Model(torch_layers.listed(graph, name or type(module).__name__.lower(),
                                     samples=inputs[0].shape[0], width=min(4, dtype.itemsize),
                                     parameters=sum(p.numel() for p in module.parameters())))
