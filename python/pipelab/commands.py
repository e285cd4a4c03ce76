"""The commands of the command line, with its options as keyword arguments (docs/cli.md)."""
import json

from pipelab import _core
from pipelab.options import Words
from pipelab.results import Comparison, Plan, SearchResult, Simulation, Synthesis
from pipelab.schedule import Schedule


def simulate(schedule=None, *, keys="", **options):
    """Figures and timeline of a schedule with times, or of a step of a model on a cluster.

      simulate("1f1b", devices=4, micro_batches=8, p2p_latency=0.1)
      simulate("zbv:P=8,T=2,D=4,M=32", model="gpt-6.6b", cluster="dgx-a100")
      simulate(Schedule.load("mine.csv"), keys="T=2,D=4", model="gpt-6.6b", cluster="dgx-a100")

    A step that does not fit into a device's memory has figures; `fits` and `does_not_fit` say so.
    """
    with Words("simulate", returned=("json_out",)) as words, words.naming():
        given = [] if schedule is None else [_with_keys(words.word(schedule), keys)]
        return Simulation(_core.simulate(["simulate"] + given, words.options(options)))


def search(**options):
    """The fastest grids, schedules and shardings of a model on a cluster for a batch.

      search(model="gpt-52b", cluster="dgx1-v100", devices=64, batch=32)
    """
    with Words("search", returned=("json", "json_out")) as words, words.naming():
        texts, _ = _core.call(["search"], words.options(options, json_out="-"))
        found = json.loads(texts["-"])
        return SearchResult(found) if "best" in found else found  # explain=: a dict


def compare(*configs, **options):
    """Configurations of a step beside one another: texts, or schedules of one's own."""
    with Words("compare", returned=("json_out",)) as words, words.naming():
        texts, _ = _core.call(["compare"] + [words.word(c) for c in configs],
                              words.options(options, json_out=":json"))
        return Comparison(json.loads(texts[":json"]), texts["-"])


def plan(**options):
    """Divides a model into stages by a planner."""
    returned = ("json_out", "parts_out", "graph", "partition", "fanouts")
    with Words("plan", returned=returned) as words, words.naming():
        texts, _ = _core.call(["plan"], words.options(options, json_out=":json"))
        return Plan(texts[":json"], texts["-"])


def synthesize(config, **options):
    """The best schedule for given stage times and memory, and a bound of all. Ctrl-C ends it with
    the best so far."""
    with Words("synthesize", returned=("json_out", "schedule_out")) as words, words.naming():
        own = {"json_out": ":json", "schedule_out": ":schedule.txt"}
        texts, _ = _core.call(["synthesize", words.word(config)], words.options(options, **own))
        text = texts["-"].replace("schedule: :schedule.txt\n", "")
        return Synthesis(json.loads(texts[":json"]), Schedule.from_text(texts[":schedule.txt"]),
                         text)


def schemes():
    """The schemes of the catalogue, each a dict."""
    return _list("schemes")


def models():
    """The models that have a name, each a dict."""
    return _list("models")


def clusters():
    """The clusters that have a name, each a dict."""
    return _list("clusters")


def _list(what):
    return json.loads(_core.call(["list", what], ["--json=-"])[0]["-"])[what]


def _with_keys(word, keys):
    return f"{word}:{keys}" if keys else word
