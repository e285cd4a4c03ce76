#!/usr/bin/env python3
"""Time and memory of every reader of a file or text that a user gives, on inputs of 1 and 10 MB.

A command reads each input in time and memory linear in its size, or says in one short line that it is too large. The
table has the seconds (user and system), the peak of memory and the outcome of each input.

  reader_limits_test.py PIPELAB [WORD]        WORD: only readers and shapes that have it in their names

PIPELAB_LARGE=1: more shapes, and inputs of 100 MB, which takes a quarter of an hour.
PIPELAB_SMALL=1: all shapes of 6 kB, where only outcomes are judged: what is wrong in a file ends with exit code 1.
"""
import http.client
import os
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import zlib

PIPELAB = os.path.abspath(sys.argv[1])
WORD = sys.argv[2] if len(sys.argv) > 2 else ""
MB = 1000000
SMALL = os.environ.get("PIPELAB_SMALL") == "1"
LARGE = SMALL or os.environ.get("PIPELAB_LARGE") == "1"
SIZES = [MB, 10 * MB] + ([100 * MB] if LARGE else [])
SHARED = [MB] + ([10 * MB] if LARGE else [])  # where another reader shares the code
WORKED = [MB // 10, MB] + ([10 * MB] if LARGE else [])  # where much work follows the reading
FEW = [MB // 200, MB // 20]
SCRIPT_SIZES = [MB // 10, MB]  # A script has at most 1 MiB.
ARGUMENT = [12500, 125000]  # Linux takes 128 KiB in a word.
ADDRESS_SPACE = 4 << 30
MOST_SECONDS = {MB: 1, 10 * MB: 3, 100 * MB: 30}  # of the processor; inputs of other sizes have the next one's
WORK_SECONDS = 4  # where much work follows the reading
SLOW = 0.3  # seconds for 1 MB: 10 MB would take more than they may
FREE = 0.1, 80  # seconds and MB of memory for 1 MB: 10 MB are read with PIPELAB_LARGE alone
GROWTH = 2.5  # beyond linear, where the larger input takes JUDGED_FROM seconds
JUDGED_FROM = 1.0
MEMORY_FACTOR, MEMORY_BASE_MB = 60, 300
MOST_MESSAGE = 16384  # bytes of stderr
# The file is right, and an option asks for something else.
USAGE = ["cluster, long shape", "times, many stages", "tokens, a list", "data text, all bytes"]
NOTES = re.compile(rb"(Note|note|warning|Warning): |\w+: \d+ s; Ctrl-C ends it")

CASES = []


def case(reader, shape, words, make, sizes=None, large=False):
    """Words stand for files of make(size): a dictionary of contents, or the content of the file `in`."""
    if not large or LARGE:
        small = ARGUMENT[:1] if sizes is ARGUMENT else [6000]
        words = words.split(" ") if isinstance(words, str) else words
        CASES.append((reader, shape, words, make, small if SMALL else sizes or SIZES))


# Texts of about `size` bytes.


def many(item, size, begin="", end=""):
    return begin + item * ((size - len(begin) - len(end)) // len(item)) + end


def numbered(pattern, size, begin="", end="", between=","):
    """The pattern for 0, 1, 2, ..., with each %d the number."""
    marks = pattern.count("%d")
    count = (size - len(begin) - len(end)) // (len(pattern) + 4 * marks + len(between))
    if marks == 1:
        left, right = pattern.split("%d")
        return begin + left + (right + between + left).join(map(str, range(count))) + right + end
    return begin + between.join([pattern % ((i,) * marks) for i in range(count)]) + end


def chained(pattern, size, begin="", end="", between=","):
    """The same of 1, 2, 3, ..., with the last %d the number before."""
    marks = pattern.count("%d")
    count = (size - len(begin) - len(end)) // (len(pattern) + 4 * marks + len(between))
    return begin + between.join([pattern % ((i,) * (marks - 1) + (i - 1,)) for i in range(1, count + 1)]) + end


def number_of(size, bytes_each):
    return max(1, size // bytes_each)


# Shapes for every reader of JSON; `main` is a field that it knows.


def json_cases(reader, words, main, begin="", end="", wrap=lambda text: text, sizes=None):
    name = '"%s":' % main
    shapes = {
        "nested lists": lambda n: many("[", n, "{" + begin + name),
        "nested objects": lambda n: many('{"a":', n, "{" + begin + name),
        "long string": lambda n: many("x", n, "{" + begin + name + '"', '"' + end + "}"),
        "long key": lambda n: many("x", n, "{" + begin + '"', '":0' + end + "}"),
        "long number": lambda n: many("1", n, "{" + begin + name, end + "}"),
        "many keys": lambda n: numbered('"k%d":0', n, "{" + begin, end + "}"),
        "one key again": lambda n: many('"k":0,', n, "{" + begin, '"k":0' + end + "}"),
        "many numbers": lambda n: many("0,", n, "{" + begin + name + "[", "0]" + end + "}"),
        "many lists": lambda n: many("[],", n, "{" + begin + name + "[", "[]]" + end + "}"),
        "many objects": lambda n: many('{"a":{}},', n, "{" + begin + name + "[", "{}]" + end + "}"),
        "key in key": lambda n: numbered('"k%d":0', n, "{" + begin + name + "{", "}" + end + "}"),
        "spaces": lambda n: many(" ", n, "{" + begin + name, end + "}"),
    }
    for shape, make in shapes.items():
        if sizes or LARGE or shape in ("long string", "long key", "many keys", "many numbers", "many objects"):
            case(reader, shape, words, lambda n, make=make: wrap(make(n)), sizes or SHARED)


# Schedules.


def gpipe(size, devices, form):
    """A schedule of as many micro-batches as fit."""
    numbers = [str(m) for m in range(number_of(size, {"csv": 16, "text": 16, "json": 28}[form] * devices))]
    right = "]" if form == "json" else ""
    between = " " if form == "text" else ","

    def row(d):
        kinds = ['["%s",%d,' % (k, d) if form == "json" else "%d%s" % (d, k) for k in "FB"]
        return between.join([k + (right + between + k).join(numbers) + right for k in kinds])

    if form == "csv":
        return "".join([row(d) + "\n" for d in range(devices)])
    if form == "json":
        return '{"order":[%s]}' % ",".join(["[%s]" % row(d) for d in range(devices)])
    return "schedule mine\ndevices %d\nmicro_batches %d\nslices 1\nstages %d\nedges chain\nreplica 0: %s\n" % (
        devices, len(numbers), devices, " ".join(map(str, range(devices)))) + (
            "replica_of_micro_batch 0*%d\n" % len(numbers)) + "".join(
                ["device %d: %s\n" % (d, row(d)) for d in range(devices)])


def text_schedule(stages, lines, micro_batches=1, devices=1):
    return "schedule mine\ndevices %d\nmicro_batches %d\nslices 1\nstages %d\n%s" % (
        devices, micro_batches, stages, lines)


CHECK = "check --csv=in"
case("schedule CSV", "four devices", CHECK, lambda n: gpipe(n, 4, "csv"))
case("schedule CSV", "300 devices", CHECK, lambda n: gpipe(n, 300, "csv"))
case("schedule CSV", "a word", "simulate in.csv --model=gpt-6.6b --cluster=dgx-a100",
     lambda n: {"in.csv": gpipe(n, 4, "csv")})
case("schedule CSV", "converted", "schedule --csv=in --format=json --out=/dev/null", lambda n: gpipe(n, 4, "csv"))
case("schedule CSV", "drawn", "show --csv=in --svg_out=/dev/null", lambda n: gpipe(n, 4, "csv"))
# A trace has a hundred bytes for each of the schedule's.
case("schedule CSV", "traced", "show --csv=in --trace_out=/dev/null", lambda n: gpipe(n, 4, "csv"), WORKED)
case("schedule CSV", "stdin", "check --csv=-", lambda n: gpipe(n, 4, "csv"))
case("schedule CSV", "many stages", CHECK, lambda n: numbered("%dF0,%dB0", n))
case("schedule CSV", "a device each", CHECK, lambda n: numbered("0F%d,0B%d", n, between="\n"))
case("schedule CSV", "stages missing", CHECK, lambda n: numbered("0F%d,1B%d", n, "0F0,1F0,0B0\n"))
case("schedule CSV", "one cell again", CHECK, lambda n: many("0F0,", n))
case("schedule CSV", "empty cells", CHECK, lambda n: many(",", n))
case("schedule CSV", "empty lines", CHECK, lambda n: many("\n", n))
case("schedule CSV", "gathers", CHECK, lambda n: many("0UNSHARD,", n))
case("schedule CSV", "pairs", CHECK, lambda n: numbered("(0F%d;0B%d)OVERLAP_F_B", n))
case("schedule CSV", "fault at the end", CHECK, lambda n: gpipe(n, 4, "csv") + "x")
case("schedule CSV", "one word", CHECK, lambda n: many("x", n))
case("schedule text", "four devices", "check --text=in", lambda n: gpipe(n, 4, "text"))
case("schedule text", "long name", "check --text=in", lambda n: many("x", n, "schedule "))
case("schedule text", "comments", "check --text=in", lambda n: many("# x\n", n))
case("schedule text", "one edge again", "check --text=in", lambda n: text_schedule(2, many("0-1 ", n, "edges ")))
case("schedule text", "many edges", "check --text=in",
     lambda n: text_schedule(30000, numbered("0-%d", min(n, 30000 * 8), "edges ", between=" ") + " 0-1" * (n // 4)))
case("schedule text", "many replicas", "check --text=in",
     lambda n: text_schedule(1, numbered("replica %d: 0\n", n, "edges chain\n", "replica_of_micro_batch 0*1\n"
                                         "device 0: 0F0 0B0\n", between="")))
case("schedule text", "long group", "check --text=in",
     lambda n: text_schedule(1, many("0+", n, "edges chain\nreplica 0: ", "0\nreplica_of_micro_batch 0*1\n"
                                     "device 0: 0F0 0B0\n")))
case("schedule text", "many devices", "check --text=in",
     lambda n: text_schedule(1, numbered("device %d:\n", n, "edges chain\nreplica 0: 0\nreplica_of_micro_batch 0*1\n",
                                         between=""), devices=32000))
case("schedule text", "carried", "check --text=in",
     lambda n: text_schedule(1, many("- ", n, "edges chain\ncarried ")))
case("schedule JSON", "four devices", "check --json=in", lambda n: gpipe(n, 4, "json"))
case("schedule JSON", "one edge again", "check --json=in",
     lambda n: many("[0,1],", n, '{"order":[[["F",0,0],["F",1,0],["B",1,0],["B",0,0]]],"edges":[', "[0,1]]}"))
case("schedule JSON", "many replicas", "check --json=in",
     lambda n: many("[0],", n, '{"order":[[["F",0,0],["B",0,0]]],"stage_to_device":[', "[0]]}"))
case("schedule JSON", "long group", "check --json=in",
     lambda n: many("0,", n, '{"order":[[["F",0,0],["B",0,0]]],"stage_to_device":[[[', "0]]]}"))
json_cases("schedule JSON", "check --json=in", "order", sizes=SIZES)

# Models: lists of layers, networks, configurations of Hugging Face, inputs of other planners.

STEP = "simulate 1f1b:P=4,M=8 --model=in.json"
NETWORK = "simulate 1f1b:P=4,M=8 --model=in.json --cluster=dgx-a100"
RUN = "run 1f1b:P=2,M=2 --steps=1 --model=in.json"


def in_json(text):
    return {"in.json": text}


def layers(size, pattern, first='{"name":"a0","time":"1 us","output":"1 B"},', last=""):
    return in_json(chained(pattern, size, '{"name":"mine","layers":[' + first, last + "]}"))


CHAIN = '{"name":"a%d","time":"1 us","output":"1 B","inputs":["a%d"]}'
SOURCE = '{"name":"a%d","time":"1 us","output":"1 B"}'


def sources(size, after, end):
    """Layers without inputs, and their names."""
    count = number_of(size, 60)
    return in_json('{"name":"mine","layers":[' + ",".join([SOURCE % i for i in range(count)]) + after
                   + ",".join(['"a%d"' % i for i in range(count)]) + end)


case("layer list", "a chain", STEP, lambda n: layers(n, CHAIN))
case("layer list", "a chain, planned", "plan --planner=chain --devices=4 --time_limit=1s --model=in.json "
     "--cluster=dgx-a100", lambda n: layers(n, CHAIN), WORKED)
case("layer list", "a chain, any planner", "plan --devices=4 --time_limit=1s --model=in.json --cluster=dgx-a100",
     lambda n: layers(n, CHAIN), WORKED)
case("layer list", "a chain, searched", "search --model=in.json --cluster=dgx-a100 --devices=4 --batch=4 "
     "--schemes=gpipe", lambda n: layers(n, CHAIN), [MB, 10 * MB])
case("layer list", "no inputs", STEP, lambda n: in_json(numbered(SOURCE, n, '{"name":"mine","layers":[', "]}")))
case("layer list", "one takes all", STEP,
     lambda n: sources(n, ',{"name":"z","time":"1 us","inputs":[', "]}]}"))
case("layer list", "all are outputs", STEP, lambda n: sources(n, '],"outputs":[', "]}"))
case("layer list", "one takes one again", STEP, lambda n: in_json(
    many('"a",', n, '{"name":"mine","layers":[{"name":"a","time":"1 us","output":"1 B"},{"name":"b","time":"1 us",'
         '"inputs":[', '"a"]}]}')))
case("layer list", "one divides much", STEP.replace("P=4", "P=1,T=2"), lambda n: in_json(
    numbered('"h%d":8', n, '{"name":"mine","layers":[{"name":"a","time":"1 us","output":"1 B",'
             '"tensor_parallel":{"divides":{', "}}}]}")))
json_cases("layer list", STEP, "layers", '"name":"mine",', wrap=in_json)

DENSE = '{"name":"a%d","kind":"dense","out":1,"inputs":["a%d"]}'
INPUT = '{"name":"a0","kind":"data_input","field":"features","shape":[2]},'
LOSS = ',{"name":"loss","kind":"element_loss","loss":"squared_error"}'
case("network", "a chain", NETWORK, lambda n: layers(n, DENSE, INPUT, LOSS), WORKED)
# 10 MB of layers are trained for ten seconds.
case("network", "a chain that runs", RUN, lambda n: layers(n, DENSE, INPUT, LOSS), [MB // 10, MB])
case("network", "one takes one again", NETWORK, lambda n: in_json(
    many('"a0",', n, '{"name":"mine","layers":[' + INPUT + '{"name":"z","kind":"add","inputs":[', '"a0"]}' + LOSS
         + "]}")))
case("network", "long shape", NETWORK, lambda n: in_json(
    many("1,", n, '{"name":"mine","layers":[{"name":"a0","kind":"data_input","field":"features","shape":[',
         '1]},{"name":"a1","kind":"dense","out":1}' + LOSS + "]}")))
case("network", "long kind", NETWORK, lambda n: in_json(
    many("x", n, '{"name":"mine","layers":[{"name":"a0","kind":"', '"}]}')))
case("network", "long field", RUN, lambda n: in_json(
    many("x", n, '{"name":"mine","layers":[{"name":"a0","kind":"data_input","shape":[2],"field":"',
         '"},{"name":"a1","kind":"dense","out":1}' + LOSS + "]}")))

LLAMA = ('"model_type":"llama","hidden_size":2,"num_hidden_layers":1,"num_attention_heads":1,"num_key_value_heads":1,'
         '"head_dim":2,"intermediate_size":3,"vocab_size":8192,"max_position_embeddings":64,"rms_norm_eps":1e-05,'
         '"tie_word_embeddings":true')
CONFIG = "simulate 1f1b:P=1,M=8 --model=in.json --cluster=dgx-a100"
json_cases("config.json", CONFIG, "architectures", LLAMA + ",", wrap=in_json)
json_cases("config.json, its type", CONFIG, "model_type", wrap=in_json)
case("config.json", "kinds of layers", CONFIG, lambda n: in_json(
    many('"full_attention",', n, "{" + LLAMA + ',"sliding_window":8,"layer_types":[', '"full_attention"]}')))
case("config.json", "listed layers", CONFIG, lambda n: in_json(
    many("0,", n, "{" + LLAMA.replace("llama", "qwen3_moe") + ',"num_experts":8,"num_experts_per_tok":1,'
         '"moe_intermediate_size":2,"mlp_only_layers":[', "0]}")))
case("config.json", "text model inside", CONFIG, lambda n: in_json(
    many("x", n, '{"model_type":"y","text_config":{' + LLAMA + ',"z":"', '"}}')))
case("config.json", "logits", "logits --model=in.json --tokens=1,2",
     lambda n: in_json(many("0,", n, "{" + LLAMA + ',"x":[', "0]}")))

VARIANT = ('{"id":"%s","timePerSample":1,"parameterSize":1,"memoryUsageA":1,"memoryUsageB":1,"syncTimeFw":{%s},'
           '"syncTimeBw":{%s}}')
MACHINE = '{"maxMemoryPerDevice":1e12,"maxDevices":4,"bandwidth":1e9,"mbsInBatch":8,'
PIPER = "plan --piper_json=in.json --time_limit=1s"


def piper_star(size):
    count = number_of(size, 260)
    nodes = ['{"id":%d,"TMPCs":{"1":[%s]}}' % (i, VARIANT % ("v", "", '"0":1')) for i in range(1, count)]
    nodes.append('{"id":0,"TMPCs":{"1":[%s]}}' % (
        VARIANT % ("v", ",".join(['"%d":1' % i for i in range(1, count)]), "")))
    edges = ['{"sourceId":%d,"destId":0,"communicationCost":1}' % i for i in range(1, count)]
    return in_json(MACHINE + '"nodes":[%s],"edges":[%s]}' % (",".join(nodes), ",".join(edges)))


def piper_chain(size):
    count = number_of(size, 260)
    node = '{"id":%d,"TMPCs":{"1":[' + VARIANT % ("v", "%s", "%s") + "]}}"
    nodes = [node % (i, '"%d":1' % (i - 1) if i > 0 else "", '"%d":1' % (i + 1) if i + 1 < count else "")
             for i in range(count)]
    edges = ['{"sourceId":%d,"destId":%d,"communicationCost":1}' % (i, i + 1) for i in range(count - 1)]
    return in_json(MACHINE + '"nodes":[%s],"edges":[%s]}' % (",".join(nodes), ",".join(edges)))


case("Piper", "a chain", PIPER, piper_chain, WORKED)
case("Piper", "a chain, simulated", STEP, piper_chain)
case("Piper", "a star", PIPER, piper_star, WORKED, large=True)
case("Piper", "a star, simulated", STEP, piper_star)
case("Piper", "many variants", PIPER, lambda n: in_json(
    numbered(VARIANT % ("v%d", "", ""), n, MACHINE + '"nodes":[{"id":0,"TMPCs":{"1":[', ']}}],"edges":[]}')))
case("Piper", "many degrees", PIPER, lambda n: in_json(
    chained('"%d":[' + VARIANT % ("v%d", "", "") + "]", n, MACHINE + '"nodes":[{"id":0,"TMPCs":{', '}}],"edges":[]}')))
json_cases("Piper", PIPER, "nodes", MACHINE[1:], ',"edges":[]', wrap=in_json)

NODE = ("node%d -- Linear -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=4.0, "
        "parameter_size=4.0")
PROFILE = "plan --pipedream_profile=in.txt --bandwidth=1e9 --devices=4 --time_limit=1s"


def profile(size, edge):
    count = number_of(size, 150)
    return {"in.txt": "\n".join([NODE % i for i in range(count)] + ["\t" + edge(i) for i in range(1, count)]) + "\n"}


case("PipeDream", "a chain", PROFILE,
     lambda n: profile(n, lambda i: "node%d -- node%d" % (i - 1, i)), WORKED, large=True)
case("PipeDream", "a chain, simulated", STEP.replace("json", "txt"),
     lambda n: profile(n, lambda i: "node%d -- node%d" % (i - 1, i)))
case("PipeDream", "a star", PROFILE, lambda n: profile(n, lambda i: "node0 -- node%d" % i), WORKED, large=True)
case("PipeDream", "a star, simulated", STEP.replace("json", "txt"),
     lambda n: profile(n, lambda i: "node%d -- node0" % i))
case("PipeDream", "one edge again", PROFILE,
     lambda n: {"in.txt": many("\tnode0 -- node1\n", n, NODE % 0 + "\n" + NODE % 1 + "\n")})
case("PipeDream", "long description", PROFILE, lambda n: {"in.txt": (NODE % 0).replace("Linear", many("x", n))})
case("PipeDream", "many bars", PROFILE, lambda n: {"in.txt": (NODE % 0).replace("Linear", many("x -- ", n) + "x")})
case("PipeDream", "long list", PROFILE,
     lambda n: {"in.txt": (NODE % 0).replace("size=4.0", "size=[" + many("1.0; ", n) + "1.0]", 1)})
case("PipeDream", "many fields", PROFILE, lambda n: {"in.txt": NODE % 0 + numbered("x%d=1", n, ", ", between=", ")})
case("PipeDream", "one word", PROFILE, lambda n: {"in.txt": many("x", n)})

PLACED = ('{"id":%d,"name":"a","supportedOnFpga":1,"cpuLatency":1,"fpgaLatency":1,"isBackwardNode":0,"size":1,'
          '"colorClass":%d}')
FPGAS = '{"maxSizePerFPGA":1e12,"maxFPGAs":2,"maxCPUs":1,'
PLACEMENT = "plan --dnn_partitioning_json=in.json --time_limit=1s"


def placed(size, color, edge):
    count = number_of(size, 190)
    nodes = [PLACED % (i, color(i)) for i in range(count)]
    edges = ['{"sourceId":%d,"destId":%d,"cost":1,"size":1}' % edge(i) for i in range(1, count)]
    return in_json(FPGAS + '"nodes":[%s],"edges":[%s]}' % (",".join(nodes), ",".join(edges)))


case("dnn-partitioning", "a chain", PLACEMENT, lambda n: placed(n, lambda i: i, lambda i: (i - 1, i)), WORKED)
case("dnn-partitioning", "a star", PLACEMENT, lambda n: placed(n, lambda i: i, lambda i: (0, i)), WORKED)
case("dnn-partitioning", "one colour", PLACEMENT, lambda n: placed(n, lambda i: 0, lambda i: (i - 1, i)))
json_cases("dnn-partitioning", PLACEMENT, "nodes", FPGAS[1:], ',"edges":[]', wrap=in_json)

# Clusters.

CLUSTER = "simulate 1f1b:P=4,M=8 --model=gpt-small --cluster=in.json"
DEVICE = ('"name":"mine","device":{"class":"gpu","peaks":{"fp32":"1 Tflop/s"},"memory":"1 GB",'
          '"memory_bandwidth":"1 TB/s"%s}')
LEVELS = ',"levels":[{"size":8,"sharing":"device","bandwidth":"25 GB/s"}]'
json_cases("cluster", CLUSTER, "title", DEVICE % "" + ",", LEVELS, wrap=in_json)
json_cases("cluster's device", CLUSTER, "device", '"name":"mine",', LEVELS, wrap=in_json)
case("cluster", "many levels", CLUSTER, lambda n: in_json(
    many('{"size":1,"sharing":"device","bandwidth":"25 GB/s"},', n, "{" + DEVICE % "" + ',"levels":[',
         '{"size":8,"sharing":"device","bandwidth":"25 GB/s"}]}')))
case("cluster", "many wrong levels", CLUSTER, lambda n: in_json(
    many('{},', n, "{" + DEVICE % "" + ',"levels":[', '{}]}')))
case("cluster", "many types", CLUSTER, lambda n: in_json(
    numbered('"fp%d":"1 Tflop/s"', n, '{"name":"mine","device":{"class":"gpu","peaks":{',
             '},"memory":"1 GB","memory_bandwidth":"1 TB/s"}' + LEVELS + "}")))
case("cluster", "long curve", CLUSTER, lambda n: in_json(
    "{" + DEVICE % (',"memory_efficiency":{"source":"s","points":[' + numbered('["%d001 B",0.5]', n) + "]}") + LEVELS
    + "}"))
case("cluster", "long shape", CLUSTER, lambda n: in_json(
    many("1,", n, "{" + DEVICE % "" + ',"levels":[{"size":1,"sharing":"torus","bandwidth":"25 GB/s","shape":[',
         "1]}]}")))
case("cluster", "many rings", CLUSTER, lambda n: in_json(
    numbered('{"ranks":1%d,"latency":"1 us","bandwidth":"1 GB/s"}', n, "{" + DEVICE % ""
             + ',"levels":[{"size":8,"sharing":"device","bandwidth":"25 GB/s","ring":[', "]}]}")))

# Plans, times of stages, links, recipes.

PLAN_OF = "--model=gpt-small --cluster=dgx-a100 --devices=4"
CHECK_PLAN = "check_plan --plan=in.json " + PLAN_OF
json_cases("plan", CHECK_PLAN, "stages", wrap=in_json)
case("plan", "one stage again", CHECK_PLAN, lambda n: in_json(
    many('{"layers":["embedding"]},', n, '{"stages":[', '{"layers":["head"]}]}')))
case("plan", "one layer again", CHECK_PLAN, lambda n: in_json(
    many('"embedding",', n, '{"stages":[{"layers":[', '"head"]}]}')))
case("plan", "many slices", CHECK_PLAN, lambda n: in_json(
    many("1,", n, '{"slices":[{"samples":1,"tokens":[', '1]}],"stages":[{"layers":["head"]}]}')))
case("plan", "many levels", CHECK_PLAN, lambda n: in_json(
    many("1,", n, '{"stages":[{"layers":["head"],"data_of_level":[', "1]}]}")))
case("plan", "a long model's", "check_plan --plan=in.json --model=model.json --cluster=dgx-a100 --devices=4",
     lambda n: {"model.json": layers(n, CHAIN)["in.json"],
                "in.json": numbered('{"layers":["a%d"]}', n // 3, '{"stages":[', "]}")}, WORKED)
case("plan", "simulated", "simulate --plan=in.json " + PLAN_OF, lambda n: in_json(
    many('{"layers":["embedding"]},', n, '{"stages":[', '{"layers":["head"]}]}')))

TIMES = "synthesize 1f1b:P=4,M=4 --times=in.json --time_limit=1s"
STAGE = '{"forward":%s,"backward_input":%s,"backward_weight":%s}'
json_cases("times", TIMES, "stages", wrap=in_json)
json_cases("trace", TIMES, "traceEvents", wrap=in_json)
case("times", "many stages", TIMES, lambda n: in_json(
    many(STAGE % (('"1 us"',) * 3) + ",", n, '{"stages":[', STAGE % (('"1 us"',) * 3) + "]}")))
case("times", "many slices", TIMES, lambda n: in_json(
    '{"stages":[' + ",".join([STAGE % (("[%s]" % many('"1 us",', n // 12, end='"1 us"'),) * 3)] * 4) + "]}"))
case("trace", "many events", TIMES, lambda n: in_json(
    '{"traceEvents":[' + ",".join(
        ['{"ph":"X","name":"%d%s%d","ts":0,"dur":1,"args":{"stage":%d}}' % (m % 4, "FIW"[m // 4 % 3], m, m % 4)
         for m in range(number_of(n, 64))]) + "]}"))
case("trace", "many messages", TIMES, lambda n: in_json(
    numbered('{"ph":"s","id":%d,"ts":0},{"ph":"f","id":%d,"ts":1}', n, '{"traceEvents":[', "]}")))
case("trace", "many stages", TIMES, lambda n: in_json(
    numbered('{"ph":"X","name":"0F0","ts":0,"dur":1,"args":{"stage":%d}}', min(n, 4000 * 70), '{"traceEvents":[')
    + many(',{"ph":"X","name":"0F0.255","ts":0,"dur":1,"args":{"stage":0}}', n) + "]}"))

LINKS = "simulate 1f1b:P=4,M=8 --links=in.json"
json_cases("links", LINKS, "links", end=',"paths":[]', wrap=in_json)
case("links", "many links", LINKS, lambda n: in_json(numbered('{"name":"l%d"}', n, '{"links":[', '],"paths":[]}')))
case("links", "many paths", LINKS, lambda n: in_json(
    many('{"from":0,"to":1,"links":[]},', n, '{"links":[],"paths":[', '{"from":0,"to":1,"links":[]}]}')))
case("links", "many paths of 128 devices", LINKS.replace("P=4", "P=128"), lambda n: in_json(
    many('{"from":"all","to":"all","links":[]},', n, '{"links":[],"paths":[',
         '{"from":"all","to":"all","links":[]}]}')))
case("links", "a long path", LINKS, lambda n: in_json(
    numbered('{"name":"l%d"}', n * 2 // 3, '{"links":[', '],"paths":[{"from":"all","to":"all","links":[')
    + ",".join(['"l%d"' % i for i in range(n * 2 // 3 // 20)]) + "]}]}"))
case("links", "one device again", LINKS, lambda n: in_json(
    many("0,", n // 2, '{"links":[],"paths":[{"from":[', '0],"to":[') + many("1,", n // 2, "", '1],"links":[]}]}')))

SCRIPT = ("torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 "
          "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 16 --bf16 "
          "--vocab-size 32000 --pipeline-model-parallel-size 2 ")
FLAGS = "evaluate --flags=in --cluster=dgx-a100 --devices=8 --top=0"
SCRIPTS = {
    "assignments": lambda n: numbered("A%d=1", n, end="\n" + SCRIPT, between="\n"),
    "one variable again": lambda n: many("A=$A\n", n, end=SCRIPT),
    "a variable that grows": lambda n: many("A=$A$A\n", n, "A=xx\n", SCRIPT),
    "echoes": lambda n: many("echo x\n", n, end=SCRIPT),
    "comments": lambda n: many("# x\n", n, end=SCRIPT),
    "empty lines": lambda n: many("\n", n, end=SCRIPT),
    "a long line": lambda n: many("x ", n, SCRIPT.replace("torchrun", "echo")) + "\n" + SCRIPT,
    "a long word": lambda n: many("x", n, SCRIPT + "--data-path "),
    "unknown options": lambda n: numbered("--zq%d 1", n, SCRIPT, between=" "),
    "one option again": lambda n: many("--num-layers 8 ", n, SCRIPT),
    "continued lines": lambda n: many("\\\n", n, SCRIPT),
    "conditions": lambda n: numbered("if [ $B%d = 1 ]; then A=1; fi", n, end="\n" + SCRIPT, between="\n"),
    "one condition again": lambda n: many("if [ $B = 1 ]; then A=1; fi\n", n, end=SCRIPT),
    "nested conditions": lambda n: many("if true; then\n", n // 2) + SCRIPT + "\n" + many("fi\n", n // 2),
    "nested substitutions": lambda n: many("$(echo ", n, "A=") + "\n" + SCRIPT,
    "nested braces": lambda n: many("${A:-", n, "A=") + "\n" + SCRIPT,
    "alternatives": lambda n: many("{a,b}", n, "A=(") + ")\n" + SCRIPT,
    "quotes": lambda n: many("''", n, "A=") + "\n" + SCRIPT,
    "open quote": lambda n: many("x\n", n, SCRIPT + "'"),
    "parentheses": lambda n: many("(", n, "A=$((") + "\n" + SCRIPT,
    "a long sum": lambda n: many("1+", n, "A=$((", "1))\n" + SCRIPT),
    "arrays": lambda n: many("x ", n, "A=(", ")\n" + SCRIPT),
    "additions to arrays": lambda n: many("A+=(x)\n", n, end=SCRIPT + '"${A[@]}"'),
    "functions": lambda n: numbered("f%d() { A=1; }", n, end="\n" + SCRIPT, between="\n"),
    "programs": lambda n: many(" a.py", n, "python") + "\n" + SCRIPT,
    "modules": lambda n: many(" -m a", n, "python") + "\n" + SCRIPT,
    "other files": lambda n: numbered("source f%d.sh", n, between="\n"),
    "launches": lambda n: many(SCRIPT + "\n", n),
    "loops": lambda n: many("for i in 1 2 3; do A=1; done\n", n, end=SCRIPT),
    "nested loops": lambda n: many("for i in {1..900}; do\n", n // 2) + "A=1\n" + many("done\n", n // 2) + SCRIPT,
    "pipes": lambda n: many("echo | ", n) + SCRIPT,
    "ands": lambda n: many("true && ", n) + SCRIPT,
    "heredocs": lambda n: many("cat <<E\nx\nE\n", n, end=SCRIPT),
    "options alone": lambda n: many("--bf16\n", n, SCRIPT[SCRIPT.index("--num-l"):] + "\n"),
    "unknown options alone": lambda n: numbered("--zq%d 1", n, SCRIPT[SCRIPT.index("--num-l"):] + "\n", between="\n"),
}
for SHAPE, MAKE in SCRIPTS.items():
    case("script", SHAPE, FLAGS, MAKE, WORKED if SHAPE == "conditions" else SCRIPT_SIZES,
         large=SHAPE in ("conditions", "modules", "unknown options alone"))
case("script", "too long", FLAGS, lambda n: many("# x\n", n, end=SCRIPT))
case("script", "stdin", FLAGS.replace("=in", "=-"), lambda n: many("# x\n", n, end=SCRIPT), SCRIPT_SIZES)
YAML = SCRIPT[SCRIPT.index("num-l"):].strip().replace(" --bf16", "").replace(" --", "\n").replace(" ", ": ") + "\n"
case("YAML", "unknown keys", FLAGS, lambda n: numbered("zq%d: 1", n, YAML, between="\n"), SCRIPT_SIZES, large=True)
case("YAML", "one key again", FLAGS, lambda n: many("zq: 1\n", n, YAML), SCRIPT_SIZES)
case("YAML", "a long list", FLAGS, lambda n: many("  - x\n", n, YAML + "a:\n  data-path:\n"), SCRIPT_SIZES)
case("YAML", "a long value", FLAGS, lambda n: many("x ", n, YAML + "data-path: "), SCRIPT_SIZES)
case("YAML", "deep", FLAGS,
     lambda n: "".join(" " * i + "a:\n" for i in range(int((2 * n) ** 0.5))) + YAML, SCRIPT_SIZES)
case("YAML", "comments", FLAGS, lambda n: many("# x\n", n, YAML))
TOML = '[model]\nname="llama3"\nflavor="8B"\n[training]\nlocal_batch_size=1\nseq_len=1024\n'
TITAN = "evaluate --toml=in --cluster=dgx-a100 --devices=8 --top=0"
TOMLS = {
    "unknown keys": lambda n: numbered("zq%d=1", n, TOML, between="\n"),
    "unknown tables": lambda n: numbered("[zq%d]\na=1", n, TOML, between="\n"),
    "one key again": lambda n: many("zq=1\n", n, TOML),
    "one table again": lambda n: many("[[zq]]\n", n, TOML),
    "dotted keys": lambda n: numbered("%d.a.b.c.d.e.f.g.h=1", n, TOML, between="\n"),
    "a long key": lambda n: many("a.", n, TOML, "a=1"),
    "a long name": lambda n: many("x", n, TOML, "=1"),
    "nested lists": lambda n: many("[", n, TOML + "a="),
    "nested objects": lambda n: many("{a=", n, TOML + "a="),
    "many numbers": lambda n: many("0,", n, TOML + "a=[", "]"),
    "many objects": lambda n: many("{},", n, TOML + "a=[", "]"),
    "a long string": lambda n: many("x", n, TOML + "a='", "'"),
    "a long text": lambda n: many("x\n", n, TOML + "a='''", "'''"),
    "a long number": lambda n: many("1", n, TOML + "a="),
    "comments": lambda n: many("# x\n", n, TOML),
    "parts of a model": lambda n: many('["layers.1"],', n, TOML + "[parallelism]\npipeline_parallel_degree=2\n"
                                       "module_fqns_per_model_part=[", "]"),
    "its name": lambda n: TOML.replace("8B", many("x", n)),
}
for SHAPE, MAKE in TOMLS.items():
    case("TOML", SHAPE, TITAN, MAKE)

# Tables and texts.

HEADER = ("# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,"
          "data parallelism,pipeline parallelism,iteration time (ms)")
ROW = "8,8,1,1024,16,24,1024,1,1,8,9.5\n"
PREDICT = "predict --rows=in --cluster=dgx-a100 --csv_out=/dev/null"
for READER, WORDS, OF in [("rows", PREDICT, SIZES),
                          ("rows of a study", "study cost_model_validation --rows=in --out=out", SHARED)]:
    case(READER, "fault at the end", WORDS, lambda n: many(ROW, n, HEADER + "\n", "x\n"), OF)
    case(READER, "long line", WORDS, lambda n: many("x", n, HEADER + "\n"), OF)
    case(READER, "many cells", WORDS, lambda n: many(",", n, HEADER + "\n"), OF)
    case(READER, "many titles", WORDS, lambda n: numbered("a%d", n, HEADER + ","), OF)
    case(READER, "long title", WORDS, lambda n: many("x", n, HEADER + ","), OF)
    case(READER, "empty lines", WORDS, lambda n: many("\n", n, HEADER + "\n"), OF)
case("rows", "rows alike", PREDICT, lambda n: many(ROW, n, HEADER + "\n"), FEW)

REQUESTS = "arrival,prompt,output\n"
SERVING = "study pipelined_decoding --requests_file=in --out=out"
case("requests", "fault at the end", SERVING, lambda n: many("0 ms,512,64\n", n, REQUESTS, "x\n"))
case("requests", "many cells", SERVING, lambda n: many(",", n, REQUESTS))
case("requests", "many titles", SERVING, lambda n: numbered("a%d", n))
case("requests", "open quote", SERVING, lambda n: many("x", n, REQUESTS + '"'))
case("requests", "long cell", SERVING, lambda n: many("x", n, REQUESTS, ",1,1\n"))
PEERS = "peer,speed,join,leave\n"
TRACE = "study unreliable_peers --trace_file=in --out=out"
case("peers", "fault at the end", TRACE, lambda n: numbered("%d,1,%d s,", n, PEERS, "\nx\n", between="\n"))
case("peers", "one peer again", TRACE, lambda n: many("0,1,0 s,\n", n, PEERS))
case("peers", "many cells", TRACE, lambda n: many(",", n, PEERS))
case("peers", "long cell", TRACE, lambda n: many("x", n, PEERS, ",1,0 s,\n"))

MODERN = "study modern_models --measured=folder --out=out"
case("rows of models", "many titles", MODERN, lambda n: {"folder/modern_models.csv": numbered("a%d", n)}, SHARED)
case("rows of models", "open quote", MODERN, lambda n: {"folder/modern_models.csv": many("x", n, '"')}, SHARED)
PLANNERS = "study planner_reference --inputs=folder --out=out"
RESULTS = "folder/reference_results.csv"
case("reference rows", "many cells", PLANNERS, lambda n: {RESULTS: many(",", n, "\n")}, SHARED)
case("reference rows", "long cell", PLANNERS, lambda n: {RESULTS: many("x", n, "\npiper,b,c,", ",,,\n")}, SHARED)
case("reference rows", "fault at the end", PLANNERS,
     lambda n: {RESULTS: many("piper,a,b,1,,,1\n", n, "\n", "x\n")}, SHARED)

GRAPH = "plan --graph=in --devices=4"
case("graph", "a chain", GRAPH, lambda n: chained("%d %d", n, between="\n"))
# METIS hardly makes a star smaller: linear, but half a minute for 100 MB. From 5 to 10 MB its arrays leave the caches,
# and an edge takes five times as long; so growth is judged beyond.
case("graph", "a star", GRAPH, lambda n: numbered("0 %d", n, between="\n"), [10 * MB, 20 * MB] if LARGE else [MB])
case("graph", "one edge again", GRAPH, lambda n: many("0 1\n", n))
case("graph", "drawn from", GRAPH + " --partition=pre_samples", lambda n: numbered("0 %d", n, between="\n"),
     WORKED)
case("graph", "long line", GRAPH, lambda n: many("1 ", n))
case("graph", "one word", GRAPH, lambda n: many("1", n))
case("graph", "comments", GRAPH, lambda n: many("# x\n", n))

NET = '{"name":"mine","layers":[' + INPUT + '{"name":"a1","kind":"dense","out":1}' + LOSS + "]}"
DATA = "run 1f1b:P=2,M=2 --steps=1 --model=net.json --data=in.csv"


def table(text):
    return {"net.json": NET, "in.csv": text}


case("data table", "rows", DATA, lambda n: table(many("1,2,3\n", n, "a,b,c\n")))
case("data table", "fault at the end", DATA, lambda n: table(many("1,2,3\n", n, "a,b,c\n", "x\n")))
case("data table", "many columns", DATA, lambda n: table(numbered("a%d", n)))
case("data table", "one column again", DATA, lambda n: table(many("a,", n)))
case("data table", "long cell", DATA, lambda n: table(many("x", n, "a,b,c\n1,2,")))
case("data table", "long title", DATA, lambda n: table(many("x", n, "a,b,", "\n1,2,y\n")))
case("data table", "one title again", DATA, lambda n: table(many("x", n // 2) + "," + many("x", n // 2)))
case("data table", "open quote", DATA, lambda n: table(many("x", n, 'a,b,c\n"')))
case("data table", "quotes", DATA, lambda n: table(many('""', n, 'a,b,c\n"', '"')))
case("data table", "long number", DATA, lambda n: table(many("1", n, "a,b,c\n1,2,")))
case("data table", "empty lines", DATA, lambda n: table(many("\n", n, "a,b,c\n1,2,3\n")))
TEXT = "run 1f1b:P=2,M=2 --steps=1 --model=gpt-small --data=in.txt"
case("data text", "lines", TEXT, lambda n: {"in.txt": many("it is a truth\n", n)})
case("data text", "one character", TEXT, lambda n: {"in.txt": many("x", n)})
case("data text", "all bytes", TEXT, lambda n: {"in.txt": bytes(range(256)) * (n // 256)})
case("data text", "of a swarm", "swarm coordinate --token_file=token --local_peers=3 --steps=1 --micro_batches=1 "
     "--data=in.txt", lambda n: {"in.txt": many("it is a truth\n", n)})

# Pictures: pieces that are unpacked.

IMAGES = "run 1f1b:P=2,M=2 --steps=1 --model=net.json --data=pictures"
PICTURE_NET = ('{"name":"mine","layers":[{"name":"c","kind":"image_conv","out":1,"shape":[8,8,1]},{"name":"p","kind":'
               '"pool","pool":"global"},{"name":"l","kind":"classifier","classes":2}]}')


def zeros(size, header):
    """A stream of compressed zeros, 1000 times as long unpacked; its checksum is wrong."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packer.compress(bytes(MB)), packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(MB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return header + piece * (size // len(piece)) + b"\x03\x00" + bytes(8)


def png(width, height, data, *chunks):
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", head)] + list(chunks) + [(b"IDAT", data), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in parts)


def pictures(first):
    small = png(8, 8, zlib.compress(bytes(72)))
    files = {"net.json": PICTURE_NET, "pictures/b/a.png": small, "pictures/a/a.png": first}
    files.update({"pictures/b/%d.png" % i: small for i in range(10)})
    return files


def idx(images, labels):
    return {"net.json": PICTURE_NET, "pictures/train-images-idx3-ubyte": images,
            "pictures/train-labels-idx1-ubyte": labels}


def packed_idx(images):
    return {"net.json": PICTURE_NET, "pictures/train-images-idx3-ubyte.gz": images,
            "pictures/train-labels-idx1-ubyte.gz": images}


GZIP = b"\x1f\x8b\x08" + bytes(6) + b"\x03"
case("pictures", "a large one", IMAGES, lambda n: pictures(
    png(1000, n // 1000, zlib.compress(os.urandom(1001) * (n // 1000), 0))))
case("pictures", "unpacked", IMAGES, lambda n: pictures(png(20000, 50 * n // 1000, zeros(n, b"\x78\xda"))))
case("pictures", "more unpacked", IMAGES, lambda n: pictures(png(8, 8, zeros(n, b"\x78\xda"))))
case("pictures", "unpacked text", IMAGES, lambda n: pictures(
    png(8, 8, zlib.compress(bytes(72)), (b"zTXt", b"a\0\0" + zeros(n, b"\x78\xda")))))
case("pictures", "unpacked profile", IMAGES, lambda n: pictures(
    png(8, 8, zlib.compress(bytes(72)), (b"iCCP", b"a\0\0" + zeros(n, b"\x78\xda")))))
case("pictures", "many chunks", IMAGES, lambda n: pictures(
    png(8, 8, zlib.compress(bytes(72)), *[(b"tEXt", b"a\0b")] * (n // 15))))
case("pictures", "numbers", IMAGES, lambda n: idx(
    struct.pack(">IIII", 0x803, n // 64, 8, 8) + bytes(n // 64 * 64), struct.pack(">II", 0x801, n // 64)
    + bytes(n // 64)))
case("pictures", "numbers, unpacked", IMAGES, lambda n: packed_idx(zeros(n, GZIP)), [MB])
case("pictures", "many files", IMAGES, lambda n: {
    "net.json": PICTURE_NET, **{"pictures/a/%d.png" % i: png(8, 8, zlib.compress(bytes(72))) for i in range(n // 1000)},
    "pictures/b/a.png": b""})

# Weights and checkpoints.


def tensors(header, data=b""):
    head = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(head)) + head + data


def llama(weights):
    return {"config.json": "{" + LLAMA + "}", **weights}


def one(content):
    return llama({"model.safetensors": content})


LOGITS = "logits --model=config.json --tokens=1,2"
RESUME = "run 1f1b:P=2,M=2 --steps=1 --resume=in"
EMPTY = '{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
for READER, WORDS, WRAP, OF in [("weights", LOGITS, one, SIZES), ("checkpoint", RESUME, lambda c: c, SHARED)]:
    json_cases(READER, WORDS, "a", wrap=lambda text, wrap=WRAP: wrap(tensors(text)))
    case(READER, "many tensors", WORDS,
         lambda n, wrap=WRAP: wrap(tensors(numbered('"t%d":' + EMPTY, n, "{", "}"))), OF)
    case(READER, "long shape", WORDS, lambda n, wrap=WRAP: wrap(
        tensors(many("1,", n, '{"a":{"dtype":"F32","data_offsets":[0,0],"shape":[', "1]}}"))), OF)
    case(READER, "many offsets", WORDS, lambda n, wrap=WRAP: wrap(
        tensors(many("0,", n, '{"a":{"dtype":"F32","shape":[0],"data_offsets":[', "0]}}"))), OF)
    case(READER, "metadata", WORDS, lambda n, wrap=WRAP: wrap(
        tensors(numbered('"k%d":""', n, '{"__metadata__":{', "}}"))), OF)
    case(READER, "numbers", WORDS, lambda n, wrap=WRAP: wrap(tensors(
        '{"a":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (n // 4, n // 4 * 4), bytes(n // 4 * 4))), OF)
case("checkpoint", "of a study", "study gpt_train --synthetic --resume=in --out=out",
     lambda n: tensors(numbered('"t%d":' + EMPTY, n, "{", "}")), SHARED)
case("checkpoint", "of 4 bits", "study gpt_train --synthetic --load_int4=in --out=out",
     lambda n: tensors(numbered('"t%d":' + EMPTY, n, "{", "}")), SHARED)
case("checkpoint", "generates", "generate --resume=in --prompt=it",
     lambda n: tensors(numbered('"t%d":' + EMPTY, n, "{", "}")), SHARED)
INDEX = "model.safetensors.index.json"
json_cases("index of weights", LOGITS, "weight_map", wrap=lambda text: llama({INDEX: text}))
case("index of weights", "tensors of a file", LOGITS, lambda n: llama({
    INDEX: numbered('"t%d":"a.safetensors"', n, '{"weight_map":{', "}}"), "a.safetensors": tensors("{}")}))
case("index of weights", "tensors of no file", LOGITS, lambda n: llama({
    INDEX: numbered('"t%d":"%d.safetensors"', n, '{"weight_map":{', "}}")}))
case("index of weights", "long names", LOGITS, lambda n: llama({
    INDEX: '{"weight_map":{"t":"a.safetensors"}}',
    "a.safetensors": tensors('{"%s":%s}' % (many("x", n), EMPTY))}))
case("tokens", "a list", "logits --model=gpt-6.6b --tokens=in.txt", lambda n: {"in.txt": many("1,", n, end="1")})
case("tokens", "fault at the end", LOGITS[:-3] + "in.txt", lambda n: llama({"in.txt": many("1,", n, end="x")}))
case("tokens", "one word", LOGITS[:-3] + "in.txt", lambda n: llama({"in.txt": many("1", n)}))

# Secrets, and what the server is sent.

JOIN = "swarm join --coordinator=127.0.0.1:1 --wait_limit_s=1 "
case("token file", "one word", JOIN + "--token_file=in", lambda n: many("x", n))
case("token file", "of the server", "serve --port=0 --token_file=in", lambda n: many("x", n))
PEM = "-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n"
for NAME in ["authority", "certificate", "key"]:
    case("certificates", NAME, JOIN + "--certificates=folder", lambda n, name=NAME: {
        "folder/%s.pem" % other: many("A" * 64 + "\n", n if other == name else 100, "-----BEGIN CERTIFICATE-----\n",
                                      "-----END CERTIFICATE-----\n") for other in ["authority", "certificate", "key"]})
case("certificates", "many of them", JOIN + "--certificates=folder", lambda n: {
    "folder/authority.pem": many(PEM % ("A" * 64 + "\n"), n), "folder/certificate.pem": "x", "folder/key.pem": "x"})

REQUEST = '{"words":["%s"],"options":{%s},"files":{%s}}'
BODIES = {
    "a schedule": lambda n: REQUEST % (
        "in.csv", "", '"in.csv":"%s"' % gpipe(n * 4 // 5, 4, "csv").replace("\n", "\\n")),
    "nested lists": lambda n: many("[", n),
    "many words": lambda n: many('"x",', n, '{"words":[', '"x"]}'),
    "a long word": lambda n: REQUEST % (many("x", n), "", ""),
    "many options": lambda n: REQUEST % ("1f1b", numbered('"k%d":1', n), ""),
    "a long key": lambda n: many("x", n, '{"', '":0}'),
    "no JSON": lambda n: many("x", n),
    "too long": lambda n: many(" ", n * 10),
}
for SHAPE, MAKE in BODIES.items():
    case("request", SHAPE, "serve --port=0", MAKE, [MB])

# Words of the command line.

ARGUMENTS = {
    "configuration's scheme": lambda n: ["simulate", many("x", n)],
    "configuration's keys": lambda n: ["simulate", many("P=2,", n, "1f1b:")],
    "configuration's layout": lambda n: ["simulate", many("1+", n, "1f1b:P=2,M=2,layout=", "1"), "--model=gpt-small",
                                         "--cluster=dgx-a100"],
    "layout of Megatron-LM": lambda n: ["simulate", many("(t|", n // 2, "1f1b:P=2,M=2,layout=E") + many(")*2", n // 2),
                                        "--model=gpt-small", "--cluster=dgx-a100"],
    "times": lambda n: ["simulate", "1f1b:P=2,M=2", many("1,", n, "--forward=", "1")],
    "one time": lambda n: ["simulate", "1f1b:P=2,M=2", many("1", n, "--forward=")],
    "schemes": lambda n: ["search", "--model=gpt-small", "--cluster=dgx-a100", "--devices=4", "--batch=4",
                          many("1f1b,", n, "--schemes=", "1f1b")],
    "unknown schemes": lambda n: ["search", "--model=gpt-small", "--cluster=dgx-a100", "--devices=4", "--batch=4",
                                  numbered("x%d", n, "--schemes=")],
    "fixed keys": lambda n: ["search", "--model=gpt-small", "--cluster=dgx-a100", "--devices=4", "--batch=4",
                             many("P=2,", n, "--fixed=", "P=2")],
    "options of a recipe": lambda n: ["evaluate", "--cluster=dgx-a100", "--devices=8", "--top=0",
                                      numbered("--zq%d 1", n, "--flags=" + SCRIPT[SCRIPT.index("--num-l"):],
                                               between=" ")],
    "values of a script": lambda n: ["evaluate", "--cluster=dgx-a100", "--flags=--num-layers 8",
                                     numbered("A%d=1", n, "--set=")],
    "tokens": lambda n: ["logits", "--model=gpt-6.6b", many("1,", n, "--tokens=", "1")],
    "prompts": lambda n: ["generate", "--model=gpt-small", many("1|", n, "--tokens=", "1")],
    "model": lambda n: ["simulate", "1f1b", many("x", n, "--model=")],
    "tokens of a sample": lambda n: ["simulate", "1f1b", many("1", n, "--model=gpt-small@")],
    "cluster": lambda n: ["simulate", "1f1b", "--model=gpt-small", many("x", n, "--cluster=")],
    "nodes of a cluster": lambda n: ["simulate", "1f1b", "--model=gpt-small",
                                     many("1x", n, "--cluster=dgx-a100:", "1")],
    "slow devices": lambda n: ["simulate", "1f1b:P=2,M=2", many("0:0.5,", n, "--slow_device=", "0:0.5")],
    "fanouts": lambda n: ["plan", "--graph=/dev/null", "--devices=4", many("1,", n, "--fanouts=", "1")],
    "unknown command": lambda n: [many("x", n)],
    "unknown option": lambda n: ["simulate", many("x", n, "--")],
    "unknown topic": lambda n: ["help", many("x", n)],
    "unknown list": lambda n: ["list", many("x", n)],
    "unknown study": lambda n: ["study", many("x", n)],
    "many options": lambda n: ["simulate", "1f1b"] + ["--devices=2"] * (n // 12),
}
for SHAPE, MAKE in ARGUMENTS.items():
    case("argument", SHAPE, None, MAKE, ARGUMENT, large=SHAPE == "options of a recipe")


# Runs.


class Outcome:
    def __init__(self, seconds, megabytes, text, faults):
        self.seconds, self.megabytes, self.text, self.faults = seconds, megabytes, text, faults

    def judge_usage(self, reader, shape):
        if self.text == "exit 2" and reader != "argument" and "%s, %s" % (reader, shape) not in USAGE:
            self.faults.append("wrong usage, where the file is wrong")


def write_files(make, size, folder):
    """In a process of its own: the memory of this one would count as that of the command."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            made = make(size)
            for name, content in (made if isinstance(made, dict) else {"in": made}).items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(content.encode() if isinstance(content, str) else content)
                os.chmod(path, 0o600)
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("the input could not be made")
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def seconds_for(size):
    return next((MOST_SECONDS[s] for s in sorted(MOST_SECONDS) if size <= s), max(MOST_SECONDS.values()))


def start(words, folder, limit):
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            given = "in" if any(word.endswith("=-") for word in words) else os.devnull
            said = "stdout" if words[0] == "serve" else os.devnull
            for stream, name, mode in [(0, given, os.O_RDONLY), (1, said, os.O_WRONLY | os.O_CREAT),
                                       (2, "stderr", os.O_WRONLY | os.O_CREAT)]:
                os.dup2(os.open(name, mode, 0o600), stream)
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(3 * limit + 5)  # It waits for something.
            os.execv(PIPELAB, [PIPELAB] + words)
        finally:
            os._exit(127)
    return child


def post(folder):
    """What the server in this folder answers to the file `in`: a status, or why there is none."""
    for _ in range(100):
        with open(os.path.join(folder, "stdout"), "a+") as file:
            file.seek(0)
            address = re.search(r"http://([^/]*)/", file.read())
        if address:
            break
        time.sleep(0.05)
    with open(os.path.join(folder, "in"), "rb") as file:
        body = file.read()
    connection = http.client.HTTPConnection(address.group(1), timeout=20)
    try:
        connection.request("POST", "/api/simulate", body, {"Content-Type": "application/json"})
    except (BrokenPipeError, ConnectionResetError):
        pass  # The server has answered before the end of the body.
    try:
        return connection.getresponse().status
    except OSError as error:
        return str(error)


def judge(status, usage, errors, size, limit):
    seconds, megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000
    faults = []
    lines = [line for line in errors.split(b"\n") if line and not NOTES.match(line)]
    if os.WIFSIGNALED(status):
        text = signal.Signals(os.WTERMSIG(status)).name
        if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM):
            text = "more than %d s" % limit
        faults.append(text)
    else:
        code = os.WEXITSTATUS(status)
        text = "exit %d" % code
        if code not in (0, 1, 2, 3):
            faults.append(text)
        if len(lines) > 1:
            faults.append("%d lines of stderr" % len(lines))
        if len(errors) > MOST_MESSAGE:
            faults.append("%d bytes of stderr" % len(errors))
        if lines and lines[0].startswith(b"out of memory"):
            text += ", out of memory"
            if size <= 10 * MB:
                faults.append("out of memory")
    if megabytes > MEMORY_FACTOR * size / MB + MEMORY_BASE_MB:
        faults.append("%d MB of memory" % megabytes)
    return Outcome(seconds, megabytes, text + "".join(", " + f for f in faults if f not in text), faults)


def run(words, make, size, works):
    with tempfile.TemporaryDirectory() as folder:
        if words is None:
            words = make(size)
            total = sum(map(len, words))
        else:
            total = write_files(make, size, folder)
        limit = WORK_SECONDS if works else seconds_for(size)
        child = start(words, folder, limit)
        answer = None
        if words[0] == "serve" and "token" not in words[-1]:
            answer = post(folder)
            os.kill(child, signal.SIGTERM)
        _, status, usage = os.wait4(child, 0)
        with open(os.path.join(folder, "stderr"), "rb") as file:
            outcome = judge(status, usage, file.read(), total, limit)
        if answer is not None:
            outcome.text += ", status %s" % answer
            if answer not in (200, 400, 413, 422):
                outcome.faults.append("status %s" % answer)
        return total, outcome


def main():
    with open(PIPELAB, "rb") as file:
        program = file.read()
    if b"__asan_init" in program or b"__tsan_init" in program:
        print("skipped: limits of readers, as a sanitizer takes time and memory of its own")
        return 0
    del program
    began, faults, runs = time.time(), [], 0
    print("%-24s %-26s %11s %8s %7s  %s" % ("reader", "shape", "bytes", "seconds", "MB", "outcome"))
    for reader, shape, words, make, sizes in CASES:
        if WORD not in reader + " " + shape:
            continue
        before = None
        for size in sizes:
            if before is not None and size > MB and not LARGE:
                if before[1].seconds < FREE[0] and before[1].megabytes < FREE[1]:
                    break
            total, outcome = run(words, make, size, sizes is WORKED or sizes is FEW)
            runs += 1
            outcome.judge_usage(reader, shape)
            if size == MB and sizes is SIZES and outcome.seconds > SLOW and "more than" not in outcome.text:
                outcome.faults.append("slower than %d MB/s" % (1 / SLOW))
                outcome.text += ", " + outcome.faults[-1]
            if before is not None and outcome.seconds > JUDGED_FROM and not outcome.faults:
                growth = outcome.seconds / before[1].seconds / (total / before[0])
                if growth > GROWTH:
                    outcome.faults.append("grows %.1f times as fast as the input" % growth)
                    outcome.text += ", " + outcome.faults[-1]
            print("%-24s %-26s %11d %8.2f %7d  %s" % (
                reader, shape, total, outcome.seconds, outcome.megabytes, outcome.text), flush=True)
            faults += ["%s, %s, %d bytes: %s" % (reader, shape, total, f) for f in outcome.faults]
            before = (total, outcome)
            if any(not f.endswith("stderr") for f in outcome.faults):
                break
    for fault in faults:
        print("FAILED: " + fault)
    print("%d runs, %d faults, %.0f s" % (runs, len(faults), time.time() - began))
    return 1 if faults else 0


sys.exit(main())
