#include "kernels/cuda/nccl.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/comm/collective_checks.h"
#include "kernels/comm/ticket_table.h"
#include "kernels/cuda/nccl_collective.h"
#include "kernels/cuda/nccl_messages.h"
#include "kernels/cuda/nccl_world.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kHardwareQueues = 32;  // CUDA_DEVICE_MAX_CONNECTIONS, at most

// One of the three.
struct Operation {
  std::shared_ptr<NcclMessages::Outgoing> out;
  std::shared_ptr<NcclMessages::Incoming> in;
  std::shared_ptr<NcclCollective> collective;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(ProcessGroup* processes, std::shared_ptr<SharedRun> run, int size,
                   std::shared_ptr<gpu::Device> device)
      : processes_(processes),
        world_(processes, std::move(run), size, std::move(device)),
        messages_(&world_) {
    world_.SetProgress([this] { return messages_.Progress(); });
  }

  // What waits on the GPU would wait for ever: after an error, and for receives that nobody waited
  // for. Its memory goes after it.
  ~NcclCommunicator() override {
    SetWhereabouts(nullptr);
    world_.Close(/*abort=*/operations_under_way_ > 0);
  }

  NcclWorld& world() { return world_; }

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  absl::string_view name() const override { return "nccl"; }
  bool collectives_work_at_wait() const override { return true; }

  absl::StatusOr<Ticket> Send(Tensor tensor, int to, uint64_t tag) override {
    PIPELAB_RETURN_IF_ERROR(CheckCall(to));
    Operation o;
    PIPELAB_ASSIGN_OR_RETURN(o.out, messages_.Send(std::move(tensor), to, tag));
    return AddOperation(std::move(o));
  }

  absl::StatusOr<Ticket> Receive(TensorSpec spec, int from, uint64_t tag,
                                 std::shared_ptr<Charge> charge) override {
    PIPELAB_RETURN_IF_ERROR(CheckCall(from));
    Operation o;
    PIPELAB_ASSIGN_OR_RETURN(o.in, messages_.Post(std::move(spec), from, tag, std::move(charge)));
    return AddOperation(std::move(o));
  }

