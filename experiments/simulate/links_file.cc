#include "experiments/simulate/links_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/simulate/decimal.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr double kLongest = 1e9;                 // units of time
constexpr int64_t kMostUses = int64_t{1} << 24;  // of links by pairs of devices, in all paths

class LinksReader {
 public:
  LinksReader(const std::string& what, int num_devices, double nanoseconds_per_unit)
      : what_(what), num_devices_(num_devices), nanoseconds_per_unit_(nanoseconds_per_unit) {}

  absl::StatusOr<Network> Read(const json& file, const Link& own) {
    PIPELAB_RETURN_IF_ERROR(CheckFields(file, "", {"links", "paths"}));
    network_ = PrivateLinks(num_devices_, own);
    PIPELAB_ASSIGN_OR_RETURN(const json links, List(file, "links"));
    for (size_t i = 0; i < links.size(); ++i) {
      PIPELAB_RETURN_IF_ERROR(AddLink(links[i], absl::StrCat("links[", i, "]")));
    }
    PIPELAB_ASSIGN_OR_RETURN(const json paths, List(file, "paths"));
    for (size_t i = 0; i < paths.size(); ++i) {
      PIPELAB_RETURN_IF_ERROR(AddPath(paths[i], absl::StrCat("paths[", i, "]")));
    }
    return std::move(network_);
  }

 private:
  template <typename... Parts>
  absl::Status Error(absl::string_view field, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": field '", field, "': ", parts...));
  }

  absl::Status CheckFields(const json& object, const std::string& place,
                           const std::vector<std::string>& known) const {
    if (!object.is_object()) {
      if (place.empty()) return absl::InvalidArgumentError(absl::StrCat(what_, ": no JSON object"));
      return Error(place, "must be an object");
    }
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      return Error(place.empty() ? key : absl::StrCat(place, ".", key), "unknown");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<json> List(const json& object, const char* key) const {
    const auto it = object.find(key);
    if (it == object.end() || !it->is_array()) return Error(key, "must be a list");
    return *it;
  }

  absl::Status AddLink(const json& object, const std::string& place) {
    PIPELAB_RETURN_IF_ERROR(CheckFields(object, place, {"name", "latency", "bandwidth"}));
    Link link;
    const auto name = object.find("name");
    if (name == object.end() || !name->is_string()) {
      return Error(absl::StrCat(place, ".name"), "must be a string");
    }
    link.name = name->get<std::string>();
    if (const auto latency = object.find("latency"); latency != object.end()) {
      const double units = latency->is_number() ? latency->get<double>() : -1;
      if (!(units >= 0 && units <= kLongest)) {
        return Error(absl::StrCat(place, ".latency"), "must be a number from 0 to 1e9");
      }
      link.latency = Nanoseconds(std::llround(units * nanoseconds_per_unit_));
    }
    if (const auto bandwidth = object.find("bandwidth"); bandwidth != object.end()) {
      PIPELAB_ASSIGN_OR_RETURN(link.bandwidth,
                               Bandwidth(*bandwidth, absl::StrCat(place, ".bandwidth")));
    }
    if (!id_of_name_.emplace(link.name, static_cast<int>(network_.links.size())).second) {
      return Error(absl::StrCat(place, ".name"), "\"", link.name, "\" is there twice");
    }
    network_.links.push_back(std::move(link));
    return absl::OkStatus();
  }

  absl::StatusOr<BytesPerSecond> Bandwidth(const json& value, const std::string& place) const {
    double bytes = -1;
    if (value.is_number()) bytes = value.get<double>();
    if (value.is_string()) {
      const auto counts = ParseByteCounts("bandwidth", value.get<std::string>(), 1, "");
      if (counts.ok()) bytes = static_cast<double>((*counts)[0].value());
    }
    const double per_second = bytes * 1e9 / nanoseconds_per_unit_;
    if (!(per_second > 0 && std::isfinite(per_second))) {
      return Error(place, "must be bytes in a unit of time, above 0: a number, or as \"1.5GB\"");
    }
    return BytesPerSecond(per_second);
  }

  absl::StatusOr<std::vector<int>> Devices(const json& object, const char* key,
                                           const std::string& place) const {
    const std::string field = absl::StrCat(place, ".", key);
    const auto it = object.find(key);
    const json value = it == object.end() ? json() : *it;
    std::vector<int> devices;
    if (value.is_string() && value.get<std::string>() == "all") {
      for (int d = 0; d < num_devices_; ++d) devices.push_back(d);
      return devices;
    }
    std::set<int> known;
    const json list = value.is_array() ? value : json::array({value});
    for (const json& d : list) {
      if (!d.is_number_integer()) {
        return Error(field, "must be a device, a list of devices or \"all\"");
      }
      const double device = d.get<double>();
      if (device < 0 || device >= num_devices_) {
        return Error(field, "there is no device ", d.dump(), "; the schedule has ", num_devices_);
      }
      devices.push_back(static_cast<int>(device));
      if (!known.insert(devices.back()).second) {
        return Error(field, "device ", devices.back(), " is there twice");
      }
    }
    return devices;
  }

  absl::Status AddPath(const json& object, const std::string& place) {
    PIPELAB_RETURN_IF_ERROR(CheckFields(object, place, {"from", "to", "links"}));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> from, Devices(object, "from", place));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> to, Devices(object, "to", place));
    const auto names = object.find("links");
    if (names == object.end() || !names->is_array()) {
      return Error(absl::StrCat(place, ".links"), "must be a list of links' names");
    }
    std::vector<LinkUse> path;
    std::set<int> on_path;
    for (size_t i = 0; i < names->size(); ++i) {
      const std::string field = absl::StrCat(place, ".links[", i, "]");
      const json& name = (*names)[i];
      const auto id =
          name.is_string() ? id_of_name_.find(name.get<std::string>()) : id_of_name_.end();
      if (id == id_of_name_.end()) return Error(field, "no link is called ", name.dump());
      if (!on_path.insert(id->second).second) {
        return Error(field, name.dump(), " is on the path twice");
      }
      path.emplace_back(id->second);
    }
    uses_ += static_cast<int64_t>(from.size() * to.size() * std::max<size_t>(path.size(), 1));
    if (uses_ > kMostUses) {
      return Error(place, "the paths up to this one have ", uses_,
                   " links between pairs of devices; at most ", kMostUses);
    }
    for (int a : from) {
      for (int b : to) {
        if (a != b) network_.RouteOf(a, b).uses = path;
      }
    }
    return absl::OkStatus();
  }

  const std::string& what_;
  const int num_devices_;
  const double nanoseconds_per_unit_;
  Network network_;
  std::map<std::string, int> id_of_name_;
  int64_t uses_ = 0;  // of kMostUses
};

}  // namespace

absl::StatusOr<Network> ParseLinks(absl::string_view text, const std::string& what, int num_devices,
                                   const Link& own, double nanoseconds_per_unit) {
  PIPELAB_ASSIGN_OR_RETURN(const json file, ParseJson(text, what));
  return LinksReader(what, num_devices, nanoseconds_per_unit).Read(file, own);
}

}  // namespace pipelab
