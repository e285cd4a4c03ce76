#include "pipelines/cluster/kernel_rates_json.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pipelines/cluster/rate_files.h"
#include "pipelines/cluster/shape_rates.h"
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

absl::StatusOr<Sourced<RateGrid>> ReadTable(const JsonObject& object, OperationKind kind) {
  const std::array<const char*, 3> names = AxesOf(kind);
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

// A row is [m, n, k, Tflop/s], and a fifth number is how many groups a grouped product has.
absl::StatusOr<ShapeRate> ReadShape(const JsonObject& passes, absl::string_view pass,
                                    const json& row) {
  const auto is_size = [](const json& n) { return n.is_number_integer(); };
  const bool grouped = row.is_array() && row.size() == 5;
  if (!row.is_array() || (row.size() != 4 && !grouped) ||
      !std::all_of(row.begin(), row.begin() + 3, is_size) || !row[3].is_number() ||
      (grouped && !is_size(row[4]))) {
    return passes.Error(pass,
                        "must be rows of three sizes and Tflop/s, and the groups where there "
                        "are any, such as [8192, 6144, 4096, 700]");
  }
  ShapeRate shape;
  PIPELAB_ASSIGN_OR_RETURN(shape.pass, FindKernelPass(pass));
  shape.m = row[0].get<int64_t>();
  shape.n = row[1].get<int64_t>();
  shape.k = row[2].get<int64_t>();
  shape.tflops = row[3].get<double>();
  if (grouped) shape.groups = row[4].get<int64_t>();
  return shape;
}

absl::StatusOr<Sourced<ShapeRates>> ReadShapes(const JsonObject& object, OperationKind kind) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"shapes", "source"}));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject passes, object.Object("shapes"));
  std::vector<ShapeRate> shapes;
  for (const std::string& pass : passes.Keys()) {
    const absl::Status known = FindKernelPass(pass).status();
    if (!known.ok()) return passes.Error(pass, known.message());
    PIPELAB_ASSIGN_OR_RETURN(const json* rows, passes.List(pass));
    for (const json& row : *rows) {
      PIPELAB_ASSIGN_OR_RETURN(shapes.emplace_back(), ReadShape(passes, pass, row));
    }
  }
  absl::StatusOr<ShapeRates> made = ShapeRates::Make(kind, std::move(shapes));
  if (!made.ok()) return object.Error("shapes", made.status().message());
  PIPELAB_ASSIGN_OR_RETURN(std::string source, object.String("source"));
  return Sourced<ShapeRates>{*std::move(made), std::move(source)};
}

json ShapesToJson(const Sourced<ShapeRates>& sourced) {
  json passes = json::object();
  for (const ShapeRate& s : sourced.value.shapes()) {
    json row = {s.m, s.n, s.k, s.tflops};
    if (s.groups > 1) row.push_back(s.groups);
    passes[KernelPassName(s.pass)].push_back(std::move(row));
  }
  return {{"shapes", std::move(passes)}, {"source", sourced.source}};
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
      PIPELAB_ASSIGN_OR_RETURN(const JsonObject of_type, types.Object(type_name));
      if (of_type.Has("shapes")) {
        PIPELAB_ASSIGN_OR_RETURN(Sourced<ShapeRates> list, ReadShapes(of_type, kind));
        rates->shapes.emplace(std::make_pair(kind, *type), std::move(list));
        continue;
      }
      PIPELAB_ASSIGN_OR_RETURN(Sourced<RateGrid> table, ReadTable(of_type, kind));
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
  for (const auto& [key, sourced] : rates.shapes) {
    object[OperationKindName(key.first)][NumberTypeName(key.second)] = ShapesToJson(sourced);
  }
  return object;
}

}  // namespace pipelab
