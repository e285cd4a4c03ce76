#include "tests/device_schemes.h"

#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/training/comparison.h"
#include "kernels/cpu/cpu_devices.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/versions.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tests/trained_jobs.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kSchemeSteps = 3;
// Another backend's kernels round otherwise; after a few steps of training losses still have their
// first digits. bfloat16 has 8 bits: what a loss is made of is off by some 2^-8 of itself, its
// square by twice that, and each step goes on from there.
constexpr double kNearCpu = 2e-3, kNearCpuInBFloat16 = 0x1.0p-5;

absl::StatusOr<std::vector<double>> TrainSerially(const ComputeDevices& devices,
                                                  const TrainedJob& job,
                                                  std::vector<int> sum_of_micro_batch,
                                                  std::vector<int64_t> slices,
                                                  std::vector<int> stage_of_layer) {
  SerialOptions options;
  options.num_micro_batches = job.options.config.micro_batches;
  options.micro_batch_size = job.options.samples();
  options.data = job.data;
  options.optimizer = job.options.optimizer;
  options.sum_of_micro_batch = std::move(sum_of_micro_batch);
  options.slices = std::move(slices);
  options.stage_of_layer = std::move(stage_of_layer);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ComputeDevice> on, devices(1));
  Arena arena(on[0].memory);
  const std::unique_ptr<Backend> backend = on[0].make_backend(&arena);
  PIPELAB_ASSIGN_OR_RETURN(auto trainer, SerialTrainer::Create(*job.graph, backend.get(), options));
  std::vector<double> losses;
  for (int step = 0; step < kSchemeSteps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(const double loss, trainer->Step());
    losses.push_back(loss);
  }
  return losses;
}

// Serial trainings that several schemes are compared with run once.
class SerialRuns {
 public:
  explicit SerialRuns(const ComputeDevices& devices) : devices_(devices) {}

  absl::StatusOr<std::vector<double>> OnCpu(const TrainedJob& job) {
    return Run(CpuDevices(), /*cpu=*/true, job, {}, {}, {});
  }
  absl::StatusOr<std::vector<double>> OnDevice(const TrainedJob& job,
                                               std::vector<int> sum_of_micro_batch = {},
                                               std::vector<int64_t> slices = {},
                                               std::vector<int> stage_of_layer = {}) {
    return Run(devices_, /*cpu=*/false, job, std::move(sum_of_micro_batch), std::move(slices),
               std::move(stage_of_layer));
  }

 private:
  using Key = std::tuple<bool, const ModelGraph*, int, std::vector<int>, std::vector<int64_t>,
                         std::vector<int>>;

  absl::StatusOr<std::vector<double>> Run(const ComputeDevices& devices, bool cpu,
                                          const TrainedJob& job, std::vector<int> sums,
                                          std::vector<int64_t> slices, std::vector<int> stages) {
    const Key key = {cpu, job.graph, job.options.config.micro_batches, sums, slices, stages};
    const auto it = runs_.find(key);
    if (it != runs_.end()) return it->second;
    PIPELAB_ASSIGN_OR_RETURN(runs_[key], TrainSerially(devices, job, std::move(sums),
                                                       std::move(slices), std::move(stages)));
    return runs_[key];
  }

  const ComputeDevices devices_;
  std::map<Key, std::vector<double>> runs_;
};

std::string FarFromCpu(const std::vector<double>& losses, const std::vector<double>& cpu,
                       double near) {
  for (size_t i = 0; i < losses.size(); ++i) {
    if (std::abs(losses[i] - cpu[i]) <= near * std::abs(cpu[i])) continue;
    return absl::StrCat("step ", i + 1, ": a loss of ", losses[i], " where the CPU has ", cpu[i]);
  }
  return "";
}

// What is held and sent, against the simulator's prediction; "" where all is equal.
std::string Unpredicted(const Trace& predicted, const Trace& measured,
                        const TrainingOptions& options) {
  for (size_t rank = 0; rank < measured.devices.size(); ++rank) {
    const DeviceTrace& p = predicted.devices[rank / options.config.tensor];
    const DeviceTrace& m = measured.devices[rank];
    if (m.peak_activation == p.peak_activation && m.peak_state == p.peak_state &&
        m.bytes_sent == p.bytes_sent && m.collective_bytes == p.collective_bytes) {
      continue;
    }
    return absl::StrCat("rank ", rank, " held or sent other bytes than predicted");
  }
  return "";
}

