#include "pipelines/runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "pipelines/runtime/describe.h"
#include "pipelines/runtime/device_plan.h"
#include "pipelines/runtime/device_runner.h"
#include "pipelines/runtime/progress_watch.h"
#include "pipelines/runtime/slice_exchanger.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// How long RunStep stays for devices that are inside a module when the run fails, at most.
constexpr absl::Duration kGrace = absl::Seconds(2);
// How many devices are named beside the one that has waited longest.
constexpr int kMostOthers = 3;

std::chrono::nanoseconds ToChrono(absl::Duration d) {
  return absl::ToChronoNanoseconds(std::min(d, absl::Hours(24 * 365)));
}

// Between two looks at what the devices do.
std::chrono::nanoseconds TickOf(const ExecutorOptions& options) {
  const absl::Duration quarter = std::min(options.wait_limit, options.action_limit) / 4;
  return ToChrono(std::min(std::max(quarter, absl::Milliseconds(5)), absl::Seconds(1)));
}

struct Device {
  DeviceSetup setup;
  std::unique_ptr<DeviceRunner> runner;
  DeviceStep step;       // of the device's thread while it runs
  bool running = false;  // guarded by the executor's mutex
  std::thread thread;
};

class ThreadedExecutor : public Executor {
 public:
  ThreadedExecutor(std::vector<std::unique_ptr<Device>> devices, const ExecutorOptions& options)
      : options_(options),
        devices_(std::move(devices)),
        watch_(options.wait_limit, options.action_limit) {
    for (auto& device : devices_) {
      device->setup.communicator->SetWhereabouts(
          [runner = device->runner.get()] { return runner->Whereabouts(); });
      device->thread = std::thread([this, d = device.get()] { DeviceMain(*d); });
    }
  }

