// Steps of small networks that are trained on threads of this process: the bits of losses, and what
// devices held and sent. The reference kernels compute, whose bits are those of any machine.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/compute_device.h"
#include "kernels/reference/reference_backend.h"
#include "pipelines/runtime/training.h"
#include "tests/program_digests.h"
#include "tests/program_text.h"
#include "tests/trained_jobs.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kDigestedSteps = 2;

ComputeDevices ReferenceDevices() {
  return ComputeDevices([](int count) -> absl::StatusOr<std::vector<ComputeDevice>> {
    return std::vector<ComputeDevice>(count, ComputeDevice{nullptr, &MakeReferenceBackend});
  });
}

std::string BitsText(double loss) {
  uint64_t bits = 0;
  std::memcpy(&bits, &loss, sizeof(bits));
  return absl::StrCat("loss ", absl::Hex(bits, absl::kZeroPad16), "\n");
}

absl::StatusOr<CaseTexts> Trained(const TrainedJob& job, TrainingOptions options) {
  options.devices = ReferenceDevices();
  PIPELAB_ASSIGN_OR_RETURN(const auto training,
                           PipelineTraining::Create(*job.graph, *job.data, options));
  CaseTexts texts;
  texts.lists = ListsText(training->program());
  for (int step = 0; step < kDigestedSteps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(const TrainingStep done, training->Step());
    texts.losses += BitsText(done.loss);
    texts.memory += PeaksText(done.trace);
    texts.traffic += TrafficText(done.trace);
  }
  return texts;
}

}  // namespace

std::vector<DigestLine> TrainedLines() {
  std::vector<DigestLine> lines;
  const auto jobs = std::make_shared<TrainedJobs>();
  for (const TrainedJob& job : jobs->all()) {
    DigestLine& line = lines.emplace_back();
    line.name = absl::StrCat("train/", job.name);
    const auto add = [&](const char* name, const TrainingOptions& options) {
      line.cases.push_back({absl::StrCat(line.name, "/", name),
                            [jobs, &job, options] { return Trained(job, options); }});
    };
    add("plain", job.options);
    if (job.name != job.options.config.scheme) continue;  // further ways of the scheme alone
    TrainingOptions recompute = job.options;
    recompute.config.recompute = Recompute::kFull;
    add("recompute", recompute);
    TrainingOptions copies = job.options;
    copies.config.pipeline = 2;
    copies.config.data = 4;  // a sum of two has the same bits in any order
    copies.config.micro_batch_size = 1;
    add("copies", copies);
    for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
      copies.config.sharding = sharding;
      copies.config.overlap_data = sharding == Sharding::kFully;
      add(ShardingName(sharding), copies);
    }
  }
  return lines;
}

}  // namespace pipelab
