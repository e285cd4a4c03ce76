#include "experiments/command_line/command_list.h"

#include <algorithm>
#include <utility>

#include "experiments/command_line/help.h"
#include "experiments/commands/option_groups.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

// Behind the one of that name, as --help lists them.
void InsertBehind(absl::string_view name, std::vector<Command> more, std::vector<Command>* all) {
  const auto at =
      std::find_if(all->begin(), all->end(), [name](const Command& c) { return c.name == name; });
  CHECK(at != all->end()) << name;
  all->insert(at + 1, more.begin(), more.end());
}

// Commands that train, and those that are about commands.
std::vector<Command> MakeCommands() {
  const OptionGroups g;
  std::vector<Command> all = SimulatedCommands();
  const std::vector<Command> run = {
      {"run", "trains a network under a schedule or a plan and compares it with serial training",
       "run 1f1b --devices=4 --micro_batches=8 --steps=5",
       JoinOptions({g.schedule,
                    g.plan_model,
                    g.optimizer,
                    {"sharding", "shards"},
                    {"steps", "seed", "layers", "heads", "wait_limit_s", "tensor_parallel", "data",
                     "batch_norm", "layout", "sequence_parallel", "backend", "dtype", "cuda_graphs",
                     "checkpoint", "checkpoint_every", "resume", "pretrained", "json_out"}}),
       nullptr, kTrainProgram},
  };
  const std::vector<Command> language_models = {
      {"logits",
       "what a language model with published weights says after given tokens, and its loss",
       "logits --model=llama/config.json --tokens=464,2068,7586",
       {"model", "tokens", "top", "backend", "dtype", "json_out"},
       nullptr,
       kTrainProgram},
      {"generate",
       "what a trained model writes behind a prompt, over a pipeline of devices with caches",
       "generate --model=llama/config.json --tokens=464,2068,7586 --new_tokens=4 --devices=2",
       {"resume", "prompt", "model", "tokens", "new_tokens", "devices", "groups", "slots", "chunk",
        "cache", "temperature", "seed", "backend", "dtype", "json_out"},
       nullptr,
       kTrainProgram},
      {"study",
       "a published study again, or all of them (docs/results.md)",
       "study schedule_formulas --out=formulas",
       {},
       nullptr,
       kStudyProgram},
      {"predict",
       "times and memory of training iterations of a GPT on a cluster, one per row of a file",
       "predict --rows=runs.csv --cluster=dgx-a100 --csv_out=-",
       {"rows", "cluster", "csv_out", "vocabulary", "reserve"},
       &PredictCommand},
      {"swarm",
       "trains a GPT on peers that come and go: coordinate, join or train (docs/elastic.md)",
       "swarm coordinate --local_peers=6 --steps=20 --token_file=swarm.token",
       JoinOptions({g.optimizer, {"steps",        "seed",          "layers",
                                  "heads",        "hidden",        "context",
                                  "stages",       "micro_batches", "micro_batch_size",
                                  "data",         "checkpoint",    "checkpoint_every",
                                  "wait_limit_s", "listen",        "coordinator",
                                  "token_file",   "certificates",  "log",
                                  "order_free",   "eight_bits",    "update_delay",
                                  "rebalance_s",  "train",         "in_flight",
                                  "local_peers",  "speed",         "least_pass_ms"}}),
       nullptr, kTrainProgram},
      {"serve",
       "the commands in a browser: timelines, memory, comparisons and searches (docs/serve.md)",
       "serve --port=8080",
       {"port", "address", "token_file"},
       nullptr,
       kPlanProgram},
  };
  const std::vector<Command> about = {
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
  InsertBehind("show", run, &all);
  InsertBehind("check_plan", language_models, &all);
  InsertBehind("list", about, &all);
  AddLinkedFunctions(&all);
  return all;
}

}  // namespace

absl::Span<const Command> Commands() {
  static const auto* commands = new std::vector<Command>(MakeCommands());
  return *commands;
}

}  // namespace pipelab
