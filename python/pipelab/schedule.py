"""Schedules: which device computes what, in which order."""
import os

from pipelab import _core, arrays
from pipelab.options import AsFile, Words

_FORMS = {".txt": "text", ".csv": "csv", ".json": "json"}


class Schedule(AsFile):
    """A valid schedule, of a scheme's name and sizes or of a text.

      Schedule("zbv", devices=4, micro_batches=8)
      Schedule("1f1b:P=4,M=8")
      Schedule.load("mine.csv")
    """

    def __init__(self, scheme, **sizes):
        """`sizes`: the options of `pipelab schedule` that say sizes, such as devices=4."""
        with Words("Schedule", returned=("format", "out")) as words, words.naming():
            self._core = _core.make_schedule(words.word(scheme), words.options(sizes))

    @classmethod
    def _of(cls, core):
        schedule = cls.__new__(cls)
        schedule._core = core
        return schedule

    @classmethod
    def from_text(cls, text):
        return cls._of(_core.parse_schedule("text", text))

    @classmethod
    def from_csv(cls, text):
        """PyTorch's form."""
        return cls._of(_core.parse_schedule("csv", text))

    @classmethod
    def from_json(cls, text):
        return cls._of(_core.parse_schedule("json", text))

    @classmethod
    def load(cls, path):
        """A file that ends in .csv, .json or .txt."""
        form = _form(path)
        try:
            with open(path, encoding="utf-8-sig") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise _core.Error(
                f"{os.fspath(path)}: {getattr(error, 'strerror', None) or error}") from None
        try:
            return cls._of(_core.parse_schedule(form, text))
        except _core.Error as error:
            raise type(error)(f"{os.fspath(path)}: {error}") from None

    def save(self, path):
        """Writes a file that ends in .csv, .json or .txt."""
        text = self._core.in_form(_form(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    name = property(lambda self: self._core.name)
    devices = property(lambda self: self._core.devices)
    stages = property(lambda self: self._core.stages)
    micro_batches = property(lambda self: self._core.micro_batches)
    slices = property(lambda self: self._core.slices)
    stage_devices = property(lambda self: self._core.stage_devices,
                             doc="For each replica and stage, the devices that share it.")

    def actions(self):
        """A numpy array with the fields device, stage, kind ("F", "B", "I", "W", "R", "S"),
        micro_batch, slice and version: each device's actions in their order, one after the other."""
        return arrays.of(self._core.action_rows(), arrays.ACTIONS)

    def text(self):
        return self._core.in_form("text")

    def csv(self):
        """PyTorch's form; Error for what its cells cannot say."""
        return self._core.in_form("csv")

    def json(self):
        return self._core.in_form("json")

    def to_torch(self, stages, **options):
        """What torch.distributed.pipelining runs: see pipelab.torch_schedule.runtime."""
        from pipelab import torch_schedule
        return torch_schedule.runtime(self, stages, **options)

    def _file(self):
        return "schedule.txt", self.text()

    def __eq__(self, other):
        return self._core == other._core if isinstance(other, Schedule) else NotImplemented

    def __hash__(self):
        return hash(self.text())

    def __reduce__(self):
        return Schedule.from_text, (self.text(),)

    def __repr__(self):
        return (f"<pipelab.Schedule {self.name}: {self.devices} devices, {self.stages} stages, "
                f"{self.micro_batches} micro-batches>")

    def _repr_svg_(self):
        """With passes of one unit each."""
        from pipelab.commands import simulate
        return simulate(self)._repr_svg_()


def _form(path):
    ending = os.path.splitext(os.fspath(path))[1]
    if ending not in _FORMS:
        raise _core.UsageError(f"{os.fspath(path)}: must end with .txt, .csv or .json")
    return _FORMS[ending]
