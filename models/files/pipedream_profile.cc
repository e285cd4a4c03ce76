#include "models/files/pipedream_profile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/files/graph_order.h"
#include "models/files/number_text.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kBar = " -- ";

class ProfileReader {
 public:
  explicit ProfileReader(absl::string_view what) : what_(what) {}

  absl::StatusOr<PipeDreamProfile> Read(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      absl::ConsumeSuffix(&line, "\r");
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      PIPELAB_RETURN_IF_ERROR(absl::ascii_isspace(line[0]) ? ReadEdge(line) : ReadNode(line));
    }
    if (profile_.nodes.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(what_, ": no nodes: not a PipeDream profile"));
    }
    PIPELAB_RETURN_IF_ERROR(ResolveEdges());
    return std::move(profile_);
  }

 private:
  template <typename... Parts>
  absl::Status Error(int line, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ":", line, ": ", parts...));
  }

  // Descriptions may have bars of their own.
  absl::Status ReadNode(absl::string_view line) {
    std::vector<absl::string_view> parts = absl::StrSplit(line, kBar);
    PipeDreamNode node;
    absl::string_view stage = parts.back();
    if (parts.size() > 3 && absl::ConsumePrefix(&stage, "stage_id=")) {
      int number = 0;
      if (!absl::SimpleAtoi(stage, &number) || number < 0) {
        return Error(line_, parts.back(), ": must be a number from 0");
      }
      node.stage = number;
      parts.pop_back();
    }
    if (parts.size() < 3) {
      return Error(line_, "a node must be \"ID -- DESCRIPTION -- forward_compute_time=...\"");
    }
    node.id = std::string(absl::StripAsciiWhitespace(parts.front()));
    if (node.id.empty() || absl::StrContains(node.id, " ")) {
      return Error(line_, "\"", node.id, "\": an id must be one word");
    }
    node.description = absl::StrJoin(parts.begin() + 1, parts.end() - 1, kBar);
    PIPELAB_RETURN_IF_ERROR(ReadFields(parts.back(), &node));
    const int index = static_cast<int>(profile_.nodes.size());
    if (!index_.emplace(node.id, index).second) {
      return Error(line_, "node \"", node.id, "\" is there twice");
    }
    profile_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ReadFields(absl::string_view fields, PipeDreamNode* node) const {
    constexpr absl::string_view kNames[] = {"forward_compute_time", "backward_compute_time",
                                            "activation_size", "parameter_size"};
    std::map<absl::string_view, absl::string_view> values;
    for (absl::string_view field : absl::StrSplit(fields, ", ")) {
      if (!absl::StrContains(field, "=")) return Error(line_, "\"", field, "\": has no \"=\"");
      const std::pair<absl::string_view, absl::string_view> pair =
          absl::StrSplit(absl::StripAsciiWhitespace(field), absl::MaxSplits('=', 1));
      if (std::find(std::begin(kNames), std::end(kNames), pair.first) == std::end(kNames)) {
        return Error(line_, "\"", pair.first, "\" is unknown; a node has ",
                     absl::StrJoin(kNames, ", "));
      }
      if (!values.insert(pair).second) return Error(line_, pair.first, ": is there twice");
    }
    for (absl::string_view name : kNames) {
      if (values.count(name) == 0) return Error(line_, name, ": missing");
    }
    PIPELAB_ASSIGN_OR_RETURN(node->forward_ms, Number(kNames[0], values[kNames[0]]));
    PIPELAB_ASSIGN_OR_RETURN(node->backward_ms, Number(kNames[1], values[kNames[1]]));
    PIPELAB_ASSIGN_OR_RETURN(node->parameter_bytes, Number(kNames[3], values[kNames[3]]));
    absl::string_view sizes = values[kNames[2]];
    if (absl::ConsumePrefix(&sizes, "[") && !absl::ConsumeSuffix(&sizes, "]")) {
      return Error(line_, kNames[2], "=", values[kNames[2]], ": the list has no end");
    }
    for (absl::string_view size : absl::StrSplit(sizes, ';')) {
      PIPELAB_ASSIGN_OR_RETURN(const double bytes,
                               Number(kNames[2], absl::StripAsciiWhitespace(size)));
      node->activation_bytes.push_back(bytes);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Number(absl::string_view name, absl::string_view text) const {
    double number = 0;
    if (absl::SimpleAtod(text, &number) && IsPlausible(number)) return number;
    return Error(line_, name, "=", text, ": must be a number from 0 to ", kMostPlausible);
  }

  absl::Status ReadEdge(absl::string_view line) {
    const std::vector<absl::string_view> ends =
        absl::StrSplit(absl::StripAsciiWhitespace(line), kBar);
    if (ends.size() != 2) return Error(line_, "an edge must be \"<tab>ID -- ID\"");
    edges_.push_back({line_, ends[0], ends[1]});
    return absl::OkStatus();
  }

  absl::Status ResolveEdges() {
    std::set<std::pair<int, int>> seen;
    std::vector<std::vector<int>> inputs(profile_.nodes.size());
    for (const TextEdge& edge : edges_) {
      PIPELAB_ASSIGN_OR_RETURN(const int from, Find(edge.line, edge.from));
      PIPELAB_ASSIGN_OR_RETURN(const int to, Find(edge.line, edge.to));
      if (!seen.emplace(from, to).second) {
        return Error(edge.line, "the edge ", edge.from, " -- ", edge.to, " is there twice");
      }
      profile_.edges.push_back({from, to});
      inputs[to].push_back(from);
    }
    const GraphOrder order = OrderNodes(inputs);
    if (order.cycle.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        what_,
        ": cyclic nodes: ", CycleText(order.cycle, [&](int i) { return profile_.nodes[i].id; })));
  }

  absl::StatusOr<int> Find(int line, absl::string_view id) const {
    const auto it = index_.find(std::string(id));
    if (it != index_.end()) return it->second;
    return Error(line, "the edge's node \"", id, "\" does not exist");
  }

  struct TextEdge {
    int line;
    absl::string_view from, to;
  };

  const absl::string_view what_;
  int line_ = 0;
  std::map<std::string, int> index_;
  std::vector<TextEdge> edges_;
  PipeDreamProfile profile_;
};

// Nodes that `drop` names, and their edges, left out.
PipeDreamProfile Without(const PipeDreamProfile& profile, const std::vector<bool>& drop) {
  PipeDreamProfile rest;
  std::vector<int> index(profile.nodes.size(), -1);
  for (size_t i = 0; i < profile.nodes.size(); ++i) {
    if (drop[i]) continue;
    index[i] = static_cast<int>(rest.nodes.size());
    rest.nodes.push_back(profile.nodes[i]);
  }
  for (const PipeDreamEdge& edge : profile.edges) {
    if (index[edge.from] >= 0 && index[edge.to] >= 0) {
      rest.edges.push_back({index[edge.from], index[edge.to]});
    }
  }
  return rest;
}

// "node4 Linear"
std::string LayerName(const PipeDreamNode& node) {
  const absl::string_view description = node.description;
  const absl::string_view head =
      absl::StripAsciiWhitespace(description.substr(0, description.find('(')));
  return head.empty() ? node.id : absl::StrCat(node.id, " ", head);
}

}  // namespace

