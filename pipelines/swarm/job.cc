#include "pipelines/swarm/job.h"

#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/messages/int8_blocks.h"
#include "pipelines/cost/chain_partition.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostMicroBatches = 4096, kMostSamples = 65536;
constexpr int64_t kMostWaitMs = 3'600'000;

absl::Status CheckIn(const char* what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", what, "=", value, ": must be from ", least, " to ", most));
}

absl::Status CheckSizes(const swarm::Job& job) {
  PIPELAB_RETURN_IF_ERROR(CheckIn("micro_batches", job.micro_batches(), 1, kMostMicroBatches));
  PIPELAB_RETURN_IF_ERROR(CheckIn("micro_batch_size", job.micro_batch_size(), 1, kMostSamples));
  PIPELAB_RETURN_IF_ERROR(CheckIn("stages", job.stages(), 1, 1024));
  PIPELAB_RETURN_IF_ERROR(CheckIn("steps", job.steps(), 1, int64_t{1} << 40));
  PIPELAB_RETURN_IF_ERROR(CheckIn("wait_ms", job.wait_ms(), 1, kMostWaitMs));
  PIPELAB_RETURN_IF_ERROR(CheckIn("delay", job.delay(), 0, 1));
  PIPELAB_RETURN_IF_ERROR(CheckIn("checkpoint_every", job.fresh_every(), 0, int64_t{1} << 40));
  PIPELAB_RETURN_IF_ERROR(
      CheckIn("rate_decay", job.adam().decay(), 0, static_cast<int>(RateDecay::kCosine)));
  return CheckOptimizer(OptimizerOf(job));
}

}  // namespace

swarm::Job MakeJob(const GptConfig& model, const OptimizerOptions& optimizer) {
  swarm::Job job;
  swarm::Job::Model& m = *job.mutable_model();
  m.set_layers(model.layers);
  m.set_hidden(model.hidden);
  m.set_heads(model.heads);
  m.set_tokens(model.tokens);
  m.set_vocabulary(model.vocabulary);
  m.set_dropout(model.dropout);
  swarm::Job::Adam& a = *job.mutable_adam();
  a.set_learning_rate(optimizer.adam.learning_rate);
  a.set_beta1(optimizer.adam.beta1);
  a.set_beta2(optimizer.adam.beta2);
  a.set_epsilon(optimizer.adam.epsilon);
  a.set_weight_decay(optimizer.adam.weight_decay);
  a.set_warmup_steps(optimizer.schedule.warmup_steps);
  a.set_total_steps(optimizer.schedule.total_steps);
  a.set_decay(static_cast<int>(optimizer.schedule.decay));
  return job;
}

GptConfig ModelOf(const swarm::Job& job) {
  GptConfig model;
  model.layers = job.model().layers();
  model.hidden = job.model().hidden();
  model.heads = job.model().heads();
  model.tokens = job.model().tokens();
  model.vocabulary = job.model().vocabulary();
  model.dropout = job.model().dropout();
  return model;
}

OptimizerOptions OptimizerOf(const swarm::Job& job) {
  const swarm::Job::Adam& from = job.adam();
  AdamOptions adam;
  adam.learning_rate = from.learning_rate();
  adam.beta1 = from.beta1();
  adam.beta2 = from.beta2();
  adam.epsilon = from.epsilon();
  adam.weight_decay = from.weight_decay();
  OptimizerOptions options = OptimizerOptions::Adam(adam);
  options.schedule = {from.warmup_steps(), static_cast<RateDecay>(from.decay()),
                      from.total_steps()};
  return options;
}

absl::StatusOr<SwarmLayout> LayoutOf(const swarm::Job& job) {
  PIPELAB_RETURN_IF_ERROR(CheckSizes(job));
  SwarmLayout layout;
  PIPELAB_ASSIGN_OR_RETURN(layout.graph, BuildGpt(ModelOf(job)));
  if (const std::string own = NetworkOf(layout.graph);
      !job.network().empty() && job.network() != own) {
    return absl::InvalidArgumentError(
        absl::StrCat("the network is \"", own, "\" in this program; it must be \"", job.network(),
                     "\", as in the coordinator's: run the same version"));
  }
  std::vector<double> flops;
  for (const LayerSpec& layer : layout.graph.layers)
    flops.push_back(layer.costs(1).forward.value());
  const absl::StatusOr<std::vector<int>> first = PartitionChain(flops, job.stages());
  if (!first.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages=", job.stages(), ": ", first.status().message()));
  }
  PIPELAB_ASSIGN_OR_RETURN(layout.partition, MakeRangePartition(layout.graph, *first));
  for (int edge : layout.partition.edge_layer) {
    int64_t numbers = job.micro_batch_size();
    for (int64_t size : layout.graph.layers[edge].output_shape) numbers *= size;
    layout.boundary.push_back(numbers);
  }
  layout.boundary.push_back(0);
  return layout;
}

