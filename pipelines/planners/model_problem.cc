#include "pipelines/planners/model_problem.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "pipelines/cost/layer_times.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kTensorsOfAdam = 4;  // value, gradient, two moments

absl::Status CheckModelOptions(const ModelGraph& graph, const ModelProblemOptions& options) {
  if (options.micro_batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro-batches of ", options.micro_batch_size, " samples"));
  }
  if (options.batch_samples < 0 || options.batch_samples % options.micro_batch_size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", options.batch_samples,
                     " samples is not a whole number of micro-batches "
                     "of ",
                     options.micro_batch_size));
  }
  const std::vector<int>& groups = options.group_of_layer;
  if (!groups.empty() && groups.size() != graph.layers.size()) {
    return absl::InvalidArgumentError(absl::StrCat("groups of ", groups.size(), " layers for ",
                                                   graph.layers.size(), " of \"", graph.name,
                                                   "\""));
  }
  return absl::OkStatus();
}

class Builder {
 public:
  // Without a cluster there are no costs.
  Builder(const ModelGraph& graph, const ClusterSpec* cluster, const ModelProblemOptions& options)
      : graph_(graph), cluster_(cluster), options_(options) {
    if (cluster != nullptr) machine_ = {cluster->device, options.type};
  }

  absl::StatusOr<PlanProblem> Build() {
    problem_.name = graph_.name;
    if (cluster_ != nullptr) AddMachine();
    MakeOperators();
    for (PlanOperator& op : problem_.operators) {
      PIPELAB_RETURN_IF_ERROR(AddVariants(&op));
    }
    if (cluster_ != nullptr && options_.token_step > 0) PIPELAB_RETURN_IF_ERROR(AddSlices());
    AddEdges();
    return std::move(problem_);
  }

 private:
  int GroupOf(int layer) const {
    return options_.group_of_layer.empty() ? layer : options_.group_of_layer[layer];
  }
  const LayerSpec& Layer(int layer) const { return graph_.layers[layer]; }

  // On a machine that computes with this type.
  double BytesOn(Bytes bytes) const {
    return static_cast<double>(bytes.value()) * static_cast<double>(BytesOf(options_.type)) / 4;
  }
  double OutputBytes(int layer) const {
    return BytesOn(Layer(layer).costs(options_.micro_batch_size).output);
  }

  void AddMachine() {
    problem_.devices = options_.devices;
    problem_.micro_batch_size = options_.micro_batch_size;
    problem_.batch_samples = std::max(options_.batch_samples, options_.micro_batch_size);
    problem_.micro_batches = problem_.batch_samples / options_.micro_batch_size;
    problem_.micro_batch_sizes = options_.micro_batch_sizes;
    problem_.memory_bytes = static_cast<double>(cluster_->device.memory.value.value());
    int64_t below = 1;
    for (const ClusterLevel& level : cluster_->levels) {
      const int64_t size = std::min(level.size, (options_.devices + below - 1) / below);
      problem_.bandwidth = level.connection.bandwidth.value.value();
      problem_.latency = ToSeconds(level.connection.latency.value);
      problem_.levels.push_back({size, problem_.bandwidth, problem_.latency});
      below *= level.size;
      if (below >= options_.devices) break;
    }
  }

  // The words between '/' that the layers' names begin with.
  std::string CommonName(const std::vector<int>& layers) const {
    std::vector<std::string> common = absl::StrSplit(Layer(layers[0]).name, '/');
    for (int i : layers) {
      const std::vector<std::string> words = absl::StrSplit(Layer(i).name, '/');
      size_t equal = 0;
      while (equal < std::min(common.size(), words.size()) && common[equal] == words[equal]) {
        ++equal;
      }
      common.resize(equal);
    }
    return absl::StrJoin(common, "/");
  }

