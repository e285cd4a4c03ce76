#include "experiments/published/gpipe.h"

#include <utility>

#include "experiments/published/gpipe_file.h"
#include "experiments/published/read_all.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMostDevices = 1 << 20, kMostLayers = 1 << 20;

absl::StatusOr<PublishedLargestModel> ReadLargestModel(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"family", "column", "devices", "recompute", "layers", "width", "parameters",
                        "counted", "parameter_memory", "activation_memory", "tag", "note"}));
  PublishedLargestModel m;
  PIPELAB_ASSIGN_OR_RETURN(m.family, object.String("family"));
  PIPELAB_ASSIGN_OR_RETURN(m.column, object.String("column"));
  PIPELAB_ASSIGN_OR_RETURN(m.devices, object.Integer("devices", 1, kMostDevices));
  PIPELAB_ASSIGN_OR_RETURN(m.recompute, object.Bool("recompute"));
  PIPELAB_ASSIGN_OR_RETURN(m.layers, object.Integer("layers", 1, kMostLayers));
  PIPELAB_ASSIGN_OR_RETURN(m.width, object.Integer("width", 1, kMostLayers));
  PIPELAB_ASSIGN_OR_RETURN(m.parameters, object.Number("parameters"));
  m.counted = m.parameters;
  if (object.Has("counted")) {
    PIPELAB_ASSIGN_OR_RETURN(m.counted, object.Number("counted"));
  }
  PIPELAB_ASSIGN_OR_RETURN(m.parameter_memory, object.Number("parameter_memory"));
  PIPELAB_ASSIGN_OR_RETURN(m.activation_memory, object.Number("activation_memory"));
  PIPELAB_ASSIGN_OR_RETURN(m.tag, object.String("tag"));
  if (object.Has("note")) {
    PIPELAB_ASSIGN_OR_RETURN(m.note, object.String("note"));
  }
  return m;
}

absl::StatusOr<PublishedThroughput::Row> ReadThroughputRow(const JsonObject& object,
                                                           size_t devices) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"micro_batches", "normalised"}));
  PublishedThroughput::Row row;
  PIPELAB_ASSIGN_OR_RETURN(row.micro_batches, object.Integer("micro_batches", 1, kMostDevices));
  PIPELAB_ASSIGN_OR_RETURN(const json* values, object.List("normalised"));
  for (const json& value : *values) {
    if (!value.is_number()) return object.Error("normalised", "must be numbers");
    row.normalised.push_back(value.get<double>());
  }
  if (row.normalised.size() != devices) {
    return object.Error("normalised", "must have a number for each of the ", devices, " devices");
  }
  return row;
}

absl::StatusOr<PublishedThroughput> ReadThroughput(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys(
      {"family", "table", "cluster", "layers", "width", "tag", "devices", "rows"}));
  PublishedThroughput t;
  PIPELAB_ASSIGN_OR_RETURN(t.family, object.String("family"));
  PIPELAB_ASSIGN_OR_RETURN(t.table, object.String("table"));
  PIPELAB_ASSIGN_OR_RETURN(t.cluster, object.String("cluster"));
  PIPELAB_ASSIGN_OR_RETURN(t.layers, object.Integer("layers", 1, kMostLayers));
  PIPELAB_ASSIGN_OR_RETURN(t.width, object.Integer("width", 1, kMostLayers));
  PIPELAB_ASSIGN_OR_RETURN(t.tag, object.String("tag"));
  PIPELAB_ASSIGN_OR_RETURN(const json* devices, object.List("devices"));
  for (const json& n : *devices) {
    if (!n.is_number_integer()) return object.Error("devices", "must be whole numbers");
    t.devices.push_back(n.get<int64_t>());
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> rows, object.Objects("rows"));
  for (const JsonObject& row : rows) {
    PIPELAB_ASSIGN_OR_RETURN(PublishedThroughput::Row read,
                             ReadThroughputRow(row, t.devices.size()));
    t.rows.push_back(std::move(read));
  }
  return t;
}

absl::StatusOr<PublishedOverheads> ReadOverheads(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"compute", "recompute", "bubble", "imbalance", "set_up", "update", "tag"}));
  PublishedOverheads o;
  PIPELAB_ASSIGN_OR_RETURN(o.compute, object.Number("compute"));
  PIPELAB_ASSIGN_OR_RETURN(o.recompute, object.Number("recompute"));
  PIPELAB_ASSIGN_OR_RETURN(o.bubble, object.Number("bubble"));
  PIPELAB_ASSIGN_OR_RETURN(o.imbalance, object.Number("imbalance"));
  PIPELAB_ASSIGN_OR_RETURN(o.set_up, object.Number("set_up"));
  PIPELAB_ASSIGN_OR_RETURN(o.update, object.Number("update"));
  PIPELAB_ASSIGN_OR_RETURN(o.tag, object.String("tag"));
  return o;
}

}  // namespace

absl::StatusOr<GpipePaper> ParseGpipePaper(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "largest_models", "throughput", "overheads"}));
  GpipePaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(paper.largest_models, ReadAll(file, "largest_models", ReadLargestModel));
  PIPELAB_ASSIGN_OR_RETURN(paper.throughput, ReadAll(file, "throughput", ReadThroughput));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject overheads, file.Object("overheads"));
  PIPELAB_ASSIGN_OR_RETURN(paper.overheads, ReadOverheads(overheads));
  return paper;
}

absl::StatusOr<GpipePaper> PublishedGpipe() {
  return ParseGpipePaper(GpipeFile()[0].text, "experiments/published/gpipe.json");
}

}  // namespace pipelab
