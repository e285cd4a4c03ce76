#include "experiments/command_line/topics.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/command_line/options.h"

namespace pipelab {
namespace {

constexpr size_t kTopicColumns = 90;

// "  gpipe, 1f1b, ...", in lines.
std::string InLines(const std::vector<std::string>& names) {
  std::string text, line = " ";
  for (const std::string& name : names) {
    if (line.size() + name.size() + 2 > kTopicColumns) {
      absl::StrAppend(&text, line, "\n");
      line = " ";
    }
    absl::StrAppend(&line, " ", name, &name == &names.back() ? "" : ",");
  }
  return absl::StrCat(text, line, "\n");
}

std::string SchemesText() {
  return absl::StrCat("A scheme is a rule for the order in which devices run micro-batches:\n\n",
                      InLines(ValuesOf("schemes")), R"(
`pipelab list schemes` says what each does and names its paper. `pipelab show 1f1b` draws one.
A schedule file stands for a scheme wherever one is taken (`pipelab help files`).
)");
}

std::string ModelsText() {
  return absl::StrCat("--model takes the name of a published model or a JSON file:\n\n",
                      InLines(ValuesOf("model")), R"(
`pipelab list models` has their parameters and sources. A file lists layers, with flops or
measured times, bytes and parameters; docs/models.md describes it:

  {"name": "mine", "layers": [
    {"name": "block", "flops": "12 Gflop", "output": "4 MiB", "parameters": 12600000}]}
)");
}

std::string ClustersText() {
  return absl::StrCat("--cluster takes the name of a machine or a JSON file:\n\n",
                      InLines(ValuesOf("cluster")), R"(
`pipelab list clusters` has their sizes, `pipelab machine dgx-b200` all values of one and their
sources. A file has the device and the links, values with units; ten lines are enough for a new
machine: `class` gives the rest (docs/clusters.md). Or measure the machine you are on:

  tools/bazel run //experiments:calibrate -- --out here.json

Where a machine's efficiencies are assumed, commands print a note and a range of times.
)");
}

std::string PlannersText() {
  return absl::StrCat("--planner chooses the planner that cuts a model into stages:\n\n",
                      InLines(ValuesOf("planner")), R"(
`best`, the default, runs all that can read the input and takes the plan with the shortest batch.
`--time_limit=10s` bounds the search. docs/planning.md has objectives and inputs:

  pipelab plan --planner=chain --model=gpt-6.6b --cluster=dgx-a100 --devices=8 --json_out=plan.json
  pipelab simulate --plan=plan.json --model=gpt-6.6b --cluster=dgx-a100
)");
}

std::string ConfigurationText() {
  return R"(A configuration is one word, SCHEME:KEY=VALUE,WORD,..., which `search` prints and every
command takes; keys that are left out have their defaults:

  P=1  devices of the pipeline           b=1  samples of a micro-batch of one copy
  T=1  tensor-parallel devices           M=1  micro-batches of a step
  D=1  data-parallel copies              V=0  stages per device; 0: the scheme's own number
  sharding=replicated|optimizer|gradients|fully
  recompute=none|full|blocks|selective
  sequence                               sequence parallelism in tensor-parallel groups
  layout=3+2+2+3                         layers of each stage

A step has b x M x D samples on P x T x D devices. docs/cli.md has all keys:

  pipelab simulate 1f1b:P=4,T=2,D=8,M=16,sharding=optimizer --model=gpt-6.6b --cluster=dgx-a100
)";
}

std::string UnitsText() {
  return R"(Quantities in options and files are a number and a unit, with or without a space:

  bytes         B, kB, MB, GB, TB (powers of 1000); KiB, MiB, GiB, TiB (powers of 1024)
  bandwidth     the same with /s; or bit/s (b/s, bps): 100 Gb/s is 12.5 GB/s
  work, speed   flop, Gflop, Tflop; Tflop/s (TFLOPS)
  time          s, ms, us, ns

b is a bit and B a byte. Times of schedules without a model have no unit; drawings show one as
1 ms. Bubbles are shares of the devices' time, printed in %.
)";
}

std::string MemoryText() {
  return R"(Commands print the memory of the fullest device, in GiB: weights, gradients, optimizer
state, activations, messages and what the running action needs, all at the fullest moment.

  pipelab simulate 1f1b:P=4,T=2,D=8,M=16 --model=gpt-6.6b --cluster=dgx-a100   # each device's parts
  --reserve=0.1           leaves a tenth of each device free
  recompute=full|blocks|selective, sharding=optimizer|gradients|fully   # keys that save memory

`search` leaves out what does not fit; other commands print it and end with exit code 3.
)";
}

std::string FilesText() {
  return R"(Options that take a file take - for stdin or stdout. A file that is written appears
whole or not at all. Relative paths start at the folder of the shell.

  schedules   --csv, --json, --text, or mine.csv instead of a scheme (`pipelab check`)
  models      --model=FILE.json                   docs/models.md
  clusters    --cluster=FILE.json                 docs/clusters.md
  plans       --plan=FILE.json, made by `pipelab plan --json_out`      docs/planning.md
  runs        predict --rows=FILE.csv             docs/validation.md
  results     --json_out=FILE, with a field `schema`; docs/step.schema.json is the JSON Schema
  training    --data, --checkpoint, --resume      docs/data.md
)";
}

}  // namespace

absl::Span<const Topic> Topics() {
  static const auto* topics = new std::vector<Topic>{
      {"schemes", "orders of micro-batches", SchemesText},
      {"models", "published models, and files of your own", ModelsText},
      {"clusters", "machines, and files of your own", ClustersText},
      {"planners", "what cuts a model into stages", PlannersText, "plan"},
      {"configuration", "the text form of a step: 1f1b:P=4,M=16", ConfigurationText},
      {"units", "bytes, bandwidths, flops and times", UnitsText},
      {"memory", "what is counted, and how to save it", MemoryText},
      {"files", "what is read and written", FilesText},
  };
  return *topics;
}

}  // namespace pipelab