  void MakeOperators() {
    for (int i = 0; i < static_cast<int>(graph_.layers.size()); ++i) {
      const int group = GroupOf(i);
      if (group >= problem_.size()) problem_.operators.resize(group + 1);
      problem_.operators[group].layers.push_back(i);
    }
    std::set<std::string> ids;
    for (PlanOperator& op : problem_.operators) {
      op.id = CommonName(op.layers);
      if (op.id.empty() || !ids.insert(op.id).second) {
        op.id = Layer(op.layers[0]).name;  // several groups have these words
        ids.insert(op.id);
      }
      op.name = op.id;
    }
  }

  // The times of the operator's layers together, plainly.
  absl::StatusOr<PlanTimes> TimesOn(const PlanOperator& op, int64_t micro_batch_size) const {
    Nanoseconds forward, all;
    for (int i : op.layers) {
      PIPELAB_ASSIGN_OR_RETURN(const LayerTimes t, TimesOf(Layer(i), machine_, micro_batch_size));
      forward += t.forward;
      all += t.forward + t.backward_input + t.backward_weight;
    }
    return PlanTimes{ToSeconds(forward), ToSeconds(all)};
  }

  // Times of token slices. Layers of one kind and size have the same, and are asked once.
  absl::Status AddSlices() {
    PIPELAB_RETURN_IF_ERROR(CheckTakesSlices(graph_));
    problem_.tokens = Layer(0).output_shape.empty() ? 0 : Layer(0).output_shape[0];
    problem_.token_step = options_.token_step;
    if (problem_.tokens < 1 || problem_.tokens % options_.token_step != 0) {
      return absl::InvalidArgumentError(absl::StrCat("--token_step=", options_.token_step,
                                                     ": must divide the ", problem_.tokens,
                                                     " tokens of ", graph_.name));
    }
    std::vector<int64_t> sizes = options_.micro_batch_sizes;
    if (sizes.empty()) sizes = {options_.micro_batch_size};
    std::map<std::string, SliceTable> known;
    for (PlanOperator& op : problem_.operators) {
      for (int i : op.layers) {
        SliceTable& table = known[KindOf(Layer(i))];
        if (table.empty()) {
          PIPELAB_ASSIGN_OR_RETURN(table, SliceTableOf(Layer(i), sizes));
        }
        AddTo(table, &op.slice_times);
      }
    }
    return absl::OkStatus();
  }

  using SliceTable = std::vector<std::vector<std::vector<PlanTimes>>>;

  static std::string KindOf(const LayerSpec& layer) {
    std::string kind = absl::StrCat(layer.kind, ":", absl::StrJoin(layer.output_shape, ","));
    for (const auto& shape : layer.input_shapes) {
      absl::StrAppend(&kind, ";", absl::StrJoin(shape, ","));
    }
    for (const auto& [name, value] : layer.attributes) absl::StrAppend(&kind, " ", name, value);
    for (const ParameterSpec& p : layer.parameters) absl::StrAppend(&kind, " ", p.size());
    return kind;
  }

  absl::StatusOr<SliceTable> SliceTableOf(const LayerSpec& layer,
                                          const std::vector<int64_t>& sizes) const {
    const int64_t step = options_.token_step, units = problem_.tokens / step;
    SliceTable table;
    for (int64_t micro_batch_size : sizes) {
      table.emplace_back();
      for (int64_t length = 1; length <= units; ++length) {
        table.back().emplace_back();
        for (int64_t before = 0; before + length <= units; ++before) {
          PIPELAB_ASSIGN_OR_RETURN(const LayerTimes t, TimesOf(layer, machine_, micro_batch_size,
                                                               {before * step, length * step}));
          table.back().back().push_back(
              {ToSeconds(t.forward), ToSeconds(t.forward + t.backward_input + t.backward_weight)});
        }
      }
    }
    return table;
  }

  static void AddTo(const SliceTable& table, SliceTable* sum) {
    if (sum->empty()) {
      *sum = table;
      return;
    }
    for (size_t s = 0; s < table.size(); ++s) {
      for (size_t l = 0; l < table[s].size(); ++l) {
        for (size_t b = 0; b < table[s][l].size(); ++b) {
          (*sum)[s][l][b].forward += table[s][l][b].forward;
          (*sum)[s][l][b].time += table[s][l][b].time;
        }
      }
    }
  }

