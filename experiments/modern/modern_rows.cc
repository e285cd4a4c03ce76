#include "experiments/modern/modern_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;

// A row of a table, whose cells are read by title.
class Cells {
 public:
  Cells(const CsvTable& table, size_t row, absl::string_view what)
      : table_(table), row_(table.rows()[row]), what_(what), line_(static_cast<int>(row) + 2) {}

  const std::string& Text(absl::string_view column) const { return row_[table_.Column(column)]; }
  int line() const { return line_; }

  // What an empty cell leaves as it is.
  absl::Status Take(absl::string_view column, int64_t* value) const {
    const std::string& cell = Text(column);
    if (cell.empty()) return absl::OkStatus();
    if (absl::SimpleAtoi(cell, value) && *value >= 0 && *value <= kMost) return absl::OkStatus();
    return Error(column, "must be a whole number");
  }
  absl::Status Take(absl::string_view column, absl::optional<double>* value) const {
    const std::string& cell = Text(column);
    double number = 0;
    if (cell.empty()) return absl::OkStatus();
    if (!absl::SimpleAtod(cell, &number) || !(number > 0 && std::isfinite(number))) {
      return Error(column, "must be a number above 0");
    }
    *value = number;
    return absl::OkStatus();
  }

 private:
  absl::Status Error(absl::string_view column, absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what_, ": line ", line_, ": ", column, ": \"", Text(column), "\": ", why));
  }

  const CsvTable& table_;
  const std::vector<std::string>& row_;
  const absl::string_view what_;
  const int line_;
};

// "...; peak memory 24.24 GB; ..."
absl::optional<double> PeakIn(absl::string_view notes) {
  constexpr absl::string_view kPeak = "peak memory ";
  const size_t at = notes.find(kPeak);
  if (at == absl::string_view::npos) return absl::nullopt;
  notes.remove_prefix(at + kPeak.size());
  double gb = 0;
  if (!absl::SimpleAtod(notes.substr(0, notes.find(' ')), &gb) || !(gb > 0)) return absl::nullopt;
  return gb;
}

// "...; table prints no EP; the recipe has ep_size 8"; 0: no such words.
int64_t ExpertsOfRecipe(absl::string_view notes) {
  constexpr absl::string_view kRecipe = "the recipe has ep_size ";
  const size_t at = notes.find(kRecipe);
  if (at == absl::string_view::npos) return 0;
  notes.remove_prefix(at + kRecipe.size());
  int64_t experts = 0;
  const bool number =
      absl::SimpleAtoi(notes.substr(0, notes.find_first_not_of("0123456789")), &experts);
  return number && experts <= kMost ? experts : 0;
}

absl::StatusOr<ModernModel> ReadModel(const Cells& cells) {
  ModernModel m;
  m.id = cells.Text("id");
  m.attention = cells.Text("attention");
  m.tied = cells.Text("tie_embeddings") == "yes";
  for (const auto& [column, value] :
       {std::make_pair("layers", &m.layers), std::make_pair("hidden", &m.hidden),
        std::make_pair("heads", &m.heads), std::make_pair("kv_heads", &m.kv_heads),
        std::make_pair("head_dim", &m.head_size), std::make_pair("ffn", &m.feed_forward),
        std::make_pair("vocab", &m.vocabulary), std::make_pair("experts", &m.experts),
        std::make_pair("experts_per_token", &m.chosen_experts),
        std::make_pair("shared_experts", &m.shared_experts),
        std::make_pair("moe_ffn", &m.expert_width),
        std::make_pair("dense_layers", &m.dense_layers)}) {
    PIPELAB_RETURN_IF_ERROR(cells.Take(column, value));
  }
  return m;
}