absl::StatusOr<SchemeOutcome> RunScheme(const ComputeDevices& devices, TrainedJob job,
                                        SerialRuns* serial_runs) {
  TrainingOptions options = job.options;
  options.devices = devices;
  const bool bfloat16 = devices.activations() == DataType::kBFloat16;
  PIPELAB_ASSIGN_OR_RETURN(auto training, PipelineTraining::Create(*job.graph, *job.data, options));
  const Schedule& schedule = training->program().schedule;
  SerialRuns local_runs(devices);
  if (!schedule.stages.AllGradientsAreOwn() && !HasOwnSteps(schedule)) {  // with heads of its own
    job.graph = &training->graph();
    serial_runs = &local_runs;
  }
  PIPELAB_ASSIGN_OR_RETURN(const Trace predicted, Simulate(training->program(), training->costs()));
  SchemeResult result;
  result.config = options.config;
  result.num_slices = schedule.num_slices;
  result.slices = training->slices();
  const bool in_order = SumsInLayerOrder(*job.graph, training->partition());
  result.must_be_bit_equal = KeepsMicroBatchOrder(schedule) && options.config.tensor == 1 &&
                             options.config.context == 1 && in_order;
  if (options.config.context > 1) {  // two chunks of each sample on each device
    result.num_slices = static_cast<int>(2 * options.config.context * options.samples());
  }
  AllowForDivision(*job.graph, {options.config.tensor, false, options.config.context}, bfloat16,
                   &result);
  std::string unpredicted;
  for (int step = 0; step < kSchemeSteps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(const TrainingStep done, training->Step());
    result.losses.push_back(done.loss);
    if (unpredicted.empty()) {
      unpredicted = Unpredicted(predicted, done.trace, options);
    }
  }
  const bool replicas = schedule.placement.num_replicas() > 1;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> serial, serial_runs->OnDevice(job));
  if (replicas || schedule.num_slices > 1 || !in_order) {
    result.part = replicas ? "replica" : schedule.num_slices > 1 ? "slice" : "stage";
    PIPELAB_ASSIGN_OR_RETURN(
        result.serial_by_part,
        serial_runs->OnDevice(
            job, replicas ? schedule.placement.replica_of_micro_batch : std::vector<int>(),
            result.slices, in_order ? std::vector<int>() : training->partition().stage_of_layer));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> cpu, serial_runs->OnCpu(job));
  Equality equality = CompareLosses(result, serial);
  std::string far = FarFromCpu(serial, cpu, bfloat16 ? kNearCpuInBFloat16 : kNearCpu);
  if (HasOwnSteps(schedule)) {  // steps on older weights: no serial loop has its losses
    equality = {};
    equality.ok = true;
    equality.text = "asynchronous: ran, with finite losses";
    for (double loss : result.losses) equality.ok &= std::isfinite(loss);
  }
  const bool ok = equality.ok && far.empty() && unpredicted.empty();
  return SchemeOutcome{job.name, ok ? "ok" : "WRONG",
                       !far.empty()           ? far
                       : !unpredicted.empty() ? unpredicted
                                              : equality.text};
}

}  // namespace

std::vector<SchemeOutcome> CheckSchemes(const ComputeDevices& devices, bool quick) {
  const TrainedJobs jobs;
  SerialRuns serial_runs(devices);
  std::vector<SchemeOutcome> outcomes;
  for (const TrainedJob& job : jobs.all()) {
    if (quick && !job.quick) continue;
    const absl::StatusOr<SchemeOutcome> outcome = RunScheme(devices, job, &serial_runs);
    outcomes.push_back(
        outcome.ok() ? *outcome
                     : SchemeOutcome{job.name, "WRONG", std::string(outcome.status().message())});
  }
  return outcomes;
}

std::vector<SchemeOutcome> SkippedSchemes(const std::string& why) {
  const TrainedJobs jobs;
  std::vector<SchemeOutcome> outcomes;
  for (const TrainedJob& job : jobs.all()) outcomes.push_back({job.name, "skipped", why});
  return outcomes;
}

}  // namespace pipelab
