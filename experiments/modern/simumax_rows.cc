#include "experiments/modern/simumax_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "experiments/report/median.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// The bars, which were set before these rows were first predicted.
constexpr double kTime = 0.13, kMemory = 0.02, kWorstMemory = 0.05;
constexpr int64_t kDefaultTokens = 4096, kMostNumber = 4096, kMostTokens = int64_t{1} << 24;

// "tp" of {"l4", "tp8", ...}: 8. 1 where no word has it.
int64_t NumberOf(const std::vector<std::string>& words, absl::string_view key) {
  for (absl::string_view word : words) {
    int64_t number = 0;
    if (absl::ConsumePrefix(&word, key) && absl::SimpleAtoi(word, &number)) return number;
  }
  return 1;
}

constexpr std::pair<absl::string_view, absl::string_view> kModels[] = {
    {"llama3_70b", "llama3-70b"}, {"llama3_405b", "llama3.1-405b"}};

absl::StatusOr<ModernModel> ModelOf(const std::string& name, int64_t layers,
                                    const std::vector<ModernModel>& models) {
  for (const auto& [prefix, id] : kModels) {
    if (!absl::StartsWith(name, prefix)) continue;
    const ModernModel* whole = FindModernModel(models, id);
    if (whole == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no model ", id));
    ModernModel model = *whole;
    model.id = absl::StrCat(id, " of ", layers, " layers");
    model.layers = layers;
    return model;
  }
  return absl::InvalidArgumentError("must begin with llama3_70b, llama3_405b or deepseek");
}

// Two of a range of efficiencies, at its ends.
absl::Status TakeRange(const ModernStep& step, SimumaxStep* taken) {
  const EfficiencyRange range = EfficiencyRangeOf(step.cluster);
  for (const auto& [times, seconds] :
       {std::make_pair(range.best, &taken->least), std::make_pair(range.worst, &taken->most)}) {
    ModernStep other = step;
    other.cluster = WithEfficiency(step.cluster, times);
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, Predict(other));
    *seconds = ToSeconds(p.step_time);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimumaxRows> ParseSimumaxRows(absl::string_view text, absl::string_view what,
                                             const std::vector<ModernModel>& models) {
  PIPELAB_ASSIGN_OR_RETURN(
      const CsvTable table,
      CsvTable::Parse(text, what, {"case", "measured_ms", "measured_peak_gib"}));
  SimumaxRows parsed;
  int line = 1;
  for (const std::vector<std::string>& cells : table.rows()) {
    ++line;
    const std::string& name = cells[table.Column("case")];
    const auto error = [&](absl::string_view column, absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": line ", line, ": ", column, ": \"",
                                                     cells[table.Column(column)], "\": ", why));
    };
    if (absl::StartsWith(name, "deepseek")) {
      ++parsed.with_experts;
      continue;
    }
    const std::vector<std::string> words = absl::StrSplit(name, '_');
    for (const char* key : {"l", "tp", "pp", "cp", "dp", "mbc", "seq"}) {
      const int64_t number = NumberOf(words, key);
      const int64_t most = absl::string_view(key) == "seq" ? kMostTokens : kMostNumber;
      if (number < 1 || number > most) {
        return error("case", absl::StrCat(key, " must be from 1 to ", most));
      }
    }
    absl::StatusOr<ModernModel> model = ModelOf(name, NumberOf(words, "l"), models);
    if (!model.ok()) return error("case", model.status().message());
    double ms = 0, gib = 0;
    if (!absl::SimpleAtod(cells[table.Column("measured_ms")], &ms) || !(ms > 0)) {
      return error("measured_ms", "must be a number above 0");
    }
    if (!absl::SimpleAtod(cells[table.Column("measured_peak_gib")], &gib) || !(gib > 0)) {
      return error("measured_peak_gib", "must be a number above 0");
    }
    ModernRow row;
    row.line = line;
    row.id = name;
    row.group = "mcore";
    row.tag = "read";
    row.system = "Megatron-Core";
    row.gpu = "B200";
    row.precision = "BF16";
    row.model = model->id;
    row.recompute = "none";
    row.sharding = "zero1";
    row.tensor = NumberOf(words, "tp");
    row.pipeline = NumberOf(words, "pp");
    row.context = NumberOf(words, "cp");
    const int64_t copies = NumberOf(words, "dp"), tokens = NumberOf(words, "seq");
    row.gpus = row.tensor * row.pipeline * row.context * copies;
    row.tokens = tokens > 1 ? tokens : kDefaultTokens;
    row.micro_batch = 1;
    row.batch = NumberOf(words, "mbc") * copies;
    row.step_seconds = ms / 1e3;
    row.peak_gib = gib;
    if (FindModernModel(parsed.models, model->id) == nullptr) {
      parsed.models.push_back(*std::move(model));
    }
    parsed.rows.push_back(std::move(row));
  }
  return parsed;
}

