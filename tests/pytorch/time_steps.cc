// Times training steps of one of the compared networks on one device and one thread, for
// tools/pytorch/step_speed.py, which times the same step in PyTorch.
//
//   tools/bazel run //tests/pytorch:time_steps -- --network=resnet --steps=10
//   {"cpu_milliseconds": [41.0, ...], "losses": [2.3, ...], "milliseconds": [41.2, ...],
//    "network": "resnet", "parameters": 872106}
//
// Batches are drawn beforehand: the data's cost is no part of the step's. Steps use --batches of
// them in turn; the first step warms up and is timed like the others.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/layers/test_layers.h"
#include "pipelines/runtime/training.h"
#include "tests/pytorch/networks.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, network, "gpt", "the network's name");
ABSL_FLAG(std::string, sizes, "speed", "table or speed");
ABSL_FLAG(int, steps, 10, "training steps");
ABSL_FLAG(int, batches, 2, "different batches");

namespace pipelab {
namespace {

// The first batches of another source, from memory.
class DrawnData : public BatchSource {
 public:
  DrawnData(const BatchSource& source, int64_t batches, int64_t samples)
      : BatchSource(source.fields()), batches_(batches) {
    for (size_t i = 0; i < fields().size(); ++i) {
      const int field = static_cast<int>(i);
      const bool ids = fields()[i].type == FieldType::kId;
      for (int64_t step = 0; step < batches; ++step) {
        floats_.emplace_back(ids ? 0 : samples * fields()[i].size());
        ids_.emplace_back(ids ? samples * fields()[i].size() : 0);
        if (ids) {
          source.FillIds(field, step, 0, absl::MakeSpan(ids_.back()));
        } else {
          source.FillFloats(field, step, 0, absl::MakeSpan(floats_.back()));
        }
      }
    }
  }

  void FillFloats(int field, int64_t step, int64_t first_sample,
                  absl::Span<float> out) const override {
    CopyTo(floats_, field, step, first_sample, out);
  }
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out) const override {
    CopyTo(ids_, field, step, first_sample, out);
  }

 private:
  template <class T>
  void CopyTo(const std::vector<std::vector<T>>& from, int field, int64_t step,
              int64_t first_sample, absl::Span<T> out) const {
    const std::vector<T>& batch = from[field * batches_ + step % batches_];
    const auto begin = batch.begin() + first_sample * fields()[field].size();
    std::copy(begin, begin + static_cast<int64_t>(out.size()), out.begin());
  }

  const int64_t batches_;
  std::vector<std::vector<float>> floats_;  // [field * batches + batch]
  std::vector<std::vector<int32_t>> ids_;
};

absl::Status TimeSteps() {
  const std::string name = absl::GetFlag(FLAGS_network);
  if (name.empty()) return absl::InvalidArgumentError("--network: missing; give one's name");
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ComparedNetwork> chosen,
                           ChosenNetworks(absl::GetFlag(FLAGS_sizes), name));
  const ComparedNetwork& n = chosen[0];
  const int steps = absl::GetFlag(FLAGS_steps), batches = absl::GetFlag(FLAGS_batches);
  if (steps < 1 || batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps=", steps, " --batches=", batches, ": must be at least 1"));
  }
  const DrawnData data(RandomData(TestFieldsOf(n.graph)), batches,
                       n.micro_batch_size * n.num_micro_batches);
  TrainingOptions options;
  options.config.scheme = "1f1b";
  options.config.pipeline = 1;
  options.config.micro_batches = n.num_micro_batches;
  options.config.micro_batch_size = n.micro_batch_size;
  options.seed = kComparedSeed;
  options.optimizer = n.optimizer;
  options.trace = false;
  PIPELAB_ASSIGN_OR_RETURN(const auto training, PipelineTraining::Create(n.graph, data, options));
  nlohmann::json out = {{"network", n.name}, {"parameters", n.graph.num_parameters()}};
  for (int i = 0; i < steps; ++i) {
    const absl::Time begin = absl::Now();
    const std::clock_t cpu_begin = std::clock();  // of all threads
    PIPELAB_ASSIGN_OR_RETURN(const TrainingStep step, training->Step());
    out["milliseconds"].push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
    out["cpu_milliseconds"].push_back(1e3 * static_cast<double>(std::clock() - cpu_begin) /
                                      CLOCKS_PER_SEC);
    out["losses"].push_back(step.loss);
  }
  std::printf("%s", DumpJson(out).c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = pipelab::TimeSteps();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
