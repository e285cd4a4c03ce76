#include "pipelines/cluster/cluster_json.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "pipelines/cluster/device_class.h"
#include "pipelines/cluster/kernel_rates_json.h"
#include "pipelines/cluster/shared_fields.h"
#include "pipelines/cluster/simumax_json.h"
#include "pipelines/cluster/sourced_fields.h"
#include "tools/base/faults.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr char kOwnKernels[] = "pipelab";
constexpr char kDeviceExample[] =
    R"({"class": "gpu", "peaks": {"fp32": "80 TFLOPS"}, "memory": "24 GB", )"
    R"("memory_bandwidth": "1 TB/s"})";
constexpr char kLevelsExample[] = R"([{"size": 8, "sharing": "device", "bandwidth": "25 GB/s"}])";

template <typename Q>
void ReadIfThere(const JsonObject& object, absl::string_view key, Faults* faults,
                 absl::optional<Sourced<Q>>* into) {
  if (object.Has(key)) faults->Read(ReadQuantity<Q>(object, key), into);
}

// What a file may leave out.
void ReadOptional(const JsonObject& object, Faults* faults, DeviceSpec* device) {
  if (object.Has("product_tile")) faults->Read(ReadTile(object), &device->product_tile);
  if (object.Has("product_alignment")) {
    faults->Read(ReadAlignment(object), &device->product_alignment);
  }
  ReadIfThere(object, "host_launch", faults, &device->host_launch);
  ReadIfThere(object, "collective_launch", faults, &device->collective_launch);
  ReadIfThere(object, "collective_overhead", faults, &device->collective_overhead);
  ReadIfThere(object, "launch_gap", faults, &device->launch_gap);
  ReadIfThere(object, "step_set_up", faults, &device->step_set_up);
  if (object.Has("rates")) faults->Read(ReadKernelRates(object, "rates"), &device->rates);
  if (object.Has("calibrated")) faults->Read(object.String("calibrated"), &device->calibrated);
  if (object.Has("published")) faults->Read(object.String("published"), &device->published);
  if (object.Has("efficiency_range")) faults->Read(ReadRange(object), &device->efficiency_range);
  std::string kernels = kOwnKernels;
  if (object.Has("kernels")) device->own_kernels = faults->Read(object.String("kernels"), &kernels);
  if (kernels != kOwnKernels) {
    faults->Add(object.Error("kernels", "\"", kernels, "\": must be \"", kOwnKernels,
                             "\", or not be there for any other's"));
  }
}

// An object whose keys are names of kinds or types, each with a value of its own.
template <typename Kind, typename Value>
void ReadEach(const JsonObject& parent, absl::string_view key,
              absl::StatusOr<Kind> (*find)(absl::string_view),
              absl::StatusOr<Value> (*read)(const JsonObject&, absl::string_view), Faults* faults,
              std::map<Kind, Value>* into) {
  const absl::StatusOr<JsonObject> object = parent.Object(key);
  faults->Add(object.status());
  if (!object.ok()) return;
  for (const std::string& name : object->Keys()) {
    const absl::StatusOr<Kind> kind = find(name);
    if (kind.ok()) {
      faults->Read(read(*object, name), &(*into)[*kind]);
    } else {
      faults->Add(object->Error(name, kind.status().message()));
    }
  }
}

// Whether a field is to be read: one that is not there is its class's, where the file says the
// class, and else a fault.
bool IsThere(const JsonObject& device, absl::string_view key,
             const absl::optional<DeviceClass>& kind, Faults* faults) {
  if (device.Has(key)) return true;
  if (!kind.has_value()) {
    faults->Add(device.Error(key, "missing; with \"class\": \"gpu\" or \"tpu\" it is assumed"));
  }
  return false;
}

absl::optional<DeviceClass> ReadClass(const JsonObject& device, Faults* faults) {
  std::string name;
  if (!device.Has("class") || !faults->Read(device.String("class"), &name)) return absl::nullopt;
  const absl::StatusOr<DeviceClass> found = FindDeviceClass(name);
  if (found.ok()) return *found;
  faults->Add(device.Error("class", found.status().message()));
  return DeviceClass::kGpu;  // so that what it would say is not a fault, too
}

