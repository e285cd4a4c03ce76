#include "experiments/commands/step_figures.h"

#include <algorithm>
#include <cmath>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/report/table.h"
#include "models/specs/gpt_embedding_spec.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(
    std::string, tokens, "",
    "tokens of a whole training, such as 15T or 300B: adds the days and the hours of devices that "
    "it takes");

namespace pipelab {
namespace {

constexpr double kBillion = 1e9;

absl::StatusOr<double> TokensOfTraining() {
  const std::string text = absl::GetFlag(FLAGS_tokens);
  if (text.empty()) return 0.0;
  absl::string_view number = text;
  double unit = 1;
  for (const auto& [letter, size] : {std::make_pair('M', 1e6), {'B', 1e9}, {'T', 1e12}}) {
    if (number.back() != letter) continue;
    number.remove_suffix(1);
    unit = size;
    break;
  }
  double value = 0;
  if (absl::SimpleAtod(number, &value) && value > 0 && value * unit <= 1e18) return value * unit;
  return absl::InvalidArgumentError(
      absl::StrCat("--tokens=", text, ": must be a number of tokens, such as 15T, 300B or 500M"));
}

}  // namespace

absl::StatusOr<StepFigures> StepFigures::OfFlags(const StepModel& model) {
  const ModelGraph& graph = model.model->graph;
  StepFigures figures;
  figures.model_ = graph.name;
  figures.parameters_ = static_cast<double>(graph.num_parameters());
  figures.peak_ = model.cluster->device.peaks.at(model.type).value.value();
  for (const LayerSpec& layer : graph.layers) {
    if (layer.kind != kGptEmbedding) continue;
    figures.tokens_ = TokensOf(layer);
    break;
  }
  PIPELAB_ASSIGN_OR_RETURN(figures.training_, TokensOfTraining());
  if (figures.training_ > 0 && figures.tokens_ == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--tokens=", absl::GetFlag(FLAGS_tokens), ": ",
                                                   graph.name, " is no language model"));
  }
  return figures;
}

std::string StepFigures::Headline() const {
  const std::string tokens = tokens_ == 0 ? "" : absl::StrCat(", ", tokens_, " tokens a sample");
  return absl::StrCat(model_, ": ", FourDigits(parameters_ / kBillion), " B parameters", tokens);
}

std::string StepFigures::Titles() const {
  std::string text =
      absl::StrFormat("%12s  %7s  ", tokens_ == 0 ? "samples/s" : "tokens/s/GPU", "MFU [%]");
  if (training_ > 0) absl::StrAppendFormat(&text, "%6s  %9s  ", "days", "GPU-hours");
  return text;
}

std::string StepFigures::Columns(const StepSpeed& speed) const {
  std::string text = absl::StrFormat(
      "%12s  %7.1f  ", FourDigits(tokens_ == 0 ? speed.samples_per_second : TokensPerSecond(speed)),
      ToPercent(Mfu(speed)));
  if (training_ > 0) {
    absl::StrAppendFormat(&text, "%6s  %9s  ", FourDigits(Days(speed)),
                          FourDigits(Days(speed) * 24 * static_cast<double>(speed.devices)));
  }
  return text;
}

std::string StepFigures::TrainingText(const StepSpeed& speed) const {
  if (training_ == 0) return "";
  return absl::StrFormat("; %s days, %s GPU-hours", FourDigits(Days(speed)),
                         FourDigits(Days(speed) * 24 * static_cast<double>(speed.devices)));
}

nlohmann::json StepFigures::Json(const StepSpeed& speed) const {
  nlohmann::json all = {{"mfu", Mfu(speed)}};
  if (tokens_ > 0) all["tokens_per_second_per_device"] = TokensPerSecond(speed);
  if (training_ > 0) {
    all["training_days"] = Days(speed);
    all["training_device_hours"] = Days(speed) * 24 * static_cast<double>(speed.devices);
  }
  return all;
}

double StepFigures::TokensPerSecond(const StepSpeed& speed) const {
  return speed.samples_per_second * static_cast<double>(tokens_) /
         static_cast<double>(speed.devices);
}

double StepFigures::Days(const StepSpeed& speed) const {
  constexpr double kSecondsOfADay = 86400;
  return training_ / (speed.samples_per_second * static_cast<double>(tokens_)) / kSecondsOfADay;
}

std::string FourDigits(double value) {
  const double size = std::fabs(value);
  const int decimals = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
  return absl::StrFormat("%.*f", decimals, value);
}

std::string Wrapped(const std::string& before, absl::string_view text) {
  const std::string blanks(before.size(), ' ');
  std::string lines, line = before;
  while (!text.empty()) {
    const size_t end = text.find_first_of(",+ ");
    const absl::string_view word = text.substr(0, end == absl::string_view::npos ? end : end + 1);
    if (line.size() + word.size() > kReportColumns && line.size() > before.size()) {
      absl::StrAppend(&lines, absl::StripTrailingAsciiWhitespace(line), "\n");
      line = blanks;
    }
    if (line.size() > before.size() || word != " " || lines.empty()) absl::StrAppend(&line, word);
    text.remove_prefix(word.size());
  }
  return absl::StrCat(lines, line, "\n");
}

std::string WrappedLines(absl::string_view text) {
  std::string all;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const absl::string_view line = text.substr(0, end);
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    absl::StrAppend(&all,
                    line.empty() ? "\n" : Wrapped(std::string(indent, ' '), line.substr(indent)));
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
  }
  return all;
}

std::string CollectivesWithinLayers(const StepConfig& c) {
  std::vector<std::string> whose;
  if (c.tensor > 1) whose.emplace_back("tensor parallelism");
  if (c.context > 1) whose.emplace_back("context parallelism");
  if (c.experts > 1) whose.emplace_back("experts' exchanges");
  return whose.empty() ? "collectives within layers" : absl::StrJoin(whose, ", ");
}

std::vector<std::pair<std::string, double>> PartsOf(const StepConfig& c, const StepBreakdown& b) {
  return {{"compute", b.compute},
          {"recompute", b.recompute},
          {CollectivesWithinLayers(c), b.tensor},
          {"optimizer step", b.step},
          {"idle: fill, drain, imbalance", std::max(0.0, b.idle)},
          {"pipeline messages, not hidden", b.pipeline},
          {"data-parallel collectives, not hidden", b.data}};
}

}  // namespace pipelab