absl::StatusOr<std::vector<SimumaxStep>> PredictSimumax(const SimumaxRows& rows,
                                                        const ModernMachines& machines) {
  std::vector<SimumaxStep> steps;
  for (const ModernRow& row : rows.rows) {
    PIPELAB_ASSIGN_OR_RETURN(const ModernStep step, StepOfRow(row, rows.models, machines));
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, Predict(step));
    SimumaxStep& s = steps.emplace_back();
    s.row = row;
    s.seconds = ToSeconds(p.step_time);
    s.gib = static_cast<double>(p.largest_device.value()) / (1 << 30);
    PIPELAB_RETURN_IF_ERROR(TakeRange(step, &s));
  }
  return steps;
}

Table SimumaxTable(const std::vector<SimumaxStep>& steps) {
  Table t("simumax", "SimuMax's steps on 8 B200s in bf16: time and peak memory");
  t.AddKey("row");
  t.AddColumn({"measured", "measured", "", "s", Origin::kPublished, 3});
  t.AddColumn({"predicted", "predicted", "", "s", Origin::kSimulated, 3});
  t.AddColumn({"error", "predicted against measured", "error", "%", Origin::kComputed, 1});
  t.AddColumn(
      {"in_range", "measured within the predicted range", "in range", "", Origin::kComputed, 0});
  t.AddColumn({"memory_measured", "measured peak", "peak", "GiB", Origin::kPublished, 1});
  t.AddColumn({"memory", "predicted", "", "GiB", Origin::kSimulated, 1});
  t.AddColumn({"memory_error", "error", "", "%", Origin::kComputed, 1});
  for (const SimumaxStep& s : steps) {
    t.AddRow({Label(s.row.id), Published(*s.row.Seconds(), "read"), Simulated(s.seconds),
              Computed(100 * s.error()), Computed(s.in_range() ? 1 : 0),
              Published(*s.row.peak_gib, "read"), Simulated(s.gib),
              Computed(100 * s.memory_error())});
  }
  return t;
}

std::vector<Claim> SimumaxClaims(const std::vector<SimumaxStep>& steps) {
  Claim time = OwnClaim("simumax.time", "SimuMax's dense steps on 8 B200s, the median error");
  Claim memory = OwnClaim("simumax.memory", "peak memory of these steps, the mean error");
  time.unit = memory.unit = "%";
  if (steps.empty()) {
    for (Claim* c : {&time, &memory}) NotMade(c, "no row could be predicted");
    return {time, memory};
  }
  std::vector<double> errors;
  double sum = 0, worst = 0;
  int64_t in_range = 0;
  for (const SimumaxStep& s : steps) {
    errors.push_back(std::abs(s.error()));
    sum += std::abs(s.memory_error());
    worst = std::max(worst, std::abs(s.memory_error()));
    in_range += s.in_range();
  }
  const double median = MedianOf(std::move(errors));
  const double mean = sum / static_cast<double>(steps.size());
  Found(&time, Origin::kSimulated, 100 * median,
        absl::StrFormat("%d of %d within the predicted range", in_range, steps.size()));
  MetIf(&time, median <= kTime, absl::StrFormat("median at most %.0f %%", 100 * kTime),
        "products of this machine are 1.4 times slower than those of the shared tables");
  Found(&memory, Origin::kSimulated, 100 * mean, absl::StrFormat("worst %.1f %%", 100 * worst));
  MetIf(&memory, mean <= kMemory && worst <= kWorstMemory,
        absl::StrFormat("mean at most %.0f %%, worst %.0f %%", 100 * kMemory, 100 * kWorstMemory),
        "the head's gradient, of 2 bytes a number before it is added to its sum, is not priced");
  return {time, memory};
}

}  // namespace pipelab
