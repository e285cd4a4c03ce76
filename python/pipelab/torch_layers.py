"""Layers of a graph as the keys of docs/models.md."""
from pipelab import _core, torch_ops, torch_splits


def listed(graph, name, samples, width, parameters):
    """The file's content. `samples` are those of the exported inputs; `parameters` all of the module's."""
    if not graph.layers:
        raise _core.Error(f"from_torch: {name}: the module computes nothing")
    splits = torch_splits.splits(graph, samples)
    layers = [_layer(graph, layer, samples, splits.get(id(layer))) for layer in graph.layers]
    unread = parameters - sum(layer.get("parameters", 0) for layer in layers)
    if unread > 0:
        layers[0]["parameters"] = layers[0].get("parameters", 0) + unread
    data = {"name": name, "source": "torch.export", "bytes_per_number": width, "layers": layers}
    if len(graph.outputs) > 1:
        data["outputs"] = [layer.name for layer in graph.outputs]
    _drop_unused(data, graph)
    return data


def bytes_of(graph, tensors, samples):
    """Of one sample: what depends on no input is the same for all."""
    return sum(-(-graph.bytes[t] // samples) if graph.batched[t] else graph.bytes[t] for t in tensors)


def _layer(graph, layer, samples, split):
    parameters = sum(layer.parameters.values())
    forward = layer.flops / samples
    # Attention and products of two activations have gradients of both, and no weights.
    products_alone = parameters == 0 and layer.product is not None
    keeps_inputs, kept = _kept(graph, layer, samples)
    row = {
        "name": layer.name,
        "inputs": [maker.name for maker in layer.inputs],
        "flops": {
            "forward": _flop(forward),
            "backward_input": _flop(2 * forward if products_alone else forward),
            "backward_weight": _flop(forward if parameters else 0),
        },
        "operation": layer.kind,
        "output": f"{bytes_of(graph, layer.taken, samples)} B",
        "kept": f"{kept} B",
        "keeps_inputs": keeps_inputs,
        "parameters": parameters,
    }
    if split is not None:
        row["tensor_parallel"] = split
    if not row["inputs"]:
        del row["inputs"]
    return row


def _kept(graph, layer, samples):
    """Whether the inputs are read again, and the bytes of what the layer itself keeps."""
    own, inputs, masks = set(), False, 0
    for op in layer.ops:
        saves_inputs, saves_output, saves_mask = torch_ops.saves(op.name)
        for tensor in op.inputs if saves_inputs else ():
            if graph.layer_of.get(tensor) is layer:
                own.add(tensor)
            elif tensor in graph.layer_of:
                inputs = True
        if saves_output:
            own.add(op.node)
        if saves_mask:
            masks += -(-graph.bytes[op.node] // max(1, samples) // 4)
    return inputs, bytes_of(graph, own, samples) + masks


def _drop_unused(data, graph):
    """Layers that nothing takes and that are no output, such as those of an unused branch."""
    outputs = {layer.name for layer in graph.outputs}
    used = {name for layer in data["layers"] for name in layer.get("inputs", ())} | outputs
    unused = [layer for layer in data["layers"] if layer["name"] not in used]
    while unused:
        for layer in unused:
            data["layers"].remove(layer)
            if layer["parameters"] and data["layers"]:
                data["layers"][0]["parameters"] += layer["parameters"]
        used = {name for layer in data["layers"] for name in layer.get("inputs", ())} | outputs
        unused = [layer for layer in data["layers"] if layer["name"] not in used]


def _flop(value):
    return f"{value:.0f} flop" if value == int(value) else f"{value!r} flop"
