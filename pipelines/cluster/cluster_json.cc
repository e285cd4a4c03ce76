#include "pipelines/cluster/cluster_json.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr char kOwnKernels[] = "pipelab";

// What no machine is below or above: outside of it a unit was mistyped, and times would be none or
// without end.
template <typename Q>
struct Range;
template <>
struct Range<Bytes> {
  static constexpr Bytes kLeast{int64_t{1} << 20}, kMost{int64_t{1} << 50};
  static constexpr const char* kText = "1 MiB to 1 PiB";
};
template <>
struct Range<BytesPerSecond> {
  static constexpr BytesPerSecond kLeast{1e6}, kMost{1e18};
  static constexpr const char* kText = "1 MB/s to 1 EB/s";
};
template <>
struct Range<FlopsPerSecond> {
  static constexpr FlopsPerSecond kLeast{1e6}, kMost{1e18};
  static constexpr const char* kText = "1 Mflop/s to 1 Eflop/s";
};
template <>
struct Range<Nanoseconds> {
  static constexpr Nanoseconds kLeast{0}, kMost{Milliseconds(1000)};
  static constexpr const char* kText = "0 s to 1 s";
};

// {"value": "25 GB/s", "source": "..."}
template <typename Q>
absl::StatusOr<Sourced<Q>> ReadQuantity(const JsonObject& parent, absl::string_view key) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, parent.Object(key));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"value", "source"}));
  Sourced<Q> sourced;
  PIPELAB_ASSIGN_OR_RETURN(sourced.value, object.Quantity<Q>("value"));
  if (sourced.value < Range<Q>::kLeast || sourced.value > Range<Q>::kMost) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, object.String("value"));
    return object.Error("value", "\"", text, "\": must be from ", Range<Q>::kText);
  }
  PIPELAB_ASSIGN_OR_RETURN(sourced.source, object.String("source"));
  return sourced;
}

// {"points": [["1 Mflop", 0.1], ...], "source": "..."}; Q is Flops or Bytes.
template <typename Q>
absl::StatusOr<Sourced<EfficiencyCurve>> ReadCurve(const JsonObject& parent,
                                                   absl::string_view key) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, parent.Object(key));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"points", "source"}));
  Sourced<EfficiencyCurve> curve;
  PIPELAB_ASSIGN_OR_RETURN(const json* points, object.List("points"));
  for (size_t i = 0; i < points->size(); ++i) {
    const json& point = (*points)[i];
    const std::string place = absl::StrCat("points[", i, "]");
    if (!point.is_array() || point.size() != 2 || !point[0].is_string() || !point[1].is_number()) {
      return object.Error(place, "must be a size and a share of the peak, such as [\"1 M",
                          std::is_same<Q, Bytes>::value ? "B" : "flop", "\", 0.5]");
    }
    const absl::StatusOr<Q> size = ParseQuantity<Q>(point[0].get<std::string>());
    if (!size.ok()) return object.Error(place, size.status().message());
    curve.value.points.push_back({static_cast<double>(size->value()), point[1].get<double>()});
  }
  PIPELAB_ASSIGN_OR_RETURN(curve.source, object.String("source"));
  return curve;
}

absl::StatusOr<Sourced<ProductTile>> ReadTile(const JsonObject& device) {
  constexpr int64_t kMost = 4096;
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, device.Object("product_tile"));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"m", "n", "k", "source"}));
  Sourced<ProductTile> tile;
  PIPELAB_ASSIGN_OR_RETURN(tile.value.m, object.Integer("m", 1, kMost));
  PIPELAB_ASSIGN_OR_RETURN(tile.value.n, object.Integer("n", 1, kMost));
  PIPELAB_ASSIGN_OR_RETURN(tile.value.k, object.Integer("k", 1, kMost));
  PIPELAB_ASSIGN_OR_RETURN(tile.source, object.String("source"));
  return tile;
}

// {"points": [[1, 0.3], [8, 1]], "source": "..."}
absl::StatusOr<Sourced<ProductAlignment>> ReadAlignment(const JsonObject& device) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, device.Object("product_alignment"));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"points", "source"}));
  Sourced<ProductAlignment> alignment;
  PIPELAB_ASSIGN_OR_RETURN(const json* points, object.List("points"));
  for (size_t i = 0; i < points->size(); ++i) {
    const json& point = (*points)[i];
    if (!point.is_array() || point.size() != 2 || !point[0].is_number_integer() ||
        !point[1].is_number()) {
      return object.Error(absl::StrCat("points[", i, "]"),
                          "must be a whole number and a share, such as [8, 1]");
    }
    alignment.value.points.push_back({point[0].get<int64_t>(), point[1].get<double>()});
  }
  PIPELAB_ASSIGN_OR_RETURN(alignment.source, object.String("source"));
  return alignment;
}

