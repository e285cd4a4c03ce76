#include "experiments/command_line/options.h"

#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "experiments/command_line/command_list.h"
#include "experiments/command_line/topics.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {
namespace {

// Options that are shared by several commands and mean something else in this one.
struct OptionInCommand {
  absl::string_view command, option, default_value, help;
};
constexpr char kTokenIds[] =
    "ids of the tokens that a model reads: 464,2068 or a file of them, such as ids.txt";
constexpr OptionInCommand kInCommands[] = {
    {"search", "devices", "all of the cluster", "devices to search grids for"},
    {"plan", "devices", "all of the cluster", "devices to plan for"},
    {"evaluate", "devices", "those of torchrun, or of all degrees", "devices of the run"},
    {"evaluate", "top", "5", "neighbours to print; 0: none, and no way to the fastest"},
    {"check_plan", "devices", "all of the cluster", "devices that the plan is for"},
    {"search", "batch", "required", "samples of a training step; not needed with --explain"},
    {"search", "json", "off", "prints JSON instead of a table"},
    {"list", "json", "off", "prints JSON instead of a table"},
    {"machine", "json", "off", "prints JSON instead of text"},
    {"machine", "svg_out", "", "file of the roofline and the curves as SVG; -: stdout"},
    {"run", "dtype", "fp32",
     "numbers that the devices compute with: fp32; with --backend=cuda also tf32 (products with 10 "
     "bits); with it or --backend=emulated also bf16 (activations and weights; sums and master "
     "weights stay float32)"},
    {"plan", "micro_batches", "the input's, or 8", "micro-batches of a batch, over all copies"},
    {"synthesize", "time_limit", "10s", "how long the search may take, such as 60s"},
    {"synthesize", "memory", "the cluster's, or no limit",
     "memory of a device, such as 8GiB; without a model and bytes: activations"},
    {"synthesize", "seed", "1", "seed of the search"},
    {"search", "reserve", "0.06",
     "share of a device's memory that a step must leave free, 0 to 1: for the library, "
     "fragmentation, the display"},
    {"logits", "tokens", "", kTokenIds},
    {"generate", "tokens", "", kTokenIds},
    {"serve", "token_file", "",
     "file with the token that requests must have, at least 16 characters; empty: none on this "
     "host's own address, a new one elsewhere"},
    {"check_plan", "micro_batches", "the input's, or 8",
     "micro-batches of a batch, over all copies"},
};

const OptionInCommand* InCommand(absl::string_view command, absl::string_view option) {
  for (const OptionInCommand& o : kInCommands) {
    if (o.command == command && o.option == option) return &o;
  }
  return nullptr;
}

std::vector<std::string> SchemeNames() {
  std::vector<std::string> names;
  for (const Scheme& s : Catalog()) names.emplace_back(s.name);
  return names;
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const PublishedModel& m : PublishedModels()) names.push_back(m.name);
  return names;
}

}  // namespace

std::vector<std::string> ValuesOf(absl::string_view option) {
  if (option == "model") return ModelNames();
  if (option == "cluster") return ClusterNames();
  if (option == "schemes") return SchemeNames();
  return LinkedOptionValues(option);
}

std::vector<OptionText> OptionsOf(const Command& command) {
  std::vector<OptionText> options;
  for (const absl::string_view name : command.options) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    const OptionInCommand* here = InCommand(command.name, name);
    OptionText o;
    o.name = name;
    o.default_value = here != nullptr ? std::string(here->default_value) : flag->DefaultValue();
    o.help = here != nullptr ? std::string(here->help) : flag->Help();
    o.has_value = !flag->IsOfType<bool>();
    o.values = ValuesOf(name);
    options.push_back(std::move(o));
  }
  return options;
}

std::string DefaultNote(const OptionText& option) {
  if (option.default_value.empty()) return "";
  if (option.default_value == "required") return "(required)";
  return absl::StrCat("(default ", option.default_value, ")");
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& c : Commands()) names.emplace_back(c.name);
  return names;
}

std::vector<std::string> WordsOf(const Command& command) {
  if (command.name == "list") return {"schemes", "models", "clusters"};
  if (command.name == "machine") return ClusterNames();
  if (command.name == "completion") return {"bash", "zsh", "fish"};
  if (command.name == "help") {
    std::vector<std::string> names = CommandNames();
    for (const Topic& t : Topics()) names.emplace_back(t.name);
    return names;
  }
  for (const absl::string_view option : command.options) {
    if (option == "micro_batches" && !absl::EndsWith(command.name, "plan")) return SchemeNames();
  }
  return command.name == "compare" ? SchemeNames() : std::vector<std::string>();
}

}  // namespace pipelab
