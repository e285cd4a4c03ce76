// Writes what PyTorch needs to train the compared networks as we do: initial weights, batches and
// sizes, in one safetensors file.
//
//   tools/bazel run //tests/pytorch:export_networks          # to results/networks.safetensors
//   tools/bazel run //tests/pytorch:export_networks -- --sizes=speed --network=gpt --steps=1
//       --output=gpt.safetensors
//
// Tensors: "gpt/parameter/block0/attention/wqkv" (a tied one once, by its tie's name) and
// "gpt/data/tokens" [steps, samples of a step, ...]. Metadata "gpt": JSON with the network's
// settings, micro_batches, seed, parameters, and the optimizer's numbers.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/checkpoint/safetensors.h"
#include "models/layers/initialize.h"
#include "models/layers/optimizer.h"
#include "models/layers/test_layers.h"
#include "tests/pytorch/networks.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, sizes, "table", "table or speed");
ABSL_FLAG(std::string, network, "", "one network's name; empty: all");
ABSL_FLAG(int, steps, 20, "steps to write batches of");
ABSL_FLAG(std::string, output, "", "the file to write; empty: results/networks.safetensors");

namespace pipelab {
namespace {

void AddParameters(const ComparedNetwork& n, Safetensors* file) {
  for (const LayerSpec& layer : n.graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      std::vector<float> value(p.size());
      InitializeParameter(p, kComparedSeed, absl::MakeSpan(value));
      file->tensors[absl::StrCat(n.name, "/parameter/", ValueName(p))] = {p.shape,
                                                                          std::move(value)};
    }
  }
}

void AddData(const ComparedNetwork& n, int steps, Safetensors* file) {
  const RandomData data(TestFieldsOf(n.graph));
  const int64_t samples = n.micro_batch_size * n.num_micro_batches;
  for (size_t i = 0; i < data.fields().size(); ++i) {
    const DataField& field = data.fields()[i];
    const int64_t size = samples * field.size();
    StoredTensor stored;
    stored.shape = {steps, samples};
    stored.shape.insert(stored.shape.end(), field.shape.begin(), field.shape.end());
    std::vector<float> floats(field.type == FieldType::kFloat ? steps * size : 0);
    std::vector<int32_t> ids(field.type == FieldType::kId ? steps * size : 0);
    for (int64_t step = 0; step < steps; ++step) {
      if (field.type == FieldType::kFloat) {
        data.FillFloats(static_cast<int>(i), step, 0,
                        absl::MakeSpan(floats).subspan(step * size, size));
      } else {
        data.FillIds(static_cast<int>(i), step, 0, absl::MakeSpan(ids).subspan(step * size, size));
      }
    }
    if (field.type == FieldType::kFloat) {
      stored.values = std::move(floats);
    } else {
      stored.values = std::move(ids);
    }
    file->tensors[absl::StrCat(n.name, "/data/", field.name)] = std::move(stored);
  }
}

// Numbers as the floats are: 0.999f is not 0.999.
void AddOptimizer(const OptimizerOptions& o, nlohmann::json* settings) {
  nlohmann::json& s = *settings;
  s["optimizer"] = OptimizerKindName(o.kind);
  s["learning_rate"] = BaseLearningRate(o);
  switch (o.kind) {
    case OptimizerKind::kAdam:
      s["beta1"] = o.adam.beta1;
      s["beta2"] = o.adam.beta2;
      s["epsilon"] = o.adam.epsilon;
      s["weight_decay"] = o.adam.weight_decay;
      break;
    case OptimizerKind::kSgd:
      s["momentum"] = o.sgd.momentum;
      s["nesterov"] = o.sgd.nesterov;
      s["weight_decay"] = o.sgd.weight_decay;
      break;
    case OptimizerKind::kRmsProp:
      s["decay"] = o.rmsprop.decay;
      s["momentum"] = o.rmsprop.momentum;
      s["epsilon"] = o.rmsprop.epsilon;
      s["weight_decay"] = o.rmsprop.weight_decay;
      break;
  }
  s["warmup_steps"] = o.schedule.warmup_steps;
  s["rate_decay"] = RateDecayName(o.schedule.decay);
  s["total_steps"] = o.schedule.total_steps;
  s["clip_norm"] = o.clip_norm;
}

void AddSettings(const ComparedNetwork& n, Safetensors* file) {
  nlohmann::json settings = n.settings;
  settings["micro_batches"] = n.num_micro_batches;
  settings["seed"] = kComparedSeed;
  AddOptimizer(n.optimizer, &settings);
  settings["parameters"] = n.graph.num_parameters();
  file->metadata[n.name] = DumpJson(settings);
}

absl::Status Export() {
  PIPELAB_ASSIGN_OR_RETURN(
      const std::vector<ComparedNetwork> networks,
      ChosenNetworks(absl::GetFlag(FLAGS_sizes), absl::GetFlag(FLAGS_network)));
  const int steps = absl::GetFlag(FLAGS_steps);
  if (steps < 1 || steps > 1000) {
    return absl::InvalidArgumentError(absl::StrCat("--steps=", steps, ": must be from 1 to 1000"));
  }
  Safetensors file;
  for (const ComparedNetwork& n : networks) {
    AddParameters(n, &file);
    AddData(n, steps, &file);
    AddSettings(n, &file);
  }
  const std::string path = ResolveOutputPath(absl::GetFlag(FLAGS_output), "networks.safetensors");
  const size_t folder = path.rfind('/');
  if (folder != std::string::npos) {
    PIPELAB_RETURN_IF_ERROR(MakeDirectories(path.substr(0, folder)));
  }
  PIPELAB_RETURN_IF_ERROR(WriteSafetensors(path, file));
  std::printf("%s: %zu networks\n", path.c_str(), networks.size());
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = pipelab::Export();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