double PipeDreamNode::TotalActivationBytes() const {
  return std::accumulate(activation_bytes.begin(), activation_bytes.end(), 0.0);
}

absl::StatusOr<PipeDreamProfile> ParsePipeDreamProfile(absl::string_view text,
                                                       absl::string_view what) {
  return ProfileReader(what).Read(text);
}

std::string PipeDreamProfileToText(const PipeDreamProfile& profile) {
  std::string text;
  for (const PipeDreamNode& node : profile.nodes) {
    const std::string sizes = absl::StrJoin(
        node.activation_bytes, "; ",
        [](std::string* out, double bytes) { absl::StrAppend(out, NumberText(bytes)); });
    absl::StrAppend(&text, node.id, kBar, node.description, kBar,
                    "forward_compute_time=", NumberText(node.forward_ms),
                    ", backward_compute_time=", NumberText(node.backward_ms), ", activation_size=",
                    node.activation_bytes.size() == 1 ? sizes : absl::StrCat("[", sizes, "]"),
                    ", parameter_size=", NumberText(node.parameter_bytes));
    if (node.stage.has_value()) absl::StrAppend(&text, kBar, "stage_id=", *node.stage);
    text += '\n';
  }
  for (const PipeDreamEdge& edge : profile.edges) {
    absl::StrAppend(&text, "\t", profile.nodes[edge.from].id, kBar, profile.nodes[edge.to].id,
                    "\n");
  }
  return text;
}

PipeDreamProfile WithoutInputs(const PipeDreamProfile& profile) {
  std::vector<bool> drop(profile.nodes.size());
  for (size_t i = 0; i < drop.size(); ++i) {
    drop[i] = absl::StartsWith(profile.nodes[i].description, "Input");
  }
  for (const PipeDreamEdge& edge : profile.edges) drop[edge.to] = false;
  const PipeDreamProfile rest = Without(profile, drop);
  drop.assign(rest.nodes.size(), false);
  for (size_t i = 0; i < drop.size(); ++i) {
    drop[i] = absl::StartsWith(rest.nodes[i].description, "__getitem__");
  }
  for (const PipeDreamEdge& edge : rest.edges) drop[edge.from] = false;
  return Without(rest, drop);
}

LayerList ToLayerList(const PipeDreamProfile& profile, absl::string_view name) {
  LayerList list;
  list.name = std::string(name);
  list.source = "a profile of PipeDream";
  std::set<int> sinks;
  for (size_t i = 0; i < profile.nodes.size(); ++i) {
    const PipeDreamNode& node = profile.nodes[i];
    ListedLayer layer;
    layer.name = LayerName(node);
    layer.parameters = RoundedCount(node.parameter_bytes / 4);
    const auto of_sample = [](double ms) {
      return PassCost<Nanoseconds>{Nanoseconds(0), Nanoseconds(RoundedCount(ms * 1e6))};
    };
    layer.costs = SplitBackward(of_sample(node.forward_ms), of_sample(node.backward_ms),
                                layer.parameters > 0);
    layer.output = Bytes(RoundedCount(node.TotalActivationBytes()));
    list.layers.push_back(std::move(layer));
    sinks.insert(static_cast<int>(i));
  }
  for (const PipeDreamEdge& edge : profile.edges) {
    list.layers[edge.to].inputs.push_back(list.layers[edge.from].name);
    sinks.erase(edge.from);
  }
  for (int sink : sinks) list.outputs.push_back(list.layers[sink].name);
  return list;
}

}  // namespace pipelab
