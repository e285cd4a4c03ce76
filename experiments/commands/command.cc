#include "experiments/commands/command.h"

#include <algorithm>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "experiments/flags.h"

namespace pipelab {
namespace {

std::vector<absl::string_view> Join(std::vector<absl::string_view> a,
                                    const std::vector<absl::string_view>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Command> MakeCommands() {
  const std::vector<absl::string_view> files = {"csv", "json", "text"};
  const std::vector<absl::string_view> sizes = {
      "devices",       "micro_batches",       "chunks",       "recompute", "group_size",
      "replicas",      "concatenation",       "update_every", "slices",    "edges",
      "stage_devices", "stage_micro_batches", "data_parallel"};
  const std::vector<absl::string_view> input = Join(files, sizes);
  const std::vector<absl::string_view> sizes_of_stages = {"bytes", "kept", "weights",
                                                          "optimizer_tensors", "workspace"};
  const std::vector<absl::string_view> model = {"model",       "model_time_unit", "cluster",
                                                "number_type", "samples",         "layout",
                                                "dtype",       "reserve"};
  const std::vector<absl::string_view> times =
      Join({"forward", "backward_input", "backward_weight", "hop", "atomic_pairs", "recompute_time",
            "step", "reduce", "bandwidth", "links", "overlap", "device_speed"},
           Join(sizes_of_stages, model));
  const std::vector<absl::string_view> plan = {"plan", "sequential"};
  const std::vector<absl::string_view> plan_model =
      Join(plan, {"model", "model_time_unit", "samples"});
  const std::vector<absl::string_view> optimizer = {"optimizer",    "learning_rate", "momentum",
                                                    "weight_decay", "warmup_steps",  "rate_decay",
                                                    "clip_norm"};
  const std::vector<absl::string_view> plan_input = {"piper_json",
                                                     "pipedream_profile",
                                                     "dnn_partitioning_json",
                                                     "model",
                                                     "cluster",
                                                     "devices",
                                                     "machines",
                                                     "memory",
                                                     "micro_batches",
                                                     "bandwidth",
                                                     "device_speed",
                                                     "samples",
                                                     "sample_sizes",
                                                     "token_step",
                                                     "number_type",
                                                     "dtype",
                                                     "blocks",
                                                     "model_time_unit"};
  return {
      {"schedule", "prints a schedule as CSV, text or JSON; converts one form to another",
       "schedule 1f1b --devices=4 --micro_batches=8 --format=csv --out=mine.csv",
       Join(Join(input, plan_model), {"format", "out", "cluster", "dtype", "number_type"}),
       &ScheduleCommand},
      {"simulate", "makespan, bubble and memory of a schedule",
       "simulate chimera --devices=4 --micro_batches=8 --hop=0.1 --json_out=-",
       Join(Join(input, times), Join(plan, {"json_out"})), &SimulateCommand},
      {"check", "says whether a schedule is valid, and if not, what is wrong where",
       "check --csv=mine.csv", files, &CheckCommand},
      {"show", "draws a schedule as text, SVG or Chrome trace",
       "show interleaved --devices=4 --micro_batches=8 --svg_out=timeline.svg",
       Join(Join(input, times), Join(plan, {"columns", "svg_out", "memory_out", "trace_out"})),
       &ShowCommand},
      {"run", "trains a network under a schedule, or a plan, beside serial training",
       "run 1f1b --devices=4 --micro_batches=8 --steps=5",
       Join(Join(Join(input, plan_model), optimizer),
            {"steps", "seed", "layers", "heads", "wait_limit_s", "sharding", "tensor_parallel",
             "data", "batch_norm", "layout", "sequence_parallel", "backend", "precision",
             "cuda_graphs", "checkpoint", "checkpoint_every", "resume", "json_out"}),
       &RunCommand},
      {"compare",
       "configurations of a step beside one another: time, bubble, memory, traffic, the winner",
       "compare 1f1b:P=8,M=32 zbv:P=8,M=32 --model=gpt-6.6b --cluster=dgx-a100",
       {"model", "model_time_unit", "cluster", "dtype", "number_type", "reserve", "columns",
        "json_out"},
       &CompareCommand},
      {"search",
       "the fastest grid, schedule and sharding for a model, a cluster and a batch",
       "search --model=gpt-52b --cluster=dgx1-v100 --gpus=64 --batch=32",
       {"model", "model_time_unit", "cluster", "dtype", "number_type", "reserve", "batch", "gpus",
        "top", "schemes", "max_tensor", "fixed", "explain", "json", "json_out"},
       &SearchCommand},
      {"plan", "the stages that a planner makes of a network, and how good they are",
       "plan --planner=graphpipe --model=mmt-small --cluster=summit-4gpu --devices=8 --samples=2 "
       "--json_out=plan.json",
       Join(plan_input,
            {"planner", "time_limit", "stages", "micro_batch_samples", "objective", "json_out"}),
       &PlanCommand},
      {"check_plan", "says whether a plan is one, and what its objective and bounds are",
       "check_plan --plan=plan.json --model=mmt-small --cluster=summit-4gpu --devices=8 "
       "--samples=2",
       Join(plan_input, {"plan", "json_out"}), &CheckPlanCommand},
      {"predict",
       "times and memory of training iterations of a GPT on a cluster, one a row of a file",
       "predict --rows=runs.csv --cluster=dgx-a100 --csv_out=-",
       {"rows", "cluster", "csv_out", "vocabulary", "reserve"},
       &PredictCommand},
      {"list", "the schemes that have a name", "list", {"json"}, &ListCommand},
  };
}

}  // namespace

absl::Span<const Command> Commands() {
  static const auto* commands = new std::vector<Command>(MakeCommands());
  return *commands;
}

absl::Status CheckOptions(const Command& command) {
  for (const auto& [name, value] : ResolvedFlags()) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (value == flag->DefaultValue()) continue;
    if (std::find(command.options.begin(), command.options.end(), name) != command.options.end()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("--", name, "=", value, ": ", command.name,
                                                   " does not use it; --help shows what it does"));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