  // A module that never returns keeps the executor from ending: its thread uses the program.
  ~ThreadedExecutor() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    start_.notify_all();
    for (auto& device : devices_) device->thread.join();
    for (auto& device : devices_) {
      device->setup.communicator->SetWhereabouts(nullptr);
      device->runner->Clear();
    }
  }

  absl::StatusOr<Trace> RunStep() override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!FirstError().ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the executor cannot be used after an error: ", FirstError().message()));
    }
    for (auto& device : devices_) device->running = true;
    running_ = devices_.size();
    ++generation_;
    start_.notify_all();
    WaitForDevices(lock);
    if (!FirstError().ok()) return FirstError();
    return MakeTrace();
  }

  int64_t step_begin_ns() const override { return step_begin_ns_; }

 private:
  void DeviceMain(Device& device) {
    for (int64_t step = 1;; ++step) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        start_.wait(lock, [&] { return stop_ || generation_ >= step; });
        if (generation_ < step) return;
      }
      const Bytes sent = SentTo(device.setup.copies), in_context = SentInContext(device.setup);
      absl::Status status = device.runner->Run(&device.step);
      device.step.trace.collective_bytes += SentTo(device.setup.copies) - sent;
      device.step.trace.tensor_bytes += SentInContext(device.setup) - in_context;
      if (!status.ok()) Report(device, std::move(status));
      std::lock_guard<std::mutex> lock(mutex_);
      device.running = false;
      if (--running_ == 0) done_.notify_one();
    }
  }

  static Bytes SentTo(const std::vector<CommunicatorPeers*>& groups) {
    Bytes sent;
    for (const CommunicatorPeers* group : groups) sent += group->traffic();
    return sent;
  }

  static Bytes SentInContext(const DeviceSetup& setup) {
    const Bytes exchanged = setup.exchange == nullptr ? Bytes(0) : setup.exchange->traffic();
    return SentTo(setup.context) + exchanged;
  }

  static void Abort(const DeviceSetup& setup, const absl::Status& why) {
    setup.communicator->Abort(why);
    if (setup.exchange != nullptr) setup.exchange->Abort(why);
  }

  // Keeps the first error, real ones before echoes of another device's, and frees the others.
  void Report(Device& device, absl::Status status) {
    absl::Status first;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      absl::Status& kept = IsFollowUp(status) ? echo_ : error_;
      if (kept.ok()) kept = std::move(status);
      first = FirstError();
    }
    Abort(device.setup, first);
    done_.notify_one();
  }

  const absl::Status& FirstError() const { return error_.ok() ? echo_ : error_; }

  // The devices' waits have their limit here, where it is seen whether somebody still computes.
  // After an error the others get a short grace.
  void WaitForDevices(std::unique_lock<std::mutex>& lock) {
    ProgressWatch::Finding found;
    absl::Status stuck;
    watch_.Begin(absl::Now());
    while (running_ > 0 && FirstError().ok() && stuck.ok()) {
      const auto over = [&] { return running_ == 0 || !FirstError().ok(); };
      if (done_.wait_for(lock, TickOf(options_), over)) break;
      found = watch_.Look(DeviceStates(), absl::Now());
      if (found.what == ProgressWatch::kFine) continue;
      stuck = absl::DeadlineExceededError(Describe(found));
      for (auto& device : devices_) Abort(device->setup, stuck);
    }
    const auto grace = ToChrono(std::min({options_.wait_limit, options_.action_limit, kGrace}));
    done_.wait_for(lock, grace, [&] { return running_ == 0; });
    // The first of several processes that wait for one another ends the run; what the waits of the
    // others come back with is its error, and not theirs.
    const bool ours = echo_.ok() || echo_.message() == stuck.message();
    if (!stuck.ok() && error_.ok() && ours) error_ = stuck;
    if (running_ > 0) AddWhereabouts(found);
  }

  // To the error, those that are still in a module; without the one that it is about.
  void AddWhereabouts(const ProgressWatch::Finding& found) {
    std::string still;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const bool told = found.what == ProgressWatch::kStuck && found.device == static_cast<int>(d);
      if (!devices_[d]->running || told) continue;
      absl::StrAppend(&still, "; ", devices_[d]->runner->Whereabouts());
    }
    absl::Status& first = error_.ok() ? echo_ : error_;
    const bool echo = IsFollowUp(first);
    first = absl::Status(first.code(), absl::StrCat(first.message(), still));
    if (echo) first = MarkAsFollowUp(std::move(first));
  }

  std::vector<ProgressWatch::State> DeviceStates() const {
    std::vector<ProgressWatch::State> states;
    for (const auto& device : devices_) {
      const int64_t waits = device->runner->waits();
      states.push_back({device->running, waits % 2 == 1, waits + device->runner->position()});
    }
    return states;
  }

  std::string Describe(const ProgressWatch::Finding& found) const {
    const DeviceRunner& runner = *devices_[found.device]->runner;
    if (found.what == ProgressWatch::kStuck) {
      return absl::StrCat(runner.Doing("has been in"), " for ",
                          LimitToString(options_.action_limit));
    }
    std::string text =
        runner.Doing(absl::StrCat("waited ", LimitToString(options_.wait_limit), " for"));
    int others = 0;
    for (const auto& device : devices_) {
      if (!device->running || device->runner.get() == &runner || ++others > kMostOthers) continue;
      absl::StrAppend(&text, "; ", device->runner->Doing("waits for"));
    }
    return text;
  }

  Trace MakeTrace() {
    Trace trace;
    trace.origin = TraceOrigin::kMeasured;
    int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
    for (auto& device : devices_) {
      begin = std::min(begin, device->step.begin_ns);
      end = std::max(end, device->step.end_ns);
    }
    step_begin_ns_ = begin;
    trace.makespan = Nanoseconds(end - begin);
    for (auto& device : devices_) {
      device->step.trace.AddToTimes(-begin);
      trace.devices.push_back(std::move(device->step.trace));
    }
    return trace;
  }

  const ExecutorOptions options_;
  std::vector<std::unique_ptr<Device>> devices_;
  ProgressWatch watch_;  // of RunStep
  int64_t step_begin_ns_ = 0;

  std::mutex mutex_;
  std::condition_variable start_, done_;
  int64_t generation_ = 0;  // steps begun
  size_t running_ = 0;      // devices in the step
  bool stop_ = false;
  absl::Status error_;  // the first real error
  absl::Status echo_;   // the first follow-up of an error that none of these devices reports
};