absl::StatusOr<ModernRow> ReadRow(const Cells& cells) {
  ModernRow r;
  r.line = cells.line();
  r.id = cells.Text("id");
  r.group = r.id.substr(0, r.id.find('-'));
  r.tag = cells.Text("tag");
  r.gpu = cells.Text("gpu");
  r.precision = cells.Text("precision");
  r.model = cells.Text("model");
  r.system = cells.Text("system");
  r.recompute = cells.Text("recompute");
  r.sharding = cells.Text("fsdp");
  r.kernels = cells.Text("kernels");
  for (const auto& [column, value] :
       {std::make_pair("gpus", &r.gpus), std::make_pair("seq", &r.tokens),
        std::make_pair("gbs", &r.batch), std::make_pair("mbs", &r.micro_batch),
        std::make_pair("tp", &r.tensor), std::make_pair("pp", &r.pipeline),
        std::make_pair("cp", &r.context), std::make_pair("ep", &r.expert),
        std::make_pair("vp", &r.virtual_stages)}) {
    PIPELAB_RETURN_IF_ERROR(cells.Take(column, value));
  }
  PIPELAB_RETURN_IF_ERROR(cells.Take("tokens_per_s_per_gpu", &r.tokens_per_second));
  PIPELAB_RETURN_IF_ERROR(cells.Take("step_s", &r.step_seconds));
  PIPELAB_RETURN_IF_ERROR(cells.Take("tflops_per_gpu", &r.tflops));
  r.notes = cells.Text("notes");
  r.peak_gib = PeakIn(r.notes);
  const int64_t experts = cells.Text("ep").empty() ? ExpertsOfRecipe(r.notes) : 0;
  if (experts > 0) r.expert = experts;
  return r;
}

template <typename Read>
auto ReadAll(absl::string_view text, absl::string_view what,
             const std::vector<std::string>& columns, Read read)
    -> absl::StatusOr<std::vector<typename decltype(read(std::declval<Cells>()))::value_type>> {
  PIPELAB_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Parse(text, what, columns));
  std::vector<typename decltype(read(std::declval<Cells>()))::value_type> all;
  for (size_t i = 0; i < table.rows().size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(auto one, read(Cells(table, i, what)));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

absl::optional<double> ModernRow::Seconds() const {
  if (step_seconds.has_value()) return step_seconds;
  if (!tokens_per_second.has_value() || batch == 0 || tokens == 0 || gpus == 0) {
    return absl::nullopt;
  }
  return static_cast<double>(batch * tokens) / (*tokens_per_second * static_cast<double>(gpus));
}

bool ModernRow::trains_adapters() const { return absl::StrContains(id, "-lora-"); }

bool ModernRow::packs_samples() const {
  if (group != "mbridge" && group != "dgxc" && group != "nemo1") return false;
  return trains_adapters() || absl::StrContains(id, "-sft-");
}

const ModernModel* FindModernModel(const std::vector<ModernModel>& models, absl::string_view id) {
  const auto found =
      std::find_if(models.begin(), models.end(), [&](const ModernModel& m) { return m.id == id; });
  return found == models.end() ? nullptr : &*found;
}

absl::StatusOr<std::vector<ModernModel>> ParseModernModels(absl::string_view text,
                                                           absl::string_view what) {
  return ReadAll(text, what,
                 {"id", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab",
                  "experts", "experts_per_token", "shared_experts", "moe_ffn", "dense_layers",
                  "tie_embeddings", "attention"},
                 ReadModel);
}

absl::StatusOr<std::vector<ModernRow>> ParseModernRows(absl::string_view text,
                                                       absl::string_view what) {
  return ReadAll(text, what,
                 {"id",
                  "tag",
                  "system",
                  "gpu",
                  "precision",
                  "model",
                  "recompute",
                  "fsdp",
                  "gpus",
                  "seq",
                  "gbs",
                  "mbs",
                  "tp",
                  "pp",
                  "cp",
                  "ep",
                  "vp",
                  "kernels",
                  "tokens_per_s_per_gpu",
                  "tflops_per_gpu",
                  "step_s",
                  "notes"},
                 ReadRow);
}

}  // namespace pipelab
