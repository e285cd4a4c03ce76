#include "models/files/piper_json.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/files/graph_json.h"
#include "models/files/number_text.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMost = int64_t{1} << 30;         // micro-batches, degrees
constexpr int64_t kMostDevices = int64_t{1} << 20;  // as many as --devices may be

class PiperReader {
 public:
  PiperReader(const JsonObject& file, PiperTimeUnit unit) : file_(file) { problem_.unit = unit; }

  absl::StatusOr<PiperProblem> Read() {
    PIPELAB_RETURN_IF_ERROR(ReadMachine());
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> nodes, file_.Objects("nodes"));
    if (nodes.empty()) return file_.Error("nodes", "there are none");
    for (const JsonObject& object : nodes) {
      PiperNode& node = problem_.nodes.emplace_back();
      PIPELAB_ASSIGN_OR_RETURN(node.id, ids_.Add(object, "id"));
      node.name = absl::StrCat(node.id);
      if (object.Has("name")) {
        PIPELAB_ASSIGN_OR_RETURN(node.name, object.String("name"));
      }
    }
    PIPELAB_RETURN_IF_ERROR(ReadEdges());
    // Menus name the edges of their node.
    for (size_t i = 0; i < nodes.size(); ++i) {
      PIPELAB_RETURN_IF_ERROR(ReadMenu(nodes[i], static_cast<int>(i)));
    }
    return std::move(problem_);
  }

 private:
  // Whole numbers may be written with a point.
  absl::StatusOr<int64_t> Count(absl::string_view key, int64_t most) const {
    PIPELAB_ASSIGN_OR_RETURN(const double number, file_.Number(key));
    if (number >= 1 && number <= static_cast<double>(most)) {
      const auto count = static_cast<int64_t>(number);
      if (static_cast<double>(count) == number) return count;
    }
    return file_.Error(key, NumberText(number), ": must be a whole number from 1 to ", most);
  }

  absl::Status ReadMachine() {
    PIPELAB_ASSIGN_OR_RETURN(problem_.memory_bytes, PlausibleNumber(file_, "maxMemoryPerDevice"));
    PIPELAB_ASSIGN_OR_RETURN(problem_.devices, Count("maxDevices", kMostDevices));
    PIPELAB_ASSIGN_OR_RETURN(const double bandwidth, PlausibleNumber(file_, "bandwidth"));
    if (bandwidth == 0) return file_.Error("bandwidth", "must be above 0");
    problem_.bandwidth = BytesPerSecond(bandwidth);
    PIPELAB_ASSIGN_OR_RETURN(problem_.micro_batches, Count("mbsInBatch", kMost));
    return absl::OkStatus();
  }

  absl::Status ReadEdges() {
    outputs_.resize(problem_.nodes.size());
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> edges, file_.Objects("edges"));
    for (const JsonObject& object : edges) {
      PIPELAB_ASSIGN_OR_RETURN(const auto ends, ids_.AddEdge(object));
      PIPELAB_ASSIGN_OR_RETURN(const double bytes, PlausibleNumber(object, "communicationCost"));
      problem_.edges.push_back({ends.first, ends.second, bytes});
      outputs_[ends.first].push_back(ends.second);
    }
    return ids_.CheckAcyclic(file_.what());
  }

  absl::Status ReadMenu(const JsonObject& object, int index) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject tmpcs, object.Object("TMPCs"));
    for (const std::string& key : tmpcs.Keys()) {
      int degree = 0;
      if (!absl::SimpleAtoi(key, &degree) || degree < 1 || degree > kMost ||
          absl::StrCat(degree) != key) {
        return tmpcs.Error(key, "must be a tensor-parallel degree, a whole number from 1");
      }
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> variants, tmpcs.Objects(key));
      if (variants.empty()) return tmpcs.Error(key, "there are no variants");
      std::set<std::string> ids;
      for (const JsonObject& variant : variants) {
        PIPELAB_ASSIGN_OR_RETURN(PiperVariant read, ReadVariant(variant, index));
        if (!ids.insert(read.id).second) {
          return variant.Error("id", "\"", read.id,
                               "\": another variant of the degree has this id");
        }
        problem_.nodes[index].variants[degree].push_back(std::move(read));
      }
    }
    if (problem_.nodes[index].variants.empty())
      return object.Error("TMPCs", "there are no variants");
    return absl::OkStatus();
  }

  absl::StatusOr<PiperVariant> ReadVariant(const JsonObject& object, int node) const {
    PiperVariant variant;
    PIPELAB_ASSIGN_OR_RETURN(variant.id, object.String("id"));
    PIPELAB_ASSIGN_OR_RETURN(variant.time, PlausibleNumber(object, "timePerSample"));
    PIPELAB_ASSIGN_OR_RETURN(variant.parameter_bytes, PlausibleNumber(object, "parameterSize"));
    PIPELAB_ASSIGN_OR_RETURN(variant.in_flight_bytes, PlausibleNumber(object, "memoryUsageA"));
    PIPELAB_ASSIGN_OR_RETURN(variant.fixed_bytes, PlausibleNumber(object, "memoryUsageB"));
    PIPELAB_ASSIGN_OR_RETURN(variant.forward_sync_bytes,
                             ReadSync(object, "syncTimeFw", ids_.inputs()[node]));
    PIPELAB_ASSIGN_OR_RETURN(variant.backward_sync_bytes,
                             ReadSync(object, "syncTimeBw", outputs_[node]));
    return variant;
  }

  absl::StatusOr<std::map<int, double>> ReadSync(const JsonObject& variant, absl::string_view key,
                                                 const std::vector<int>& neighbours) const {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, variant.Object(key));
    const std::set<int> known(neighbours.begin(), neighbours.end());
    std::map<int, double> sync;
    for (const std::string& id : object.Keys()) {
      int64_t number = -1;
      const int index =
          absl::SimpleAtoi(id, &number) && absl::StrCat(number) == id ? ids_.IndexOf(number) : -1;
      if (known.count(index) == 0) return object.Error(id, "the node has no such edge");
      PIPELAB_ASSIGN_OR_RETURN(sync[index], PlausibleNumber(object, id));
    }
    for (int index : neighbours) {
      if (sync.count(index) == 0) return object.Error(absl::StrCat(ids_.IdOf(index)), "missing");
    }
    return sync;
  }

  const JsonObject& file_;
  NodeIds ids_;
  std::vector<std::vector<int>> outputs_;
  PiperProblem problem_;
};