// `rank`: whose place this device has; `ranks`: how many there are in all processes.
absl::Status CheckDevice(const Program& program, int rank, const DeviceSetup& setup, size_t ranks,
                         const ExecutorOptions& options) {
  if (setup.arena == nullptr || setup.communicator == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device ", rank, " has no ", setup.arena == nullptr ? "arena" : "communicator"));
  }
  const Communicator& comm = *setup.communicator;
  if (comm.rank() != rank || comm.size() != static_cast<int>(ranks)) {
    return absl::InvalidArgumentError(absl::StrCat("device ", rank, " of ", ranks,
                                                   " has the communicator of rank ", comm.rank(),
                                                   " of ", comm.size()));
  }
  if (options.divided_messages && setup.peers == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", rank, " has no peers to gather messages with"));
  }
  if (program.instructions[rank / options.tensor_parallel].size() >
      static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("device ", rank, " has too many instructions"));
  }
  return absl::OkStatus();
}

// The ranks that `devices` are: all, or those that their communicators say, ascending.
absl::StatusOr<std::vector<int>> RanksOf(const std::vector<DeviceSetup>& devices, size_t ranks,
                                         bool others_elsewhere) {
  std::vector<int> own;
  for (size_t i = 0; i < devices.size(); ++i) {
    const Communicator* comm = devices[i].communicator.get();
    own.push_back(others_elsewhere && comm != nullptr ? comm->rank() : static_cast<int>(i));
    if (own.back() >= static_cast<int>(ranks) || (i > 0 && own[i] <= own[i - 1])) {
      return absl::InvalidArgumentError(absl::StrCat("device ", i, " of this process is rank ",
                                                     own[i], " of ", ranks, "; ranks must ascend"));
    }
  }
  return own;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const Program* program,
                                                           std::vector<DeviceSetup> devices,
                                                           const ExecutorOptions& options) {
  const size_t n = program->instructions.size();
  const int group = options.tensor_parallel;
  if (group < 1) {
    return absl::InvalidArgumentError(absl::StrCat("tensor-parallel groups of ", group));
  }
  const size_t ranks = n * static_cast<size_t>(group);
  if (static_cast<size_t>(program->schedule.num_devices()) != n ||
      (options.others_elsewhere ? devices.empty() || devices.size() > ranks
                                : devices.size() != ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the program has instructions for ", n, " devices, its schedule ",
                     program->schedule.num_devices(), ", and there are ", devices.size(),
                     group == 1 ? "" : absl::StrCat(" in groups of ", group)));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> own,
                           RanksOf(devices, ranks, options.others_elsewhere));
  std::vector<std::unique_ptr<Device>> ready;
  for (size_t i = 0; i < devices.size(); ++i) {
    const int rank = own[i], d = rank / group;
    PIPELAB_RETURN_IF_ERROR(CheckDevice(*program, rank, devices[i], ranks, options));
    PIPELAB_ASSIGN_OR_RETURN(DevicePlan plan, MakeDevicePlan(*program, d, devices[i].modules));
    MapToRanks(group, rank % group, &plan);
    auto device = std::make_unique<Device>();
    device->setup = std::move(devices[i]);
    const DeviceSetup& setup = device->setup;
    device->runner =
        std::make_unique<DeviceRunner>(program, d, std::move(plan), setup.arena,
                                       setup.communicator.get(), setup.peers, setup.fill, options);
    ready.push_back(std::move(device));
  }
  return std::unique_ptr<Executor>(std::make_unique<ThreadedExecutor>(std::move(ready), options));
}

}  // namespace pipelab