// {"worst": 0.76, "best": 1.14, "source": "..."}
absl::StatusOr<Sourced<EfficiencyRange>> ReadRange(const JsonObject& device) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, device.Object("efficiency_range"));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"worst", "best", "source"}));
  Sourced<EfficiencyRange> range;
  PIPELAB_ASSIGN_OR_RETURN(range.value.worst, object.Number("worst"));
  PIPELAB_ASSIGN_OR_RETURN(range.value.best, object.Number("best"));
  PIPELAB_ASSIGN_OR_RETURN(range.source, object.String("source"));
  if (!(range.value.worst > 0 && range.value.worst <= 1)) {
    return object.Error("worst", "must be above 0 and at most 1");
  }
  if (!(range.value.best >= 1 && range.value.best <= 10)) {
    return object.Error("best", "must be from 1 to 10");
  }
  return range;
}

// What a file may leave out.
absl::Status ReadOptional(const JsonObject& object, DeviceSpec* device) {
  if (object.Has("product_tile")) {
    PIPELAB_ASSIGN_OR_RETURN(device->product_tile, ReadTile(object));
  }
  if (object.Has("product_alignment")) {
    PIPELAB_ASSIGN_OR_RETURN(device->product_alignment, ReadAlignment(object));
  }
  if (object.Has("host_launch")) {
    PIPELAB_ASSIGN_OR_RETURN(device->host_launch, ReadQuantity<Nanoseconds>(object, "host_launch"));
  }
  if (object.Has("collective_overhead")) {
    PIPELAB_ASSIGN_OR_RETURN(device->collective_overhead,
                             ReadQuantity<Nanoseconds>(object, "collective_overhead"));
  }
  if (object.Has("launch_gap")) {
    PIPELAB_ASSIGN_OR_RETURN(device->launch_gap, ReadQuantity<Nanoseconds>(object, "launch_gap"));
  }
  if (object.Has("step_set_up")) {
    PIPELAB_ASSIGN_OR_RETURN(device->step_set_up, ReadQuantity<Nanoseconds>(object, "step_set_up"));
  }
  if (object.Has("calibrated")) {
    PIPELAB_ASSIGN_OR_RETURN(device->calibrated, object.String("calibrated"));
  }
  if (object.Has("published")) {
    PIPELAB_ASSIGN_OR_RETURN(device->published, object.String("published"));
  }
  if (object.Has("efficiency_range")) {
    PIPELAB_ASSIGN_OR_RETURN(device->efficiency_range, ReadRange(object));
  }
  if (object.Has("kernels")) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string kernels, object.String("kernels"));
    if (kernels != kOwnKernels) {
      return object.Error("kernels", absl::StrCat("\"", kernels, "\": must be \"", kOwnKernels,
                                                  "\", or not be there for any other's"));
    }
    device->own_kernels = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceSpec> ReadDevice(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys(
      {"name", "peaks", "memory", "memory_bandwidth", "launch_overhead", "arithmetic",
       "memory_efficiency", "memory_efficiency_of", "product_tile", "product_alignment",
       "host_launch", "launch_gap", "step_set_up", "collective_overhead", "kernels", "calibrated",
       "published", "efficiency_range"}));
  DeviceSpec device;
  PIPELAB_ASSIGN_OR_RETURN(device.name, object.String("name"));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject peaks, object.Object("peaks"));
  for (const std::string& key : peaks.Keys()) {
    const absl::StatusOr<NumberType> type = FindNumberType(key);
    if (!type.ok()) return peaks.Error(key, type.status().message());
    PIPELAB_ASSIGN_OR_RETURN(device.peaks[*type], ReadQuantity<FlopsPerSecond>(peaks, key));
  }
  PIPELAB_ASSIGN_OR_RETURN(device.memory, ReadQuantity<Bytes>(object, "memory"));
  PIPELAB_ASSIGN_OR_RETURN(device.memory_bandwidth,
                           ReadQuantity<BytesPerSecond>(object, "memory_bandwidth"));
  PIPELAB_ASSIGN_OR_RETURN(device.launch_overhead,
                           ReadQuantity<Nanoseconds>(object, "launch_overhead"));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject arithmetic, object.Object("arithmetic"));
  for (const std::string& key : arithmetic.Keys()) {
    const absl::StatusOr<OperationKind> kind = FindOperationKind(key);
    if (!kind.ok()) return arithmetic.Error(key, kind.status().message());
    PIPELAB_ASSIGN_OR_RETURN(device.arithmetic[*kind], ReadCurve<Flops>(arithmetic, key));
  }
  if (object.Has("memory_efficiency_of")) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject kinds, object.Object("memory_efficiency_of"));
    for (const std::string& key : kinds.Keys()) {
      const absl::StatusOr<OperationKind> kind = FindOperationKind(key);
      if (!kind.ok()) return kinds.Error(key, kind.status().message());
      PIPELAB_ASSIGN_OR_RETURN(device.memory_efficiency_of[*kind], ReadCurve<Bytes>(kinds, key));
    }
  }
  PIPELAB_RETURN_IF_ERROR(ReadOptional(object, &device));
  PIPELAB_ASSIGN_OR_RETURN(device.memory_efficiency, ReadCurve<Bytes>(object, "memory_efficiency"));
  return device;
}

