#include "experiments/commands/command.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "experiments/flags.h"

namespace pipelab {
namespace {

using Options = std::vector<absl::string_view>;

Options Join(std::initializer_list<Options> groups) {
  Options all;
  for (const Options& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

// What several commands take.
struct OptionGroups {
  Options files = {"csv", "json", "text"};
  Options schedule = Join({files,
                           {"devices", "micro_batches", "virtual_stages", "recompute", "group_size",
                            "replicas", "concatenation", "update_interval", "slices", "edges",
                            "stage_devices", "stage_micro_batches", "data_parallel",
                            "context_parallel", "context_exchange", "expert_parallel"}});
  Options on_cluster = {"model",    "model_time_unit", "kernels", "cluster",
                        "launches", "dtype",           "reserve"};
  Options times = Join({{"forward",
                         "backward_input",
                         "backward_weight",
                         "p2p_latency",
                         "atomic_pairs",
                         "recompute_time",
                         "step",
                         "reduce",
                         "bandwidth",
                         "links",
                         "overlap",
                         "device_speed",
                         "bytes",
                         "activation_bytes",
                         "weights",
                         "optimizer_tensors",
                         "workspace",
                         "micro_batch_size",
                         "layout",
                         "execution",
                         "ranks"},
                        on_cluster});
  Options plan = {"plan", "sequential"};
  Options plan_model = Join({plan, {"model", "model_time_unit", "micro_batch_size"}});
  Options plan_problem = {"piper_json",
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
                          "micro_batch_size",
                          "sample_sizes",
                          "token_step",
                          "dtype",
                          "blocks",
                          "model_time_unit"};
  Options optimizer = {"optimizer",    "learning_rate", "momentum", "weight_decay",
                       "warmup_steps", "rate_decay",    "clip_norm"};
};

std::vector<Command> CommandsOfSchedules(const OptionGroups& g) {
  return {
      {"schedule", "prints a schedule as CSV, text or JSON; converts one form to another",
       "schedule 1f1b --devices=4 --micro_batches=8 --format=csv --out=mine.csv",
       Join({g.schedule,
             g.plan_model,
             {"format", "out", "kernels", "cluster", "launches", "dtype"}}),
       &ScheduleCommand},
      {"simulate", "makespan, bubble and memory of a schedule",
       "simulate chimera --devices=4 --micro_batches=8 --p2p_latency=0.1 --json_out=-",
       Join({g.schedule, g.times, g.plan, {"arrivals", "when_full", "json_out"}}),
       &SimulateCommand},
      {"check", "says whether a schedule is valid, and if not, what is wrong and where",
       "check --csv=mine.csv", g.files, &CheckCommand},
      {"show", "draws a schedule as text, SVG or Chrome trace",
       "show interleaved --devices=4 --micro_batches=8 --svg_out=timeline.svg",
       Join({g.schedule, g.times, g.plan, {"columns", "svg_out", "memory_out", "trace_out"}}),
       &ShowCommand},
      {"run", "trains a network under a schedule or a plan and compares it with serial training",
       "run 1f1b --devices=4 --micro_batches=8 --steps=5",
       Join({g.schedule,
             g.plan_model,
             g.optimizer,
             {"sharding", "shards"},
             {"steps", "seed", "layers", "heads", "wait_limit_s", "tensor_parallel", "data",
              "batch_norm", "layout", "sequence_parallel", "backend", "dtype", "cuda_graphs",
              "checkpoint", "checkpoint_every", "resume", "pretrained", "json_out"}}),
       &RunCommand},
  };
}

std::vector<Command> CommandsOfConfigurations(const OptionGroups& g) {
  return {
      {"compare",
       "configurations of a step side by side: time, bubble, memory, traffic, the winner",
       "compare 1f1b:P=8,M=32 zbv:P=8,M=32 --model=gpt-6.6b --cluster=dgx-a100",
       Join({g.on_cluster, {"columns", "json_out"}}), &CompareCommand},
      {"search", "the fastest grid, schedule and sharding for a model, a cluster and a batch",
       "search --model=gpt-52b --cluster=dgx1-v100 --devices=64 --batch=32",
       Join({g.on_cluster,
             {"batch", "devices", "top", "schemes", "max_tensor", "max_context", "max_expert",
              "fixed", "explain", "json", "json_out"}}),
       &SearchCommand},
      {"synthesize", "the best schedule for given stage times and memory, and a bound of all",
       "synthesize 1f1b:P=4,M=8 --memory=3 --time_limit=2s",
       Join({g.times,
             {"devices", "micro_batches", "virtual_stages", "recompute", "data_parallel", "memory",
              "times", "time_limit", "seed", "slow_device", "freedoms", "schedule_out",
              "json_out"}}),
       &SynthesizeCommand},
      {"evaluate",
       "what a Megatron-LM command line or a torchtitan file costs, and what near it is better",
       "evaluate --flags=run.sh --cluster=dgx-h100 --devices=16",
       {"flags", "toml", "cluster", "launches", "devices", "reserve", "top", "json_out"},
       &EvaluateCommand},
      {"plan",
       "divides a network into stages by a planner, or a graph over devices (--graph), and says "
       "how "
       "good that is",
       "plan --planner=graphpipe --model=mmt-small --cluster=summit-4gpu --devices=8 "
       "--micro_batch_size=2 --json_out=plan.json",
       Join({g.plan_problem,
             {"planner", "time_limit", "stages", "stage_micro_batch_size", "objective", "json_out",
              "graph", "partition", "fanouts", "seed", "parts_out"}}),
       &PlanCommand},
      {"check_plan", "checks a plan and prints its objective and bounds",
       "check_plan --plan=plan.json --model=mmt-small --cluster=summit-4gpu --devices=8 "
       "--micro_batch_size=2",
       Join({g.plan_problem, {"plan", "json_out"}}), &CheckPlanCommand},
      {"logits",
       "what a language model with published weights says after given tokens, and its loss",
       "logits --model=llama/config.json --tokens=464,2068,7586",
       {"model", "tokens", "top", "backend", "dtype", "json_out"},
       &LogitsCommand},
      {"generate",
       "what a trained model writes behind a prompt, over a pipeline of devices with caches",
       "generate --model=llama/config.json --tokens=464,2068,7586 --new_tokens=4 --devices=2",
       {"resume", "prompt", "model", "tokens", "new_tokens", "devices", "groups", "slots", "chunk",
        "cache", "temperature", "seed", "backend", "dtype", "json_out"},
       &GenerateCommand},
      {"predict",
       "times and memory of training iterations of a GPT on a cluster, one per row of a file",
       "predict --rows=runs.csv --cluster=dgx-a100 --csv_out=-",
       {"rows", "cluster", "csv_out", "vocabulary", "reserve"},
       &PredictCommand},
      {"swarm",
       "trains a GPT on peers that come and go: coordinate, join or train (docs/elastic.md)",
       "swarm coordinate --local_peers=6 --steps=20 --token_file=swarm.token",
       Join({g.optimizer, {"steps",        "seed",          "layers",
                           "heads",        "hidden",        "context",
                           "stages",       "micro_batches", "micro_batch_size",
                           "data",         "checkpoint",    "checkpoint_every",
                           "wait_limit_s", "listen",        "coordinator",
                           "token_file",   "certificates",  "log",
                           "order_free",   "eight_bits",    "update_delay",
                           "rebalance_s",  "train",         "in_flight",
                           "local_peers",  "speed",         "least_pass_ms"}}),
       &SwarmCommand},
      {"list",
       "the schemes, models and clusters that have a name",
       "list models",
       {"json"},
       &ListCommand},
      {"help",
       "the options of a command and their defaults, a topic, or the manual page",
       "help simulate",
       {"man"},
       &HelpCommand},
      {"completion",
       "prints what a shell needs to complete commands, options and names",
       "completion bash",
       {},
       &CompletionCommand},
  };
}

std::vector<Command> MakeCommands() {
  const OptionGroups groups;
  std::vector<Command> commands = CommandsOfSchedules(groups);
  for (Command& c : CommandsOfConfigurations(groups)) commands.push_back(std::move(c));
  return commands;
}

}  // namespace

absl::Span<const Command> Commands() {
  static const auto* commands = new std::vector<Command>(MakeCommands());
  return *commands;
}

absl::Status CheckOptionsAlone(const Words& words, absl::string_view command,
                               absl::string_view hint) {
  if (words.size() <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", words[1], "': ", command, " takes options alone", hint));
}

absl::Status CheckOptions(const Command& command) {
  for (const auto& [name, value] : ResolvedFlags()) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (value == flag->DefaultValue()) continue;
    if (std::find(command.options.begin(), command.options.end(), name) != command.options.end()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("--", name, "=", value, ": ", command.name,
                                                   " does not use it; `pipelab help ", command.name,
                                                   "` lists what it uses"));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
