#include "pipelines/recipes/megatron_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pipelines/recipes/megatron_option_names.h"
#include "pipelines/recipes/megatron_option_tables.h"
#include "pipelines/recipes/shell_options.h"
#include "pipelines/recipes/yaml_options.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/embedded_text.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::vector<absl::string_view> PassedOver() {
  std::vector<absl::string_view> names;
  for (const EmbeddedText& text : MegatronOptionNames()) {
    for (const absl::string_view name :
         absl::StrSplit(text.text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
      names.push_back(name);
    }
  }
  return names;
}

bool IsPassedOver(absl::string_view name) {
  static const auto* names = new std::vector<absl::string_view>(PassedOver());
  return std::find(names->begin(), names->end(), name) != names->end() ||
         absl::StartsWith(name, "retro-") || absl::StartsWith(name, "inprocess-") ||
         absl::StartsWith(name, "inference-");
}

template <typename Table>
const auto* FindIn(const Table& table, absl::string_view name) {
  const auto* found = std::find_if(std::begin(table), std::end(table),
                                   [&](const auto& entry) { return entry.name == name; });
  return found == std::end(table) ? nullptr : found;
}

// A switch with such a word behind it would be on, whatever the word says.
bool IsTruth(const std::string& value) {
  constexpr absl::string_view kWords[] = {"true", "false", "yes", "no", "on", "off", "1", "0"};
  return std::find(std::begin(kWords), std::end(kWords), absl::AsciiStrToLower(value)) !=
         std::end(kWords);
}

bool IsRead(absl::string_view name) { return FindIn(kRead, name) != nullptr; }

std::vector<absl::string_view> MakeKnownNames() {
  std::vector<absl::string_view> known;
  for (const ReadOption& r : kRead) known.push_back(r.name);
  for (const Without& w : kWithout) known.push_back(w.name);
  for (const Refused& r : kRefused) known.push_back(r.name);
  for (const absl::string_view passed : PassedOver()) known.push_back(passed);
  return known;
}

std::string Unknown(absl::string_view name, absl::string_view value, bool asks) {
  static const auto* known = new std::vector<absl::string_view>(MakeKnownNames());
  return absl::StrCat("--", name, value.empty() ? "" : " ", value, ": unknown",
                      asks ? DidYouMean(name, *known, "--") : "");
}

// Without its dashes; torchrun takes both, and so do options without influence.
std::string NameOf(absl::string_view option) {
  std::string name(option.substr(2));
  std::string dashed = absl::StrReplaceAll(name, {{"_", "-"}});
  const bool both = dashed == "nproc-per-node" || (IsPassedOver(dashed) && !IsPassedOver(name));
  return both ? dashed : name;
}

// `of_launcher`: whether the numbers of processes that a launcher is told count.
OptionRole RoleOfOption(absl::string_view option, bool of_launcher) {
  if (option.size() <= 2) return OptionRole::kUnknown;
  const std::string name = NameOf(option);
  const bool processes = name == "nnodes" || name == "nproc-per-node";
  if (IsPassedOver(name) || FindIn(kWithout, name) != nullptr || (processes && !of_launcher)) {
    return OptionRole::kWithoutInfluence;
  }
  const bool counts = IsRead(name) || FindIn(kRefused, name) != nullptr;
  return counts ? OptionRole::kCounts : OptionRole::kUnknown;
}

}  // namespace

absl::StatusOr<MegatronOptions> MegatronOptions::Parse(absl::string_view text,
                                                       absl::string_view what,
                                                       const ScriptChoice& choice,
                                                       bool of_launcher) {
  MegatronOptions options;
  options.what_ = std::string(what);
  const auto role_of = [&](absl::string_view name) { return RoleOfOption(name, of_launcher); };
  PIPELAB_ASSIGN_OR_RETURN(
      std::vector<ShellOption> all,
      IsYaml(text) ? ParseYamlOptions(text, what) : ReadShellOptions(text, what, choice, role_of));
  if (all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": no options; must be Megatron-LM's, such as --num-layers 32"));
  }
  for (ShellOption& o : all) {
    const std::string name = NameOf(o.name);
    // Behind torchrun's own options comes the program.
    const bool of_torchrun = name == "nnodes" || name == "nproc-per-node";
    if (of_torchrun && o.values.size() > 1) o.values.resize(1);
    options.given_[name] = std::move(o.values);
  }
  PIPELAB_RETURN_IF_ERROR(options.Sort());
  return options;
}

absl::Status MegatronOptions::Sort() {
  for (const auto& [name, values] : given_) {
    const std::string option = absl::StrCat("--", name), value = absl::StrJoin(values, " ");
    const Without* const without = FindIn(kWithout, name);
    const Refused* const refused = FindIn(kRefused, name);
    if (const ReadOption* read = FindIn(kRead, name); read != nullptr) {
      if (!read->is_switch || !IsTruth(value)) continue;
      return Error(name, "takes no value; nearest: ", option, ", or without it");
    }
    if (without != nullptr && (without->harmless.empty() || value != without->harmless)) {
      not_priced_.push_back(
          absl::StrCat(option, value.empty() ? "" : " ", value, ": ", without->how));
    } else if (refused != nullptr && (refused->harmless.empty() || value != refused->harmless)) {
      return Error(name, refused->why);
    } else if (without != nullptr || refused != nullptr || IsPassedOver(name)) {
      passed_over_.push_back(option);
    } else {
      unknown_.push_back(Unknown(name, value, unknown_.size() < kMostAskedFor));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> MegatronOptions::NotAsked() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : given_) {
    if (IsRead(name) && asked_.count(name) == 0) names.push_back(absl::StrCat("--", name));
  }
  return names;
}

absl::StatusOr<std::string> MegatronOptions::Text(absl::string_view name) const {
  if (!Has(name)) return Error(name, "missing");
  const auto found = given_.find(name);
  const std::vector<std::string>& values = found->second;
  if (values.size() == 1 && !absl::StartsWith(values[0], "$")) return values[0];
  if (values.empty()) return Error(name, "its value is missing");
  if (values.size() > 1) return Error(name, "takes one value");
  return Error(name, "a variable that the text does not set; put its value");
}

absl::StatusOr<int64_t> MegatronOptions::Integer(absl::string_view name, int64_t least,
                                                 int64_t most,
                                                 absl::optional<int64_t> if_absent) const {
  if (!Has(name) && if_absent.has_value()) return *if_absent;
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, Text(name));
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= least && value <= most) return value;
  return Error(name, "must be a whole number from ", least, " to ", most);
}

absl::StatusOr<double> MegatronOptions::Number(absl::string_view name, double least, double most,
                                               double if_absent) const {
  if (!Has(name)) return if_absent;
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, Text(name));
  double value = 0;
  if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return value;
  return Error(name, "must be a number from ", least, " to ", most);
}

absl::StatusOr<std::string> MegatronOptions::Word(absl::string_view name,
                                                  const std::vector<absl::string_view>& known,
                                                  absl::string_view if_absent) const {
  if (!Has(name)) return std::string(if_absent);
  PIPELAB_ASSIGN_OR_RETURN(std::string text, Text(name));
  if (std::find(known.begin(), known.end(), text) != known.end()) return text;
  return Error(name, "must be ", absl::StrJoin(known, ", "), DidYouMean(text, known));
}

}  // namespace pipelab