absl::StatusOr<Connection> ReadConnection(const JsonObject& object) {
  Connection connection;
  PIPELAB_ASSIGN_OR_RETURN(connection.latency, ReadQuantity<Nanoseconds>(object, "latency"));
  PIPELAB_ASSIGN_OR_RETURN(connection.bandwidth, ReadQuantity<BytesPerSecond>(object, "bandwidth"));
  return connection;
}

absl::StatusOr<ClusterLevel> ReadLevel(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys(
      {"name", "size", "sharing", "shape", "latency", "bandwidth", "ring", "through"}));
  constexpr int64_t kMost = int64_t{1} << 20;
  ClusterLevel level;
  PIPELAB_ASSIGN_OR_RETURN(level.name, object.String("name"));
  PIPELAB_ASSIGN_OR_RETURN(level.size, object.Integer("size", 1, kMost));
  PIPELAB_ASSIGN_OR_RETURN(const std::string sharing, object.String("sharing"));
  const absl::StatusOr<Sharing> found = FindSharing(sharing);
  if (!found.ok()) return object.Error("sharing", found.status().message());
  level.sharing = *found;
  if (object.Has("shape")) {
    PIPELAB_ASSIGN_OR_RETURN(const json* shape, object.List("shape"));
    for (const json& n : *shape) {
      if (!n.is_number_integer()) return object.Error("shape", "must be whole numbers");
      level.shape.push_back(n.get<int64_t>());
    }
  }
  PIPELAB_ASSIGN_OR_RETURN(level.connection, ReadConnection(object));
  if (object.Has("ring")) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject ring, object.Object("ring"));
    PIPELAB_RETURN_IF_ERROR(ring.AllowKeys({"latency", "bandwidth"}));
    PIPELAB_ASSIGN_OR_RETURN(level.ring, ReadConnection(ring));
  }
  if (!object.Has("through")) return level;
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject through, object.Object("through"));
  PIPELAB_RETURN_IF_ERROR(through.AllowKeys({"name", "latency", "bandwidth"}));
  level.through.emplace();
  PIPELAB_ASSIGN_OR_RETURN(level.through->name, through.String("name"));
  PIPELAB_ASSIGN_OR_RETURN(level.through->connection, ReadConnection(through));
  return level;
}

// A number that ParseQuantity reads back as the same one.
std::string Text(double value, absl::string_view unit) {
  return absl::StrCat(json(value).dump(), " ", unit);
}
std::string TextOf(Bytes b) { return absl::StrCat(b.value(), " B"); }
std::string TextOf(Nanoseconds t) { return absl::StrCat(t.value(), " ns"); }
std::string TextOf(BytesPerSecond r) { return Text(r.value(), "B/s"); }
std::string TextOf(FlopsPerSecond r) { return Text(r.value(), "flop/s"); }

template <typename Q>
json Written(const Sourced<Q>& sourced) {
  return {{"value", TextOf(sourced.value)}, {"source", sourced.source}};
}

json WrittenCurve(const Sourced<EfficiencyCurve>& curve, absl::string_view unit) {
  json points = json::array();
  for (const EfficiencyCurve::Point& p : curve.value.points) {
    points.push_back({Text(p.size, unit), p.share});
  }
  return {{"points", points}, {"source", curve.source}};
}