json WrittenSync(const PiperProblem& problem, const std::map<int, double>& sync) {
  json object = json::object();
  for (const auto& [node, bytes] : sync) object[absl::StrCat(problem.nodes[node].id)] = bytes;
  return object;
}

json WrittenVariant(const PiperProblem& problem, const PiperVariant& variant) {
  return {{"id", variant.id},
          {"timePerSample", variant.time},
          {"parameterSize", variant.parameter_bytes},
          {"memoryUsageA", variant.in_flight_bytes},
          {"memoryUsageB", variant.fixed_bytes},
          {"syncTimeFw", WrittenSync(problem, variant.forward_sync_bytes)},
          {"syncTimeBw", WrittenSync(problem, variant.backward_sync_bytes)}};
}

// [node] unique.
std::vector<std::string> LayerNames(const PiperProblem& problem) {
  std::map<std::string, int> uses;
  for (const PiperNode& node : problem.nodes) ++uses[node.name];
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const PiperNode& node : problem.nodes) {
    std::string name = uses[node.name] == 1 ? node.name : absl::StrCat(node.name, "#", node.id);
    while (!taken.insert(name).second) name += "_";
    names.push_back(std::move(name));
  }
  return names;
}

ListedLayer MakeLayer(const PiperVariant& variant, double output_bytes,
                      const PiperProblem& problem) {
  ListedLayer layer;
  layer.parameters = RoundedCount(variant.parameter_bytes / 4);
  const Nanoseconds all(RoundedCount(problem.Seconds(variant.time) * 1e9));
  const Nanoseconds forward(all.value() / 3);
  layer.costs = SplitBackward<Nanoseconds>({Nanoseconds(0), forward},
                                           {Nanoseconds(0), all - forward}, layer.parameters > 0);
  layer.output = Bytes(RoundedCount(output_bytes));
  layer.kept = Bytes(RoundedCount(variant.in_flight_bytes));
  layer.keeps_inputs = false;
  return layer;
}

}  // namespace

absl::StatusOr<PiperProblem> ReadPiper(const json& root, absl::string_view what,
                                       PiperTimeUnit unit) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  return PiperReader(file, unit).Read();
}

absl::StatusOr<PiperProblem> ParsePiper(absl::string_view text, absl::string_view what,
                                        PiperTimeUnit unit) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  return ReadPiper(root, what, unit);
}

std::string PiperToJson(const PiperProblem& problem) {
  json nodes = json::array(), edges = json::array();
  for (const PiperNode& node : problem.nodes) {
    json tmpcs = json::object();
    for (const auto& [degree, variants] : node.variants) {
      json& list = tmpcs[absl::StrCat(degree)] = json::array();
      for (const PiperVariant& variant : variants) {
        list.push_back(WrittenVariant(problem, variant));
      }
    }
    nodes.push_back({{"id", node.id}, {"name", node.name}, {"TMPCs", std::move(tmpcs)}});
  }
  for (const PiperEdge& edge : problem.edges) {
    edges.push_back({{"sourceId", problem.nodes[edge.from].id},
                     {"destId", problem.nodes[edge.to].id},
                     {"communicationCost", edge.bytes}});
  }
  return DumpJson({{"maxMemoryPerDevice", problem.memory_bytes},
                   {"maxDevices", problem.devices},
                   {"bandwidth", problem.bandwidth.value()},
                   {"mbsInBatch", problem.micro_batches},
                   {"nodes", std::move(nodes)},
                   {"edges", std::move(edges)}});
}

const PiperVariant* PlainVariant(const PiperNode& node) {
  const auto it = node.variants.find(1);
  if (it == node.variants.end()) return nullptr;
  for (const PiperVariant& variant : it->second) {
    if (variant.id == "vanilla") return &variant;
  }
  return &it->second.front();
}

absl::StatusOr<LayerList> ToLayerList(const PiperProblem& problem, absl::string_view name,
                                      absl::string_view what) {
  LayerList list;
  list.name = std::string(name);
  list.source = "an input of Piper";
  const std::vector<std::string> names = LayerNames(problem);
  std::vector<double> output_bytes(names.size());
  std::vector<bool> is_sink(names.size(), true);
  for (const PiperEdge& edge : problem.edges) {
    output_bytes[edge.from] = std::max(output_bytes[edge.from], edge.bytes);
    is_sink[edge.from] = false;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const PiperVariant* plain = PlainVariant(problem.nodes[i]);
    if (plain == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": node ", problem.nodes[i].id, " (\"", problem.nodes[i].name,
                       "\") has no variant without tensor parallelism (TMPCs.1)"));
    }
    ListedLayer layer = MakeLayer(*plain, output_bytes[i], problem);
    layer.name = names[i];
    list.layers.push_back(std::move(layer));
    if (is_sink[i]) list.outputs.push_back(names[i]);
  }
  for (const PiperEdge& edge : problem.edges) {
    list.layers[edge.to].inputs.push_back(names[edge.from]);
  }
  return list;
}

}  // namespace pipelab