DeviceSpec ReadDevice(const JsonObject& object, const absl::optional<DeviceClass>& kind,
                      Faults* faults) {
  faults->Add(object.AllowKeys({"name",
                                "class",
                                "peaks",
                                "memory",
                                "memory_bandwidth",
                                "launch_overhead",
                                "arithmetic",
                                "memory_efficiency",
                                "memory_efficiency_of",
                                "product_tile",
                                "product_alignment",
                                "host_launch",
                                "launch_gap",
                                "step_set_up",
                                "collective_launch",
                                "collective_overhead",
                                "kernels",
                                "rates",
                                "calibrated",
                                "published",
                                "efficiency_range"}));
  DeviceSpec device;
  if (object.Has("name")) faults->Read(object.String("name"), &device.name);
  ReadEach(object, "peaks", &FindNumberType, &ReadQuantity<FlopsPerSecond>, faults, &device.peaks);
  faults->Read(ReadQuantity<Bytes>(object, "memory"), &device.memory);
  faults->Read(ReadQuantity<BytesPerSecond>(object, "memory_bandwidth"), &device.memory_bandwidth);
  if (IsThere(object, "launch_overhead", kind, faults)) {
    faults->Read(ReadQuantity<Nanoseconds>(object, "launch_overhead"), &device.launch_overhead);
  }
  if (IsThere(object, "arithmetic", kind, faults)) {
    ReadEach(object, "arithmetic", &FindOperationKind, &ReadCurve<Flops>, faults,
             &device.arithmetic);
  }
  if (object.Has("memory_efficiency_of")) {
    ReadEach(object, "memory_efficiency_of", &FindOperationKind, &ReadCurve<Bytes>, faults,
             &device.memory_efficiency_of);
  }
  ReadOptional(object, faults, &device);
  if (IsThere(object, "memory_efficiency", kind, faults)) {
    faults->Read(ReadCurve<Bytes>(object, "memory_efficiency"), &device.memory_efficiency);
  }
  return device;
}

Connection ReadConnection(const JsonObject& object, Faults* faults) {
  Connection connection;
  faults->Read(ReadQuantity<Nanoseconds>(object, "latency"), &connection.latency);
  faults->Read(ReadQuantity<BytesPerSecond>(object, "bandwidth"), &connection.bandwidth);
  return connection;
}

RingConnection ReadRing(const JsonObject& object, bool of_ranks, Faults* faults) {
  RingConnection ring;
  faults->Add(of_ranks
                  ? object.AllowKeys({"ranks", "latency", "bandwidth", "all_reduce", "all_to_all"})
                  : object.AllowKeys({"latency", "bandwidth", "all_reduce", "all_to_all"}));
  constexpr int64_t kMost = int64_t{1} << 20;
  if (of_ranks) faults->Read(object.Integer("ranks", 2, kMost), &ring.ranks);
  ring.connection = ReadConnection(object, faults);
  for (const auto& [key, bandwidth] : {std::make_pair("all_reduce", &ring.all_reduce),
                                       std::make_pair("all_to_all", &ring.all_to_all)}) {
    if (!object.Has(key)) continue;
    faults->Read(ReadQuantity<BytesPerSecond>(object, key), &bandwidth->emplace());
  }
  return ring;
}

// One for any number of ranks, or a list by ranks.
std::vector<RingConnection> ReadRings(const JsonObject& level, Faults* faults) {
  std::vector<RingConnection> rings;
  if (level.List("ring").ok()) {
    const absl::StatusOr<std::vector<JsonObject>> list = level.Objects("ring");
    faults->Add(list.status());
    if (!list.ok()) return rings;
    for (const JsonObject& ring : *list) rings.push_back(ReadRing(ring, /*of_ranks=*/true, faults));
    return rings;
  }
  const absl::StatusOr<JsonObject> ring = level.Object("ring");
  faults->Add(ring.status());
  if (ring.ok()) rings.push_back(ReadRing(*ring, /*of_ranks=*/false, faults));
  return rings;
}

std::string NameOfLevel(int level) {
  if (level < 2) return level == 0 ? "node" : "cluster";
  return absl::StrCat("level ", level);
}

ClusterLevel ReadLevel(const JsonObject& object, int number,
                       const absl::optional<DeviceClass>& kind, Faults* faults) {
  faults->Add(object.AllowKeys(
      {"name", "size", "sharing", "shape", "latency", "bandwidth", "ring", "through"}));
  constexpr int64_t kMost = int64_t{1} << 20;
  ClusterLevel level;
  level.name = NameOfLevel(number);
  if (object.Has("name")) faults->Read(object.String("name"), &level.name);
  faults->Read(object.Integer("size", 1, kMost), &level.size);
  std::string sharing;
  if (faults->Read(object.String("sharing"), &sharing)) {
    const absl::StatusOr<Sharing> found = FindSharing(sharing);
    if (found.ok()) level.sharing = *found;
    if (!found.ok()) faults->Add(object.Error("sharing", found.status().message()));
  }
  const json* shape = nullptr;
  if (object.Has("shape") && faults->Read(object.List("shape"), &shape)) {
    for (const json& n : *shape) {
      if (n.is_number_integer()) level.shape.push_back(n.get<int64_t>());
    }
    if (level.shape.size() != shape->size()) {
      faults->Add(object.Error("shape", "must be whole numbers"));
    }
  }
  if (IsThere(object, "latency", kind, faults)) {
    faults->Read(ReadQuantity<Nanoseconds>(object, "latency"), &level.connection.latency);
  } else if (kind.has_value()) {
    level.connection.latency = LatencyOfClass(*kind, number);
  }
  faults->Read(ReadQuantity<BytesPerSecond>(object, "bandwidth"), &level.connection.bandwidth);
  if (object.Has("ring")) level.rings = ReadRings(object, faults);
  if (!object.Has("through")) return level;
  const absl::StatusOr<JsonObject> through = object.Object("through");
  faults->Add(through.ok() ? through->AllowKeys({"name", "latency", "bandwidth"})
                           : through.status());
  if (!through.ok()) return level;
  level.through.emplace();
  faults->Read(through->String("name"), &level.through->name);
  level.through->connection = ReadConnection(*through, faults);
  return level;
}