void WriteConnection(const Connection& connection, json* object) {
  (*object)["latency"] = Written(connection.latency);
  (*object)["bandwidth"] = Written(connection.bandwidth);
}

}  // namespace

absl::StatusOr<ClusterSpec> ParseCluster(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(
      file.AllowKeys({"name", "title", "device", "levels", "collectives_at_wait"}));
  ClusterSpec cluster;
  PIPELAB_ASSIGN_OR_RETURN(cluster.name, file.String("name"));
  PIPELAB_ASSIGN_OR_RETURN(cluster.title, file.String("title"));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject device, file.Object("device"));
  PIPELAB_ASSIGN_OR_RETURN(cluster.device, ReadDevice(device));
  if (file.Has("collectives_at_wait")) {
    PIPELAB_ASSIGN_OR_RETURN(cluster.collectives_at_wait, file.Bool("collectives_at_wait"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> levels, file.Objects("levels"));
  for (const JsonObject& level : levels) {
    PIPELAB_ASSIGN_OR_RETURN(ClusterLevel read, ReadLevel(level));
    cluster.levels.push_back(std::move(read));
  }
  const absl::Status valid = CheckCluster(cluster);
  if (valid.ok()) return cluster;
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", valid.message()));
}

std::string ClusterToJson(const ClusterSpec& cluster) {
  const DeviceSpec& d = cluster.device;
  json device = {{"name", d.name},
                 {"memory", Written(d.memory)},
                 {"memory_bandwidth", Written(d.memory_bandwidth)},
                 {"launch_overhead", Written(d.launch_overhead)},
                 {"memory_efficiency", WrittenCurve(d.memory_efficiency, "B")}};
  for (const auto& [type, peak] : d.peaks) device["peaks"][NumberTypeName(type)] = Written(peak);
  for (const auto& [kind, curve] : d.arithmetic) {
    device["arithmetic"][OperationKindName(kind)] = WrittenCurve(curve, "flop");
  }
  for (const auto& [kind, curve] : d.memory_efficiency_of) {
    device["memory_efficiency_of"][OperationKindName(kind)] = WrittenCurve(curve, "B");
  }
  if (d.product_alignment.has_value()) {
    json points = json::array();
    for (const ProductAlignment::Point& p : d.product_alignment->value.points) {
      points.push_back({p.numbers, p.share});
    }
    device["product_alignment"] = {{"points", std::move(points)},
                                   {"source", d.product_alignment->source}};
  }
  if (d.host_launch.has_value()) device["host_launch"] = Written(*d.host_launch);
  if (d.collective_overhead.has_value()) {
    device["collective_overhead"] = Written(*d.collective_overhead);
  }
  if (d.launch_gap.has_value()) device["launch_gap"] = Written(*d.launch_gap);
  if (d.step_set_up.has_value()) device["step_set_up"] = Written(*d.step_set_up);
  if (d.own_kernels) device["kernels"] = kOwnKernels;
  if (!d.calibrated.empty()) device["calibrated"] = d.calibrated;
  if (!d.published.empty()) device["published"] = d.published;
  if (d.efficiency_range.has_value()) {
    const EfficiencyRange& range = d.efficiency_range->value;
    device["efficiency_range"] = {
        {"worst", range.worst}, {"best", range.best}, {"source", d.efficiency_range->source}};
  }
  if (d.product_tile.has_value()) {
    const ProductTile& t = d.product_tile->value;
    device["product_tile"] = {
        {"m", t.m}, {"n", t.n}, {"k", t.k}, {"source", d.product_tile->source}};
  }
  json levels = json::array();
  for (const ClusterLevel& level : cluster.levels) {
    json object = {
        {"name", level.name}, {"size", level.size}, {"sharing", SharingName(level.sharing)}};
    if (!level.shape.empty()) object["shape"] = level.shape;
    WriteConnection(level.connection, &object);
    if (level.ring.has_value()) WriteConnection(*level.ring, &object["ring"]);
    if (level.through.has_value()) {
      object["through"]["name"] = level.through->name;
      WriteConnection(level.through->connection, &object["through"]);
    }
    levels.push_back(std::move(object));
  }
  json file = {{"name", cluster.name},
               {"title", cluster.title},
               {"device", std::move(device)},
               {"levels", std::move(levels)}};
  if (cluster.collectives_at_wait) file["collectives_at_wait"] = true;
  return DumpJson(file);
}

}  // namespace pipelab
