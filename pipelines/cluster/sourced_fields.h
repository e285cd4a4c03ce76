// Values of a cluster file, each with its source; for cluster_json.cc alone.
//
//   ReadQuantity<Bytes>(device, "memory")        // {"value": "16 GiB", "source": "data sheet"}
//
// Errors name file, key and what would be right. What has no source has "not given".
#ifndef PIPELAB_PIPELINES_CLUSTER_SOURCED_FIELDS_H_
#define PIPELAB_PIPELINES_CLUSTER_SOURCED_FIELDS_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "pipelines/cluster/device.h"
#include "tools/base/json_object.h"
#include "tools/base/quantity_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {

constexpr char kNoSource[] = "not given";

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

// "25 GB/s"
template <typename Q>
absl::StatusOr<Q> ReadValue(const JsonObject& object, absl::string_view key) {
  PIPELAB_ASSIGN_OR_RETURN(const Q value, object.Quantity<Q>(key));
  if (value >= Range<Q>::kLeast && value <= Range<Q>::kMost) return value;
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, object.String(key));
  return object.Error(key, "\"", text, "\": must be from ", Range<Q>::kText);
}

// {"value": "25 GB/s", "source": "..."}, or the value alone.
template <typename Q>
absl::StatusOr<Sourced<Q>> ReadQuantity(const JsonObject& parent, absl::string_view key) {
  Sourced<Q> sourced;
  sourced.source = kNoSource;
  if (!parent.HasObject(key)) {
    PIPELAB_ASSIGN_OR_RETURN(sourced.value, ReadValue<Q>(parent, key));
    return sourced;
  }
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, parent.Object(key));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"value", "source"}));
  PIPELAB_ASSIGN_OR_RETURN(sourced.value, ReadValue<Q>(object, "value"));
  if (object.Has("source")) {
    PIPELAB_ASSIGN_OR_RETURN(sourced.source, object.String("source"));
  }
  return sourced;
}

// {"points": [["1 Mflop", 0.1], ...], "source": "..."}; Q is Flops or Bytes.
template <typename Q>
absl::StatusOr<Sourced<EfficiencyCurve>> ReadCurve(const JsonObject& parent,
                                                   absl::string_view key) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, parent.Object(key));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"points", "source"}));
  Sourced<EfficiencyCurve> curve;
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* points, object.List("points"));
  for (size_t i = 0; i < points->size(); ++i) {
    const nlohmann::json& point = (*points)[i];
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

inline absl::StatusOr<Sourced<ProductTile>> ReadTile(const JsonObject& device) {
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
inline absl::StatusOr<Sourced<ProductAlignment>> ReadAlignment(const JsonObject& device) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, device.Object("product_alignment"));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"points", "source"}));
  Sourced<ProductAlignment> alignment;
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* points, object.List("points"));
  for (size_t i = 0; i < points->size(); ++i) {
    const nlohmann::json& point = (*points)[i];
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
inline absl::StatusOr<Sourced<EfficiencyRange>> ReadRange(const JsonObject& device) {
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

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_SOURCED_FIELDS_H_
