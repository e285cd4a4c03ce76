"""What operations of torch.export's graphs cost: flops of products, and what autograd keeps.

A multiplication with its addition is 2 flops. Names are those of aten without overload and the
underscore of the forms in place.
"""
import math

VIEWS = frozenset((
    "alias chunk contiguous clone detach expand expand_as flatten getitem narrow permute reshape "
    "select slice split split_with_sizes squeeze t to transpose unbind unflatten unsqueeze view "
    "view_as _assert_tensor_metadata lift_fresh_copy").split())

CONVOLUTIONS = frozenset("conv1d conv2d conv3d convolution".split())
TRANSPOSED = frozenset("conv_transpose1d conv_transpose2d conv_transpose3d".split())
ATTENTION = frozenset(["scaled_dot_product_attention"])
MATMULS = frozenset("linear matmul mm bmm addmm baddbmm mv dot einsum".split())
PRODUCTS = CONVOLUTIONS | TRANSPOSED | ATTENTION | MATMULS

# Whose flops no formula here gives.
REFUSED = frozenset(("lstm gru rnn_tanh rnn_relu _transformer_encoder_layer_fwd "
                     "_native_multi_head_attention bilinear _trilinear").split())

# What the backward reads: inputs, the output, a mask of one byte a number; else nothing.
_SAVES_INPUTS = frozenset((
    "layer_norm rms_norm group_norm batch_norm instance_norm gelu silu mul div pow elu hardswish "
    "hardsigmoid hardtanh relu6 leaky_relu softplus mish log sqrt rsqrt sin cos max_pool2d "
    "max_pool1d avg_pool2d avg_pool1d adaptive_max_pool2d abs cross_entropy_loss").split()) | PRODUCTS
_SAVES_OUTPUT = frozenset(("relu sigmoid tanh softmax log_softmax exp scaled_dot_product_attention "
                           "amax").split())
_SAVES_MASK = frozenset("dropout feature_dropout where masked_fill max_pool2d".split())

_KINDS = (("layer_norm", "layer_norm rms_norm group_norm instance_norm".split()),
          ("batch_norm", ["batch_norm"]),
          ("activation", "relu relu6 leaky_relu hardtanh".split()),
          ("gelu", "gelu silu sigmoid tanh elu hardswish hardsigmoid softplus mish exp".split()),
          ("pool", "max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d "
           "adaptive_avg_pool2d adaptive_max_pool2d mean".split()),
          ("loss", ["cross_entropy_loss"]))
_KIND_OF = {name: kind for kind, names in _KINDS for name in names}


def kind(name):
    """The kind of operation of docs/clusters.md."""
    if name in CONVOLUTIONS or name in TRANSPOSED:
        return "convolution"
    if name in ATTENTION:
        return "attention"
    return "matmul" if name in MATMULS else _KIND_OF.get(name, "elementwise")


def saves(name):
    """(inputs, output, mask): what autograd keeps of an operation."""
    return name in _SAVES_INPUTS, name in _SAVES_OUTPUT, name in _SAVES_MASK


def flops(name, inputs, output, equation=None):
    """Of a product, from the shapes of its tensors in the order of its arguments."""
    if name in CONVOLUTIONS:
        weight = inputs[1]
        return 2 * math.prod(output) * math.prod(weight[1:])
    if name in TRANSPOSED:
        weight = inputs[1]
        return 2 * math.prod(inputs[0]) * math.prod(weight[1:])
    if name in ATTENTION:
        query, key, value = inputs[:3]
        scores = math.prod(query[:-1]) * key[-2]
        return 2 * scores * (query[-1] + value[-1])
    if name == "einsum":
        sizes = {}
        for names, shape in zip(equation.replace(" ", "").split("->")[0].split(","), inputs):
            sizes.update(zip(names, shape))
        return 2 * math.prod(sizes.values())
    if name in ("addmm", "baddbmm"):
        return 2 * math.prod(output) * inputs[1][-1]
    return 2 * math.prod(output) * inputs[0][-1]
