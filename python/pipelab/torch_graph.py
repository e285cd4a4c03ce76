"""The graph of a torch.nn.Module as layers, from torch.export.

A layer is a run of operations of one module with one product at most; views belong to the layer of
what they view. So layers follow one another without cycles, and any cut between them is a stage.
"""
import dataclasses
import math

from pipelab import _core, torch_ops


@dataclasses.dataclass
class Op:
    name: str
    node: object
    inputs: list  # bases of the tensors it reads, in the order of its arguments
    shapes: list  # of all its tensors, parameters included
    output: tuple
    flops: int


@dataclasses.dataclass
class Layer:
    name: str
    ops: list = dataclasses.field(default_factory=list)
    parameters: dict = dataclasses.field(default_factory=dict)  # identity -> numbers
    inputs: list = dataclasses.field(default_factory=list)      # layers, in their order
    taken: set = dataclasses.field(default_factory=set)         # own tensors that others take

    @property
    def product(self):
        return next((op for op in self.ops if op.name in torch_ops.PRODUCTS), None)

    @property
    def flops(self):
        return sum(op.flops for op in self.ops)

    @property
    def kind(self):
        if self.product is not None:
            return torch_ops.kind(self.product.name)
        kinds = [torch_ops.kind(op.name) for op in self.ops]
        return next((kind for kind in kinds if kind != "elementwise"), "elementwise")


class Graph:
    """`layers` in topological order; tensors by the node that made them."""

    def __init__(self, program, module):
        self.layers = []
        self.bytes = {}      # node -> of the tensor, as often as there are samples
        self.batched = {}    # node -> whether it depends on an input
        self.layer_of = {}   # node -> layer
        self.outputs = []    # layers
        self._base = {}      # node -> the one whose memory it views
        self._names = set()
        self._parameters = _parameters(program, module)
        self._constants = set()
        for node in program.graph.nodes:
            self._add(node, program)
        self._connect()
        for layer in self.layers:
            layer.name = self._unique(layer.name)

    def _unique(self, name):
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name}.{number}"
        self._names.add(unique)
        return unique

    def _add(self, node, program):
        if node.op == "placeholder":
            signature = program.graph_signature
            user = node.name in signature.user_inputs
            if not user and node.name not in signature.inputs_to_parameters:
                self._constants.add(node)
            self.batched[node] = user
            self._base[node] = node
        elif node.op == "call_function":
            self._add_op(node)
        elif node.op == "output":
            self._results = [n for n in node.all_input_nodes
                             if n.name in program.graph_signature.user_outputs]

    def _add_op(self, node):
        name = _name(node)
        if not node.all_input_nodes:  # arange and the like
            self.batched[node] = False
            self._base[node] = node
            self._constants.add(node)
            return
        if name in torch_ops.REFUSED:
            raise _core.Error(f"from_torch: {node.target}: its flops are not known")
        reads = node.all_input_nodes
        self.batched[node] = any(self.batched.get(n, False) for n in reads)
        if name in torch_ops.VIEWS and reads:
            base = self._base[node] = self._base.get(reads[0], reads[0])
            if base in self.layer_of:
                self.layer_of[node] = self.layer_of[base]
                return
            if base.op == "placeholder":
                return
        self._base[node] = node
        layer = self._layer_for(node, name)
        shapes = [_shape(n) for n in reads]
        flops = 0
        if name in torch_ops.PRODUCTS:
            equation = node.args[0] if name == "einsum" else None
            flops = torch_ops.flops(name, shapes, _shape(node), equation)
        inputs = [self._base[n] for n in reads if self._base[n] not in self._parameters and
                  self._base[n] not in self._constants]
        layer.ops.append(Op(name, node, inputs, shapes, _shape(node), flops))
        for n in reads:
            parameter = self._parameters.get(self._base[n])
            if parameter is not None:
                layer.parameters[parameter[0]] = parameter[1]
        self.layer_of[node] = layer
        self.bytes[node] = _bytes(node)

    def _layer_for(self, node, name):
        path = _module(node)
        last = self.layers[-1] if self.layers else None
        full = name in torch_ops.PRODUCTS and last is not None and last.product is not None
        if last is None or last.path != path or full:
            last = Layer(path or name)
            last.path = path
            self.layers.append(last)
        return last

    def _connect(self):
        seen = set()
        for layer in self.layers:
            # A parameter that several layers read counts where it is read first.
            layer.parameters = {k: v for k, v in layer.parameters.items() if k not in seen}
            seen |= set(layer.parameters)
            for op in layer.ops:
                for tensor in op.inputs:
                    maker = self.layer_of.get(tensor)
                    if maker is None or maker is layer:
                        continue
                    maker.taken.add(tensor)
                    if maker not in layer.inputs:
                        layer.inputs.append(maker)
        for node in self._results:
            base = self._base.get(node, node)
            if base in self.layer_of:
                self.layer_of[base].taken.add(base)
                if self.layer_of[base] not in self.outputs:
                    self.outputs.append(self.layer_of[base])


def _parameters(program, module):
    """placeholder -> (identity, numbers); tied ones have one identity."""
    own = {name: p for name, p in module.named_parameters(remove_duplicate=False)}
    found = {}
    names = program.graph_signature.inputs_to_parameters
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in names:
            parameter = own[names[node.name]]
            found[node] = (id(parameter), parameter.numel())
    return found


def _name(node):
    name = getattr(node.target, "__name__", str(node.target)).split(".")[0]
    return name.rstrip("_") if not name.startswith("_") else name


def _value(node):
    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        value = next((v for v in value if hasattr(v, "shape")), None)
    return value


def _shape(node):
    value = _value(node)
    return tuple(int(n) for n in value.shape) if hasattr(value, "shape") else ()


def _bytes(node):
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return sum(math.prod(int(n) for n in v.shape) * v.element_size()
               for v in values if hasattr(v, "shape"))


def _module(node):
    """The path of the innermost module: "layers.0.fc"."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(list(stack.values())), ("",))[0]
    return path[len("L['self']."):] if path.startswith("L['self'].") else path
