#include "pipelines/cluster/kernel_rates_json.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pipelines/cluster/rate_files.h"
#include "pipelines/cluster/shared_rates.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr double kTera = 1e12;

// The names of the three sizes.
std::array<const char*, 3> AxesOf(OperationKind kind) {
  if (kind == OperationKind::kAttention) return {"tokens", "heads", "head_size"};
  return {"m", "n", "k"};
}

absl::StatusOr<std::vector<double>> ReadNumbers(const JsonObject& object, absl::string_view key) {
  PIPELAB_ASSIGN_OR_RETURN(const json* list, object.List(key));
  std::vector<double> numbers;
  for (const json& n : *list) {
    if (!n.is_number()) return object.Error(key, "must be numbers");
    numbers.push_back(n.get<double>());
  }
  return numbers;
}

absl::StatusOr<Sourced<RateGrid>> ReadTable(const JsonObject& parent, absl::string_view key,
                                            OperationKind kind) {
  const std::array<const char*, 3> names = AxesOf(kind);
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, parent.Object(key));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({names[0], names[1], names[2], "tflops", "source"}));
  std::array<std::vector<double>, 3> axes;
  for (int a = 0; a < 3; ++a) {
    PIPELAB_ASSIGN_OR_RETURN(axes[a], ReadNumbers(object, names[a]));
  }
  PIPELAB_ASSIGN_OR_RETURN(std::vector<double> rates, ReadNumbers(object, "tflops"));
  for (double& rate : rates) rate *= kTera;
  absl::StatusOr<RateGrid> table = RateGrid::Make(std::move(axes), std::move(rates));
  if (!table.ok()) return object.Error("tflops", table.status().message());
  PIPELAB_ASSIGN_OR_RETURN(std::string source, object.String("source"));
  return Sourced<RateGrid>{*std::move(table), std::move(source)};
}

// Above 0 and at most 1.
absl::Status ReadShare(const JsonObject& parent, absl::string_view key,
                       absl::optional<Sourced<double>>* share) {
  if (!parent.Has(key)) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, parent.Object(key));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"value", "source"}));
  share->emplace();
  PIPELAB_ASSIGN_OR_RETURN((*share)->value, object.Number("value"));
  PIPELAB_ASSIGN_OR_RETURN((*share)->source, object.String("source"));
  const double value = (*share)->value;
  if (value > 0 && value <= 1) return absl::OkStatus();
  return object.Error("value", "must be above 0 and at most 1, not ", value);
}

absl::StatusOr<std::shared_ptr<const KernelRates>> ReadObject(const JsonObject& object,
                                                              absl::string_view name) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"sustained", "attention_backward", "matmul", "attention"}));
  auto rates = std::make_shared<KernelRates>();
  rates->name = std::string(name);
  PIPELAB_RETURN_IF_ERROR(ReadShare(object, "sustained", &rates->sustained));
  PIPELAB_RETURN_IF_ERROR(ReadShare(object, "attention_backward", &rates->attention_backward));
  for (const OperationKind kind : {OperationKind::kMatmul, OperationKind::kAttention}) {
    const char* key = OperationKindName(kind);
    if (!object.Has(key)) continue;
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject types, object.Object(key));
    for (const std::string& type_name : types.Keys()) {
      const absl::StatusOr<NumberType> type = FindNumberType(type_name);
      if (!type.ok()) return types.Error(type_name, type.status().message());
      PIPELAB_ASSIGN_OR_RETURN(Sourced<RateGrid> table, ReadTable(types, type_name, kind));
      rates->tables.emplace(std::make_pair(kind, *type), std::move(table));
    }
  }
  return rates;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const KernelRates>> ReadKernelRates(const JsonObject& device,
                                                                   absl::string_view key) {
  if (!device.HasString(key)) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, device.Object(key));
    return ReadObject(object, "");
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string name, device.String(key));
  std::vector<absl::string_view> names;
  for (const EmbeddedText& file : RateFiles()) {
    names.push_back(file.name);
    if (file.name != name) continue;
    PIPELAB_ASSIGN_OR_RETURN(json root, ParseJson(file.text, name));
    PIPELAB_ASSIGN_OR_RETURN(const json shared, ParseJson(SharedRates().front().text, name));
    root.insert(shared.begin(), shared.end());
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Root(root, name));
    return ReadObject(object, name);
  }
  return device.Error(key, "\"", name, "\" is unknown", NearestOrAll(name, names));
}

json KernelRatesToJson(const KernelRates& rates) {
  if (!rates.name.empty()) return rates.name;
  json object = json::object();
  const auto write = [&object](const char* key, const absl::optional<Sourced<double>>& share) {
    if (share.has_value()) object[key] = {{"value", share->value}, {"source", share->source}};
  };
  write("sustained", rates.sustained);
  write("attention_backward", rates.attention_backward);
  for (const auto& [key, sourced] : rates.tables) {
    json& table = object[OperationKindName(key.first)][NumberTypeName(key.second)];
    const std::array<const char*, 3> names = AxesOf(key.first);
    for (int a = 0; a < 3; ++a) table[names[a]] = sourced.value.axes()[a];
    for (const double rate : sourced.value.rates()) table["tflops"].push_back(rate / kTera);
    table["source"] = sourced.source;
  }
  return object;
}

}  // namespace pipelab