  absl::StatusOr<Tensor> Wait(Ticket ticket, absl::Duration limit) override {
    PIPELAB_RETURN_IF_ERROR(world_.CheckRun());
    Operation* operation = operations_.Find(ticket);
    if (operation == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank(), " waits for a ticket that is not under way"));
    }
    absl::StatusOr<Tensor> result = Finish(*operation, limit);
    if (!result.ok() && !world_.run().ended()) result = world_.OrFail(result.status());
    operations_.Remove(ticket);
    --operations_under_way_;
    return result;
  }

  absl::StatusOr<Ticket> BeginAllReduce(const Tensor& data, absl::Span<const int> group,
                                        ReduceOp op) override {
    const auto kind = op == ReduceOp::kMax ? CollectiveOp::kAllReduceMax : CollectiveOp::kAllReduce;
    return Begin(kind, -1, group, data, data);
  }
  absl::StatusOr<Ticket> BeginReduceScatter(const Tensor& data, const Tensor& part,
                                            absl::Span<const int> group) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(world_.size(), world_.rank(), group));
    PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
    return Begin(CollectiveOp::kReduceScatter, -1, group, data, part);
  }
  absl::StatusOr<Ticket> BeginAllGather(const Tensor& part, const Tensor& data,
                                        absl::Span<const int> group) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(world_.size(), world_.rank(), group));
    PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
    return Begin(CollectiveOp::kAllGather, -1, group, part, data);
  }
  absl::StatusOr<Ticket> BeginAllToAll(const Tensor& data, absl::Span<const int64_t> to,
                                       const Tensor& result, absl::Span<const int64_t> from,
                                       absl::Span<const int> group) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(world_.size(), world_.rank(), group));
    PIPELAB_RETURN_IF_ERROR(CheckExchange(data, to, result, from, group, world_.rank()));
    return Begin(CollectiveOp::kAllToAll, -1, group, data, result, to, from);
  }
  absl::Status Broadcast(const Tensor& data, int root, absl::Span<const int> group,
                         absl::Duration limit) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(world_.size(), world_.rank(), group));
    PIPELAB_RETURN_IF_ERROR(CheckRoot(root, group));
    PIPELAB_ASSIGN_OR_RETURN(const Ticket ticket,
                             Begin(CollectiveOp::kBroadcast, root, group, data, data));
    return Wait(ticket, limit).status();
  }

  void Abort(absl::Status why) override {
    if (why.ok()) why = absl::AbortedError(absl::StrCat("rank ", rank(), " ended the run"));
    world_.run().Fail(std::move(why)).IgnoreError();
  }

  void SetWhereabouts(std::function<std::string()> text) override {
    processes_->SetWhereabouts(rank(), std::move(text));
  }

 private:
  absl::Status CheckCall(int peer) {
    if (peer < 0 || peer >= size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank(), " calls rank ", peer, " of ", size()));
    }
    return world_.CheckRun();
  }

  Ticket AddOperation(Operation added) {
    Operation* operation;
    const Ticket ticket = operations_.Add(&operation);
    ++operations_under_way_;
    *operation = std::move(added);
    return ticket;
  }

  absl::StatusOr<Ticket> Begin(CollectiveOp op, int root, absl::Span<const int> group,
                               const Tensor& data, const Tensor& result,
                               absl::Span<const int64_t> to = {},
                               absl::Span<const int64_t> from = {}) {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size(), rank(), group));
    PIPELAB_RETURN_IF_ERROR(world_.CheckRun());
    Operation o;
    o.collective =
        std::make_shared<NcclCollective>(&world_, op, root, group, data, result, to, from);
    return AddOperation(std::move(o));
  }

  absl::StatusOr<Tensor> Finish(Operation& operation, absl::Duration limit) {
    if (operation.in != nullptr) return messages_.Finish(operation.in.get(), limit);
    PIPELAB_RETURN_IF_ERROR(operation.out != nullptr ? messages_.Finish(*operation.out, limit)
                                                     : operation.collective->Finish(limit));
    return Tensor();
  }

  ProcessGroup* const processes_;
  NcclWorld world_;
  NcclMessages messages_;
  TicketTable<Operation> operations_;
  int64_t operations_under_way_ = 0;
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(ProcessGroup* processes, std::shared_ptr<gpu::Device> device, absl::Duration limit)
      : processes_(processes), device_(std::move(device)), limit_(limit) {}

  absl::string_view name() const override { return "nccl"; }
  ProcessGroup* processes() const override { return processes_; }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(int devices) override {
    if (devices != processes_->size()) {
      return absl::InvalidArgumentError(absl::StrCat("NCCL has one device per process: ", devices,
                                                     " devices in ", processes_->size(),
                                                     " processes"));
    }
    std::vector<std::unique_ptr<Communicator>> own(1);
    PIPELAB_ASSIGN_OR_RETURN(own[0], MakeNcclCommunicator(processes_, devices, device_, limit_));
    return own;
  }

 private:
  ProcessGroup* const processes_;
  const std::shared_ptr<gpu::Device> device_;
  const absl::Duration limit_;
};

}  // namespace

std::unique_ptr<Transport> MakeNcclTransport(ProcessGroup* processes,
                                             std::shared_ptr<gpu::Device> device,
                                             absl::Duration limit) {
  return std::make_unique<NcclTransport>(processes, std::move(device), limit);
}

absl::StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(
    ProcessGroup* processes, int size, std::shared_ptr<gpu::Device> device, absl::Duration limit) {
  if (size < 1 || size > processes->size()) {
    return absl::InvalidArgumentError(absl::StrCat("NCCL has one device per process: ", size,
                                                   " devices in ", processes->size(),
                                                   " processes"));
  }
  if (processes->rank() == 0 && 3 * (size - 1) > kHardwareQueues) {
    LOG(WARNING) << size << " ranks over NCCL have " << 3 * (size - 1)
                 << " streams each, and a GPU " << kHardwareQueues
                 << " hardware queues: transfers may wait for one another";
  }
  const std::shared_ptr<SharedRun> run = processes->BeginRun();
  const bool member = processes->rank() < size;
  std::unique_ptr<NcclCommunicator> own;
  std::string names;
  if (member) {
    own = std::make_unique<NcclCommunicator>(processes, run, size, std::move(device));
    PIPELAB_ASSIGN_OR_RETURN(names, own->world().NewNames());
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> all, processes->ToAll(names, limit));
  if (!member) return own;
  const absl::Status connected = own->world().Connect(all, limit);
  if (!connected.ok()) return run->Fail(connected);
  return own;
}

}  // namespace pipelab