HostLink ReadHostLink(const JsonObject& file, Faults* faults) {
  HostLink link;
  const absl::StatusOr<JsonObject> object = file.Object("host_link");
  faults->Add(object.ok() ? object->AllowKeys({"bandwidth", "devices"}) : object.status());
  if (!object.ok()) return link;
  faults->Read(ReadQuantity<BytesPerSecond>(*object, "bandwidth"), &link.bandwidth);
  if (object->Has("devices")) faults->Read(object->Integer("devices", 1, 1024), &link.devices);
  return link;
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

absl::StatusOr<ClusterSpec> ReadCluster(json root, absl::string_view what) {
  PIPELAB_RETURN_IF_ERROR(ExpandSharedFields(what, &root));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  Faults faults;
  faults.Add(
      file.AllowKeys({"name", "title", "device", "levels", "host_link", "collectives_at_wait"}));
  ClusterSpec cluster;
  faults.Read(file.String("name"), &cluster.name);
  cluster.title = cluster.name;
  if (file.Has("title")) faults.Read(file.String("title"), &cluster.title);
  absl::optional<DeviceClass> kind;
  const absl::StatusOr<JsonObject> device = file.Object("device");
  if (!file.Has("device")) {
    faults.Add(file.Error("device", "missing, such as ", kDeviceExample));
  } else if (!device.ok()) {
    faults.Add(device.status());
  } else {
    kind = ReadClass(*device, &faults);
    cluster.device = ReadDevice(*device, kind, &faults);
  }
  if (cluster.device.name.empty()) cluster.device.name = cluster.name;
  if (file.Has("collectives_at_wait")) {
    faults.Read(file.Bool("collectives_at_wait"), &cluster.collectives_at_wait);
  }
  if (file.Has("host_link")) cluster.host_link = ReadHostLink(file, &faults);
  std::vector<JsonObject> levels;
  if (!file.Has("levels")) {
    faults.Add(file.Error("levels", "missing, such as ", kLevelsExample));
  } else {
    faults.Read(file.Objects("levels"), &levels);
  }
  if (levels.size() > kMostClusterLevels) {
    return file.Error("levels", "must be at most ", kMostClusterLevels, ", not ", levels.size());
  }
  for (size_t i = 0; i < levels.size(); ++i) {
    cluster.levels.push_back(ReadLevel(levels[i], static_cast<int>(i), kind, &faults));
  }
  PIPELAB_RETURN_IF_ERROR(faults.Of(what));
  if (kind.has_value()) FillFromClass(*kind, &cluster.device);
  return cluster;
}

}  // namespace

absl::StatusOr<ClusterSpec> ParseCluster(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, IsSimumaxSystem(root)
                                                    ? ParseSimumaxSystem(root, what)
                                                    : ReadCluster(std::move(root), what));
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
  if (d.collective_launch.has_value()) device["collective_launch"] = Written(*d.collective_launch);
  if (d.collective_overhead.has_value()) {
    device["collective_overhead"] = Written(*d.collective_overhead);
  }
  if (d.launch_gap.has_value()) device["launch_gap"] = Written(*d.launch_gap);
  if (d.step_set_up.has_value()) device["step_set_up"] = Written(*d.step_set_up);
  if (d.rates != nullptr) device["rates"] = KernelRatesToJson(*d.rates);
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
    for (const RingConnection& ring : level.rings) {
      json written;
      WriteConnection(ring.connection, &written);
      if (ring.all_reduce.has_value()) written["all_reduce"] = Written(*ring.all_reduce);
      if (ring.all_to_all.has_value()) written["all_to_all"] = Written(*ring.all_to_all);
      if (ring.ranks == 0) {
        object["ring"] = std::move(written);
        continue;
      }
      written["ranks"] = ring.ranks;
      object["ring"].push_back(std::move(written));
    }
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
  if (cluster.host_link.has_value()) {
    file["host_link"] = {{"bandwidth", Written(cluster.host_link->bandwidth)},
                         {"devices", cluster.host_link->devices}};
  }
  if (cluster.collectives_at_wait) file["collectives_at_wait"] = true;
  return DumpJson(file);
}

}  // namespace pipelab