  absl::Status AddTimes(const PlanOperator& op, PlanVariant* variant) const {
    PIPELAB_ASSIGN_OR_RETURN(const PlanTimes times, TimesOn(op, options_.micro_batch_size));
    variant->forward_time = times.forward;
    variant->time = times.time;
    for (const int64_t micro_batch_size : options_.micro_batch_sizes) {
      PIPELAB_ASSIGN_OR_RETURN(variant->times.emplace_back(), TimesOn(op, micro_batch_size));
    }
    return absl::OkStatus();
  }

  absl::Status AddVariants(PlanOperator* op) const {
    PlanVariant plain;
    plain.name = "plain";
    if (cluster_ != nullptr) PIPELAB_RETURN_IF_ERROR(AddTimes(*op, &plain));
    double outside = 0;
    for (int i : op->layers) {
      for (const ParameterSpec& p : Layer(i).parameters) {
        plain.parameter_bytes += 4.0 * static_cast<double>(p.size());
      }
      plain.in_flight_bytes += BytesOn(Layer(i).costs(options_.micro_batch_size).kept);
      for (int input : Layer(i).inputs) {
        plain.in_flight_bytes += OutputBytes(input);
        if (GroupOf(input) != GroupOf(i)) outside += OutputBytes(input);
      }
    }
    plain.fixed_bytes = plain.parameter_bytes * kTensorsOfAdam;
    std::vector<PlanVariant>& variants = op->variants[1];
    variants.push_back(plain);
    if (!options_.recompute) return absl::OkStatus();
    PlanVariant again = std::move(plain);
    again.name = "recompute";
    again.recompute = true;
    again.time += again.forward_time;
    for (PlanTimes& t : again.times) t.time += t.forward;
    again.fixed_bytes += again.in_flight_bytes - outside;  // while its backward runs
    again.in_flight_bytes = outside;
    variants.push_back(std::move(again));
    return absl::OkStatus();
  }

  // One for each operator and each other that takes its outputs, with the bytes of all of these.
  void AddEdges() {
    std::map<std::pair<int, int>, std::set<int>> carried;
    for (int i = 0; i < static_cast<int>(graph_.layers.size()); ++i) {
      for (int input : Layer(i).inputs) {
        if (GroupOf(input) != GroupOf(i)) carried[{GroupOf(input), GroupOf(i)}].insert(input);
      }
    }
    std::map<int, std::set<int>> leaving;
    for (const auto& [ends, layers] : carried) {
      double bytes = 0;
      for (int layer : layers) bytes += OutputBytes(layer);
      problem_.edges.push_back({ends.first, ends.second, bytes});
      leaving[ends.first].insert(layers.begin(), layers.end());
    }
    for (const auto& [from, layers] : leaving) {
      for (int layer : layers) problem_.operators[from].output_bytes += OutputBytes(layer);
    }
  }

  const ModelGraph& graph_;
  const ClusterSpec* const cluster_;
  const ModelProblemOptions& options_;
  Machine machine_;
  PlanProblem problem_;
};

}  // namespace

absl::StatusOr<PlanProblem> ModelProblem(const ModelGraph& graph, const ClusterSpec& cluster,
                                         const ModelProblemOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckModelOptions(graph, options));
  return Builder(graph, &cluster, options).Build();
}

PlanProblem ModelOperators(const ModelGraph& graph, const std::vector<int>& group_of_layer) {
  ModelProblemOptions options;
  options.group_of_layer = group_of_layer;
  absl::StatusOr<PlanProblem> problem = Builder(graph, nullptr, options).Build();
  CHECK(problem.ok()) << problem.status();
  problem->bandwidth = 1;  // of nothing: costs are not there
  const absl::Status finished = FinishProblem(&*problem, graph.name);
  CHECK(finished.ok()) << finished;
  return *std::move(problem);
}

}  // namespace pipelab
