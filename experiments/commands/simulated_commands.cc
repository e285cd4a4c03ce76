// The commands that plan, simulate and draw: none of them runs a kernel, so other programs may link
// them alone.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/command.h"
#include "experiments/commands/option_groups.h"
#include "experiments/flags/flags.h"

namespace pipelab {
namespace {

std::vector<Command> CommandsOfSchedules(const OptionGroups& g) {
  return {
      {"schedule", "prints a schedule as CSV, text or JSON; converts one form to another",
       "schedule 1f1b --devices=4 --micro_batches=8 --format=csv --out=mine.csv",
       JoinOptions({g.schedule,
                    g.plan_model,
                    {"format", "out", "kernels", "cluster", "launches", "dtype"}}),
       &ScheduleCommand},
      {"simulate", "makespan, bubble and memory of a schedule",
       "simulate chimera --devices=4 --micro_batches=8 --p2p_latency=0.1 --json_out=-",
       JoinOptions({g.schedule, g.times, g.plan, {"arrivals", "when_full", "json_out"}}),
       &SimulateCommand},
      {"check", "says whether a schedule is valid, and if not, what is wrong and where",
       "check --csv=mine.csv", g.files, &CheckCommand},
      {"show", "draws a schedule as text, SVG or Chrome trace",
       "show interleaved --devices=4 --micro_batches=8 --svg_out=timeline.svg",
       JoinOptions(
           {g.schedule, g.times, g.plan, {"columns", "svg_out", "memory_out", "trace_out"}}),
       &ShowCommand},
  };
}

std::vector<Command> CommandsOfConfigurations(const OptionGroups& g) {
  return {
      {"compare",
       "configurations of a step side by side: time, bubble, memory, traffic, the winner",
       "compare 1f1b:P=8,M=32 zbv:P=8,M=32 --model=gpt-6.6b --cluster=dgx-a100",
       JoinOptions({g.on_cluster, {"columns", "json_out"}}), &CompareCommand},
      {"search", "the fastest grid, schedule and sharding for a model, a cluster and a batch",
       "search --model=gpt-52b --cluster=dgx1-v100 --devices=64 --batch=32",
       JoinOptions({g.on_cluster,
                    {"batch", "devices", "top", "schemes", "max_tensor", "max_context",
                     "max_expert", "fixed", "systems", "explain", "tokens", "json", "json_out"}}),
       &SearchCommand},
      {"synthesize", "the best schedule for given stage times and memory, and a bound of all",
       "synthesize 1f1b:P=4,M=8 --memory=3 --time_limit=2s",
       JoinOptions({g.times,
                    {"devices", "micro_batches", "virtual_stages", "recompute", "data_parallel",
                     "memory", "times", "time_limit", "seed", "slow_device", "freedoms",
                     "schedule_out", "json_out"}}),
       nullptr, kPlanProgram},
      {"evaluate",
       "what a Megatron-LM command line or a torchtitan file costs, and what near it is better",
       "evaluate --flags=run.sh --cluster=dgx-h100 --devices=16",
       {"flags", "launch", "set", "toml", "cluster", "launches", "devices", "reserve", "top",
        "strict", "tokens", "json_out"},
       &EvaluateCommand},
      {"plan",
       "divides a network into stages by a planner, or a graph over devices (--graph), and says "
       "how "
       "good that is",
       "plan --planner=graphpipe --model=mmt-small --cluster=summit-4gpu --devices=8 "
       "--micro_batch_size=2 --json_out=plan.json",
       JoinOptions({g.plan_problem,
                    {"planner", "time_limit", "stages", "stage_micro_batch_size", "objective",
                     "json_out", "graph", "partition", "fanouts", "seed", "parts_out"}}),
       nullptr, kPlanProgram},
      {"check_plan", "checks a plan and prints its objective and bounds",
       "check_plan --plan=plan.json --model=mmt-small --cluster=summit-4gpu --devices=8 "
       "--micro_batch_size=2",
       JoinOptions({g.plan_problem, {"plan", "json_out"}}), nullptr, kPlanProgram},
      {"machine",
       "a machine's values with their origins and sources, its roofline and curves; or all "
       "machines",
       "machine dgx-b200",
       {"json", "svg_out"},
       &MachineCommand},
      {"list",
       "the schemes, models and clusters that have a name",
       "list models",
       {"json"},
       &ListCommand},
  };
}

std::map<absl::string_view, CommandFunction>& LinkedFunctions() {
  static auto* functions = new std::map<absl::string_view, CommandFunction>;
  return *functions;
}

std::map<absl::string_view, std::vector<std::string>>& LinkedValues() {
  static auto* values = new std::map<absl::string_view, std::vector<std::string>>;
  return *values;
}

}  // namespace

void LinkCommand(absl::string_view name, CommandFunction run) { LinkedFunctions()[name] = run; }

void AddLinkedFunctions(std::vector<Command>* commands) {
  for (Command& c : *commands) {
    const auto linked = LinkedFunctions().find(c.name);
    if (linked != LinkedFunctions().end()) c.run = linked->second;
  }
}

void LinkOptionValues(absl::string_view option, std::vector<std::string> names) {
  LinkedValues()[option] = std::move(names);
}

std::vector<std::string> LinkedOptionValues(absl::string_view option) {
  const auto linked = LinkedValues().find(option);
  return linked == LinkedValues().end() ? std::vector<std::string>() : linked->second;
}

std::vector<Command> SimulatedCommands() {
  const OptionGroups groups;
  std::vector<Command> commands = CommandsOfSchedules(groups);
  for (Command& c : CommandsOfConfigurations(groups)) commands.push_back(std::move(c));
  AddLinkedFunctions(&commands);
  return commands;
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
    return DoesNotUse(command.name, absl::StrCat(name, "=", value));
  }
  return absl::OkStatus();
}

absl::Status DoesNotUse(absl::string_view command, absl::string_view option) {
  return absl::InvalidArgumentError(absl::StrCat("--", option, ": ", command,
                                                 " does not use it; `pipelab help ", command,
                                                 "` lists what it uses"));
}

}  // namespace pipelab
