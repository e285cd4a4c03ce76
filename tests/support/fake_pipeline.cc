#include "tests/support/fake_pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/comm/communicator.h"
#include "tests/support/fake_serial.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Waits for every send where it happens.
class BlockingSends : public Communicator {
 public:
  BlockingSends(std::unique_ptr<Communicator> inner, absl::Duration limit)
      : inner_(std::move(inner)), limit_(limit) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  absl::string_view name() const override { return "blocking"; }
  bool collectives_work_at_wait() const override { return false; }  // but at the begin
  absl::StatusOr<Ticket> Send(Tensor tensor, int to, uint64_t tag) override {
    PIPELAB_ASSIGN_OR_RETURN(Ticket ticket, inner_->Send(std::move(tensor), to, tag));
    PIPELAB_RETURN_IF_ERROR(inner_->Wait(ticket, limit_).status());
    return kDone;
  }
  absl::StatusOr<Ticket> Receive(TensorSpec spec, int from, uint64_t tag,
                                 std::shared_ptr<Charge> charge) override {
    return inner_->Receive(std::move(spec), from, tag, std::move(charge));
  }
  absl::StatusOr<Tensor> Wait(Ticket ticket, absl::Duration limit) override {
    if (ticket == kDone) return Tensor();
    return inner_->Wait(ticket, limit);
  }
  absl::StatusOr<Ticket> BeginAllReduce(const Tensor& data, absl::Span<const int> group,
                                        ReduceOp op) override {
    return Blocking(inner_->AllReduce(data, group, limit_, op));
  }
  absl::StatusOr<Ticket> BeginReduceScatter(const Tensor& data, const Tensor& part,
                                            absl::Span<const int> group) override {
    return Blocking(inner_->ReduceScatter(data, part, group, limit_));
  }
  absl::StatusOr<Ticket> BeginAllGather(const Tensor& part, const Tensor& data,
                                        absl::Span<const int> group) override {
    return Blocking(inner_->AllGather(part, data, group, limit_));
  }
  absl::StatusOr<Ticket> BeginAllToAll(const Tensor& data, absl::Span<const int64_t> to,
                                       const Tensor& result, absl::Span<const int64_t> from,
                                       absl::Span<const int> group) override {
    return Blocking(inner_->AllToAll(data, to, result, from, group, limit_));
  }
  absl::Status Broadcast(const Tensor& data, int root, absl::Span<const int> group,
                         absl::Duration limit) override {
    return inner_->Broadcast(data, root, group, limit);
  }
  void Abort(absl::Status why) override { inner_->Abort(std::move(why)); }

 private:
  static constexpr Ticket kDone = -1;
  static absl::StatusOr<Ticket> Blocking(absl::Status status) {
    if (!status.ok()) return status;
    return kDone;
  }
  std::unique_ptr<Communicator> inner_;
  const absl::Duration limit_;
};

}  // namespace

FakePipeline::FakePipeline(const Program* program, const FakePipelineOptions& options)
    : program_(program),
      options_(options),
      arenas_(program->schedule.num_devices()),
      norm_values_(program->norm.has_value() ? program->norm->values : 0) {
  const Schedule& s = program->schedule;
  const int n = s.num_devices();
  auto ranks = MakeInProcessCommunicators(n, {.rendezvous = options.blocking_sends});
  std::vector<DeviceSetup> devices(n);
  for (int d = 0; d < n; ++d) {
    devices[d].arena = &arenas_[d];
    devices[d].communicator = std::move(ranks[d]);
    if (options.blocking_sends) {
      devices[d].communicator =
          std::make_unique<BlockingSends>(std::move(devices[d].communicator), options.wait_limit);
    }
    devices[d].modules.assign(s.placement.num_replicas(),
                              std::vector<StageModule*>(s.num_stages(), nullptr));
  }
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      const std::vector<int>& group = s.placement.groups[r][stage];
      for (size_t member = 0; member < group.size(); ++member) {
        const int d = group[member];
        FakeStageConfig config;
        config.graph = &s.stages;
        config.stage = stage;
        config.micro_batch_size = s.MicroBatchSize(stage);
        config.member = static_cast<int64_t>(member);
        config.data_parallel_size = static_cast<int64_t>(group.size());
        config.tied = TiedParameter(options.ties, stage);
        config.norm_values = norm_values_;
        config.shard = ShardOf(*program, {d, r, stage});
        copies_.push_back({d, r, stage, std::make_unique<FakeStage>(&arenas_[d], config)});
        StageModule* module = copies_.back().module.get();
        if (options.faults != nullptr) module = options.faults->Wrap(d, module);
        devices[d].modules[r][stage] = module;
      }
    }
  }
  auto executor = Executor::Create(program, std::move(devices),
                                   {.wait_limit = options.wait_limit,
                                    .action_limit = options.action_limit,
                                    .trace = options.trace});
  created_ = executor.status();
  if (executor.ok()) executor_ = *std::move(executor);
}

FakePipeline::~FakePipeline() {
  if (options_.faults != nullptr) options_.faults->Release();
}

std::string FakePipeline::WrongParameters(int steps) const {
  const auto want = SerialParameters(program_->schedule, options_.ties, steps, norm_values_);
  std::string wrong;
  for (const Copy& copy : copies_) {
    if (!copy.module->KeepsPartOf(want[copy.stage])) {
      absl::StrAppend(&wrong, "stage ", copy.stage, " of replica ", copy.replica, " on device ",
                      copy.device, "; ");
    }
    if (copy.module->in_flight() > 0)
      absl::StrAppend(&wrong, "stage ", copy.stage, " is in flight; ");
  }
  return wrong;
}

Bytes FakePipeline::LeftAfterwards() {
  if (options_.faults != nullptr) options_.faults->Release();
  executor_ = nullptr;
  copies_.clear();
  Bytes left;
  for (const Arena& arena : arenas_) left += arena.current_transient();
  return left;
}

}  // namespace pipelab
