"""Which layers a tensor-parallel group divides, as Megatron-LM does (arXiv 1909.08053).

A product whose outputs reach, through layers without weights, further products alone is divided by
columns; what is between, by features or heads; the product behind it by rows, with one sum of the
outputs forward and one of the inputs' gradients backward. All other products, convolutions but not,
are computed whole by every device, as norms and sums are.
"""
from pipelab import torch_ops

_BETWEEN = frozenset(("gelu silu relu tanh sigmoid mul softmax dropout masked_fill div where add "
                      "scaled_dot_product_attention matmul bmm").split())


def splits(graph, samples):
    """id(layer) -> the key tensor_parallel. Convolutions say nothing, so they are for T = 1."""
    from pipelab.torch_layers import bytes_of
    takers = {}
    for layer in graph.layers:
        for maker in layer.inputs:
            takers.setdefault(id(maker), []).append(layer)
    found = {}
    for layer in graph.layers:
        if _linear(layer) and id(layer) not in found:
            between, rows = _between(layer, takers, graph)
            if rows:
                group = _group(layer, between, rows, takers, graph, found)
                if group is None:
                    continue
                columns, between, rows = group
                heads = _heads(between)
                for column in columns:
                    taken = [t for op in column.ops for t in op.inputs if t in graph.bytes]
                    found[id(column)] = {
                        "divides": {"heads": heads} if heads else {"columns": column.product.output[-1]},
                        "forward_sum": "0 B",
                        "backward_sum": f"{bytes_of(graph, set(taken), samples)} B"}
                for middle in between:
                    size = heads or middle.ops[-1].output[-1]
                    found[id(middle)] = {"divides": {"heads" if heads else "columns": size},
                                         "forward_sum": "0 B", "backward_sum": "0 B"}
                for row in rows:
                    found[id(row)] = {
                        "divides": {"heads": heads} if heads else {"rows": row.product.shapes[0][-1]},
                        "forward_sum": f"{bytes_of(graph, row.taken, samples)} B",
                        "backward_sum": "0 B"}
    for layer in graph.layers:
        convolution = layer.product is not None and torch_ops.kind(
            layer.product.name) == "convolution"
        if id(layer) not in found and not convolution:
            found[id(layer)] = {"whole": "all"}
    return found


def _linear(layer):
    return layer.product is not None and layer.product.name in ("linear", "addmm", "mm")


def _between(layer, takers, graph):
    """The layers without weights behind it and the linear ones behind those; ([], []) where something
    else takes its output."""
    between, rows, todo = [], [], [layer]
    while todo:
        behind = takers.get(id(todo.pop()), ())
        if not behind:
            return [], []
        for taker in behind:
            if _linear(taker):
                if taker not in rows:
                    rows.append(taker)
            elif taker.parameters or any(op.name not in _BETWEEN for op in taker.ops):
                return [], []
            elif taker not in between:
                between.append(taker)
                todo.append(taker)
    return between, rows


def _group(layer, between, rows, takers, graph, found):
    """All columns that what is between needs, or None where some input of it is not one of them."""
    columns, middles, todo = [layer], list(between), list(between)
    while todo:
        for maker in todo.pop().inputs:
            if maker in columns or maker in middles:
                continue
            if not _linear(maker) or id(maker) in found:
                return None
            more, ends = _between(maker, takers, graph)
            if set(map(id, ends)) != set(map(id, rows)):
                return None
            columns.append(maker)
            for middle in more:
                if middle not in middles:
                    middles.append(middle)
                    todo.append(middle)
    if any(id(row) in found for row in rows) or any(row in columns for row in rows):
        return None
    if any(maker not in columns and maker not in middles for row in rows for maker in row.inputs):
        return None
    return columns, middles, rows


def _heads(between):
    for layer in between:
        for op in layer.ops:
            if op.name == "scaled_dot_product_attention" and len(op.shapes[1]) == 4:
                return op.shapes[1][1]  # of keys and values: query groups, which each device needs whole
    return 0