std::string NetworkOf(const ModelGraph& graph) {
  return absl::StrFormat("%s, %016x", graph.name, StableHash(NetworkText(graph)));
}

SwarmSettings SettingsOf(const swarm::Job& job, const SwarmLayout& layout) {
  const swarm::Job::Model& model = job.model();
  SwarmSettings settings = {
      {"--layers", absl::StrCat(model.layers())},
      {"--hidden", absl::StrCat(model.hidden())},
      {"--heads", absl::StrCat(model.heads())},
      {"--context", absl::StrCat(model.tokens())},
      {"vocabulary", absl::StrCat(model.vocabulary())},
      {"dropout", absl::StrCat(model.dropout())},
      {"network", NetworkOf(layout.graph)},
      {"loss", layout.graph.layers[LossLayer(layout.graph)].kind},
      {"optimizer", OptimizerToString(OptimizerOf(job))},
      {"--seed", absl::StrCat(job.seed())},
      {"--micro_batches", absl::StrCat(job.micro_batches())},
      {"--micro_batch_size", absl::StrCat(job.micro_batch_size())},
      {"--order_free", job.order_free() ? "true" : "false"},
      {"--eight_bits", job.eight_bits() ? "true" : "false"},
      {"--update_delay", absl::StrCat(job.delay())},
  };
  // The steps with fresh weights; and the boundaries where values are rounded.
  if (job.delay() > 0)
    settings["with --update_delay=1 --checkpoint_every"] = absl::StrCat(job.fresh_every());
  if (job.eight_bits()) settings["with --eight_bits --stages"] = absl::StrCat(job.stages());
  return settings;
}

std::string FirstDifference(const SwarmSettings& given, const SwarmSettings& right,
                            absl::string_view where) {
  std::set<std::string> names;
  for (const auto& [name, value] : given) names.insert(name);
  for (const auto& [name, value] : right) names.insert(name);
  const auto value_in = [](const SwarmSettings& settings, const std::string& name) {
    const auto it = settings.find(name);
    return it == settings.end() ? "not given" : absl::StrCat("\"", it->second, "\"");
  };
  for (const std::string& name : names) {
    const std::string is = value_in(given, name), must = value_in(right, name);
    if (right.count(name) == 0) {
      return absl::StrCat(name, " is ", is, "; another version has made ", where,
                          ", and it does not say what it must be");
    }
    if (is != must) return absl::StrCat(name, " is ", is, "; it must be ", must, ", as in ", where);
  }
  return "";
}

StateTarget TargetOf(const swarm::Job& job, const SwarmLayout& layout) {
  StateTarget target;
  target.graph = &layout.graph;
  const OptimizerOptions optimizer = OptimizerOf(job);
  target.optimizer = OptimizerKindName(optimizer.kind);
  const auto names = StateNames(optimizer);
  target.optimizer_state.assign(names.begin(), names.end());
  target.seed = job.seed();
  return target;
}

absl::Status CheckValues(const swarm::Values& values, int64_t numbers, bool eight_bits) {
  const int64_t expected = eight_bits ? Int8MessageBytes(numbers, kInt8Block)
                                      : numbers * static_cast<int64_t>(sizeof(float));
  const auto found = static_cast<int64_t>(values.bytes().size());
  if (found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("values of ", found, " bytes, where ", numbers, " numbers have ", expected));
}

absl::Status ToValues(absl::Span<const float> numbers, bool eight_bits, swarm::Values* values) {
  if (eight_bits) {
    PIPELAB_ASSIGN_OR_RETURN(*values->mutable_bytes(), ToInt8Message(numbers));
  } else {
    values->mutable_bytes()->assign(reinterpret_cast<const char*>(numbers.data()),
                                    numbers.size() * sizeof(float));
  }
  return absl::OkStatus();
}

absl::Status FromValues(const swarm::Values& values, bool eight_bits, absl::Span<float> numbers) {
  PIPELAB_RETURN_IF_ERROR(CheckValues(values, static_cast<int64_t>(numbers.size()), eight_bits));
  if (eight_bits) return FromInt8Message(values.bytes(), numbers);
  if (!numbers.empty()) std::memcpy(numbers.data(), values.bytes().data(), values.bytes().size());
  return absl::OkStatus();
}

}  // namespace pipelab
