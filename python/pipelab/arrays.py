"""Rows of the extension as numpy arrays; numpy is needed for these alone."""
from pipelab import _core

ACTIONS = [("device", "i4"), ("stage", "i4"), ("kind", "U1"), ("micro_batch", "i4"),
           ("slice", "i4"), ("version", "i4")]
SPANS = [("begin", "f8"), ("end", "f8"), ("device", "i4"), ("stage", "i4"), ("kind", "U1"),
         ("micro_batch", "i4"), ("slice", "i4"), ("op", "S12")]


def of(rows, dtype):
    """A structured array of the rows, read-only. `op` comes as text."""
    try:
        import numpy
    except ImportError:
        raise _core.Error("numpy: missing; arrays need it (pip install numpy)") from None
    array = numpy.frombuffer(rows, dtype=dtype)
    if "op" not in array.dtype.names:
        return array
    text = [(name, "U12" if name == "op" else kind) for name, kind in dtype]
    array = array.astype(text)
    array.flags.writeable = False
    return array
