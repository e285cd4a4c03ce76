#include "experiments/modern/release_recipes.h"

#include <map>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "experiments/modern/release_files.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kBridge[] = "megatron_bridge";
constexpr char kMain[] = "26.08";  // what the main branch's runs since kSince count as
constexpr absl::string_view kSince = "2026-07";

const std::vector<std::string>& Keys() {
  static const auto& keys = *new std::vector<std::string>{
      "release", "model", "gpu", "precision", "tp", "pp", "cp", "vp", "ep", "mbs"};
  return keys;
}

std::string KeyOf(const ModernRow& r) {
  return absl::StrJoin(
      std::make_tuple(ReleaseOf(r), r.model, r.gpu, r.precision, r.tensor, r.pipeline, r.context,
                      r.virtual_stages, r.expert, r.micro_batch),
      ",");
}

struct Recipe {
  std::string kernels, recompute;
};

absl::StatusOr<std::map<std::string, Recipe>> ReadRecipes() {
  std::map<std::string, Recipe> recipes;
  std::vector<std::string> columns = Keys();
  columns.insert(columns.end(), {"kernels", "recompute"});
  for (const EmbeddedText& file : ReleaseFiles()) {
    if (file.name != kBridge) continue;
    PIPELAB_ASSIGN_OR_RETURN(const CsvTable table,
                             CsvTable::Parse(file.text, absl::StrCat(file.name, ".csv"), columns));
    for (const std::vector<std::string>& row : table.rows()) {
      std::vector<std::string> key;
      for (const std::string& column : Keys()) key.push_back(row[table.Column(column)]);
      recipes[absl::StrJoin(key, ",")] = {row[table.Column("kernels")],
                                          row[table.Column("recompute")]};
    }
  }
  return recipes;
}

}  // namespace

std::string ReleaseOf(const ModernRow& row) {
  if (row.group != "mbridge") return "";
  absl::string_view system = row.system;
  const size_t container = system.find("container ");
  if (container != absl::string_view::npos) {
    system.remove_prefix(container + 10);
    return std::string(system.substr(0, system.find(' ')));
  }
  const size_t date = system.rfind(' ');
  const bool dated = date != absl::string_view::npos && absl::StrContains(system, "@");
  return dated && system.substr(date + 1) >= kSince &&
                 absl::StartsWith(system.substr(date + 1), "20")
             ? kMain
             : "";
}

absl::Status TakeReleases(std::vector<ModernRow>* rows) {
  PIPELAB_ASSIGN_OR_RETURN(const auto recipes, ReadRecipes());
  for (ModernRow& row : *rows) {
    const bool recipe_of_release =
        absl::StrContains(row.id, "-pretrain-") || absl::StrContains(row.id, "-card-");
    if (!recipe_of_release) continue;
    const auto recipe = recipes.find(KeyOf(row));
    if (recipe == recipes.end()) continue;
    row.kernels = recipe->second.kernels;
    row.recompute = recipe->second.recompute;
  }
  return absl::OkStatus();
}

}  // namespace pipelab
