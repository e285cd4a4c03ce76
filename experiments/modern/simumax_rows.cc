#include "experiments/modern/simumax_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/recipes/padded_vocabulary.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The bars, which were set before these rows were first predicted.
constexpr double kTime = 0.13, kMemory = 0.02, kWorstMemory = 0.05, kOwnTable = 0.06;
constexpr int64_t kDefaultTokens = 4096, kMostNumber = 4096, kMostTokens = int64_t{1} << 24;

// "tp" of {"l4", "tp8", ...}: 8. 1 where no word has it.
int64_t NumberOf(const std::vector<std::string>& words, absl::string_view key) {
  for (absl::string_view word : words) {
    int64_t number = 0;
    if (absl::ConsumePrefix(&word, key) && absl::SimpleAtoi(word, &number)) return number;
  }
  return 1;
}

// SimuMax's 405B has 16 heads of keys and values (configs/models, run_pretrain_llama3.sh).
constexpr std::pair<absl::string_view, absl::string_view> kModels[] = {
    {"llama3_70b", "llama3-70b"}, {"llama3_405b", "llama3.1-405b-dgxc"}};

absl::StatusOr<ModernModel> ModelOf(const std::string& name, int64_t layers, int64_t tensor,
                                    const std::vector<ModernModel>& models) {
  for (const auto& [prefix, id] : kModels) {
    if (!absl::StartsWith(name, prefix)) continue;
    const ModernModel* whole = FindModernModel(models, id);
    if (whole == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no model ", id));
    ModernModel model = *whole;
    model.id = absl::StrCat(id, " of ", layers, " layers, T=", tensor);
    model.layers = layers;
    model.vocabulary = PaddedVocabulary(model.vocabulary, tensor);
    return model;
  }
  return absl::InvalidArgumentError("must begin with llama3_70b, llama3_405b or deepseek");
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
    absl::StatusOr<ModernModel> model =
        ModelOf(name, NumberOf(words, "l"), NumberOf(words, "tp"), models);
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
    row.exchanges_heads = row.context > 1;
    row.loss_in_place = std::find(words.begin(), words.end(), "cef") != words.end();
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

absl::StatusOr<std::vector<RowStep>> PredictSimumax(const SimumaxRows& rows,
                                                    const ModernMachines& machines) {
  std::vector<RowStep> steps;
  for (const ModernRow& row : rows.rows) {
    PIPELAB_ASSIGN_OR_RETURN(ModernStep step, StepOfRow(row, rows.models, machines));
    const MachineRange machine = RangeOf(step.cluster);
    PIPELAB_ASSIGN_OR_RETURN(
        RowStep s, PredictRow(row.id, *row.Seconds(), machine, [&](const ClusterSpec& on) {
          step.cluster = on;
          return Predict(step);
        }));
    s.measured_gib = row.peak_gib;
    steps.push_back(std::move(s));
  }
  return steps;
}

Table SimumaxTable(const std::vector<RowStep>& steps) {
  return RowTable("simumax", "SimuMax's steps on 8 B200s in bf16: time and peak memory", steps);
}

std::vector<Claim> SimumaxClaims(const std::vector<RowStep>& steps) {
  const Claim time = MedianClaim(
      OwnClaim("simumax.time", "SimuMax's dense steps on 8 B200s, the median error"), steps, kTime,
      "products of this machine are 1.4 times slower than those of the shared tables");
  Claim memory = OwnClaim("simumax.memory", "peak memory of these steps, the mean error");
  memory.unit = "%";
  if (steps.empty()) {
    NotMade(&memory, time.reason);
    return {time, memory};
  }
  double sum = 0, worst = 0;
  for (const RowStep& s : steps) {
    sum += std::abs(s.memory_error());
    worst = std::max(worst, std::abs(s.memory_error()));
  }
  const double mean = sum / static_cast<double>(steps.size());
  Found(&memory, Origin::kSimulated, 100 * mean, absl::StrFormat("worst %.1f %%", 100 * worst));
  MetIf(&memory, mean <= kMemory && worst <= kWorstMemory,
        absl::StrFormat("mean at most %.0f %%, worst %.0f %%", 100 * kMemory, 100 * kWorstMemory),
        "what Transformer Engine and Megatron-LM hold beyond the tensors of their code is not "
        "priced");
  return {time, memory};
}

Table SimumaxOwnTable(const std::vector<RowStep>& steps) {
  return RowTable("simumax_own_table",
                  "SimuMax's steps with its own table of that machine's kernels", steps);
}

Claim SimumaxOwnTableClaim(const std::vector<RowStep>& steps) {
  return MedianClaim(
      OwnClaim("simumax.own_table",
               "SimuMax's dense steps with its own kernel table, the median error"),
      steps, kOwnTable,
      "a further micro-batch took 2.5 to 9.5 % longer than its kernels and collectives");
}

}  // namespace pipelab
