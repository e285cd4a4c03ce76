"""What commands return: their JSON (docs/cli.md), their text, and drawings for notebooks."""
import collections.abc
import html
import itertools
import json

from pipelab import _core, arrays
from pipelab.options import AsFile
from pipelab.schedule import Schedule

_ids = itertools.count(1)  # of drawings in one page


class Simulation:
    """A simulated run. `figures` is what `pipelab simulate --json_out` writes."""

    def __init__(self, core):
        self._core = core
        self.figures = json.loads(core.json)

    makespan = property(lambda self: self.figures["makespan"], doc="In `unit`.")
    unit = property(lambda self: self.figures.get("unit", ""),
                    doc='"ms" with a model; empty: the unit of the times that were given.')
    bubble = property(lambda self: self.figures["bubble"],
                      doc="Share of the devices' time without compute, 0 to 1.")
    config = property(lambda self: self.figures.get("config"), doc="None without a model.")
    step_ms = property(lambda self: self.figures.get("step_ms"), doc="None without a model.")
    tflops_per_device = property(lambda self: self.figures.get("tflops_per_device"))
    samples_per_second = property(lambda self: self.figures.get("samples_per_second"))
    peak_tflops = property(lambda self: self._core.peak_tflops or None,
                           doc="Of a device, for the numbers it computes with; None if not known.")
    fits = property(lambda self: not self._core.does_not_fit)
    does_not_fit = property(lambda self: self._core.does_not_fit,
                            doc="The line that says how much memory is missing, or nothing.")
    note = property(lambda self: self._core.note, doc="Of a machine that is not calibrated.")

    @property
    def mfu(self):
        """Model flops utilisation: the model's flops as a share of the device's peak, 0 to 1."""
        return self.tflops_per_device / self.peak_tflops if self.peak_tflops else None

    @property
    def peak_memory(self):
        """Bytes of each device when it is fullest; None without sizes."""
        devices = self.figures["devices"]
        if not devices or "peak_memory" not in devices[0]:
            return None
        return [device["peak_memory"]["all"] for device in devices]

    @property
    def schedule(self):
        return Schedule._of(self._core.schedule)

    def timeline(self):
        """A numpy array, a row for each span of a device's time: begin and end in `unit`, device, op
        ("compute", "send", "wait", ...), and the action: stage, kind, micro_batch, slice."""
        return arrays.of(self._core.span_rows(), arrays.SPANS)

    def text(self, columns=100):
        """The timeline in characters, as `pipelab show` prints it."""
        return self._core.text(columns)

    def svg(self):
        return self._core.svg(f"timeline{next(_ids)}")

    def memory_svg(self):
        return self._core.memory_svg(f"memory{next(_ids)}")

    def chrome_trace(self):
        return self._core.chrome_trace()

    def _repr_svg_(self):
        return self.svg()

    def _repr_html_(self):
        return f"<figure>{self.svg()}<figcaption>{html.escape(repr(self))}</figcaption></figure>"

    def __repr__(self):
        unit = f" {self.unit}" if self.unit else ""
        return (f"<pipelab.Simulation {self.config or self._core.name}: makespan "
                f"{self.makespan:.6g}{unit}, bubble {100 * self.bubble:.2f} %>")


class Rows(collections.abc.Sequence):
    """Configurations with their figures, each a dict."""

    def __init__(self, rows, columns):
        self._rows = rows
        self._columns = columns

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, index):
        return self._rows[index]

    configs = property(lambda self: [row["config"] for row in self._rows])

    def _repr_html_(self):
        cells = [[_cell(row[key]) for key in self._columns] for row in self._rows]
        head = "".join(f"<th>{html.escape(key)}</th>" for key in self._columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>"
                       for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self):
        lines = [self._columns] + [[_cell(row[key]) for key in self._columns] for row in self._rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self._columns))]
        return "\n".join(
            "  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)


class SearchResult(Rows):
    """The fastest configurations first. `stopped`: Ctrl-C ended it, with the best so far. `note`: how far
    off the first may be on a machine that is not calibrated."""

    def __init__(self, found):
        super().__init__(found["best"], ["step_ms", "samples_per_second", "tflops_per_device",
                                         "memory_bytes", "method", "config"])
        self.refused = found["refused"]
        self.note = found.get("note", "")
        self.stopped = found.get("stopped", False)


class Comparison(Rows):
    """`str(comparison)` is the table and the verdict of `pipelab compare`."""

    def __init__(self, rows, text):
        super().__init__(rows,
                         ["step_ms", "bubble", "memory_gib", "fits", "tflops_per_device", "config"])
        self._text = text

    def __str__(self):
        return self._text


class Plan(AsFile):
    """Stages of a model, as `pipelab plan` writes them in `data`; the option `plan` takes it."""

    def __init__(self, text, table=""):
        self.data = json.loads(text)
        self._text = text
        self._table = table

    def json(self):
        return self._text

    def _file(self):
        return "plan.json", self._text

    def __str__(self):
        return self._table

    def __repr__(self):
        return f"<pipelab.Plan {self.data.get('planner')}: {len(self.data.get('stages', []))} stages>"


class Synthesis:
    """The schedule that was found, and the bound of all. `figures`: synthesize's JSON."""

    def __init__(self, figures, schedule, text):
        self.figures = figures
        self.schedule = schedule
        self._text = text

    passes = property(lambda self: self.figures["passes"], doc="Time of the passes, in `unit`.")
    unit = property(lambda self: self.figures["unit"])
    lower_bound = property(lambda self: self.figures["lower_bound"])
    gap = property(lambda self: self.figures["gap"], doc="Above the bound, as a share.")
    optimal = property(lambda self: self.figures["optimal"])
    stopped = property(lambda self: self.figures["stopped"],
                       doc="The time limit or Ctrl-C ended the search.")

    def __str__(self):
        return self._text

    def __repr__(self):
        return (f"<pipelab.Synthesis: passes {self.passes:.6g} {self.unit}".rstrip() +
                f", gap {100 * self.gap:.2f} %>")


def _cell(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)
