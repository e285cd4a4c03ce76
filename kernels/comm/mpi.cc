#include "kernels/comm/mpi.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/comm/collective_checks.h"
#include "kernels/comm/mpi_collective.h"
#include "kernels/comm/mpi_engine.h"
#include "kernels/comm/mpi_world.h"
#include "kernels/comm/ticket_table.h"
#include "kernels/tensor/storage.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A send, receive or collective that has not been waited for.
struct MpiOperation {
  int peer = 0;
  uint64_t tag = 0;
  std::shared_ptr<MpiOutgoing> out;           // send
  std::shared_ptr<MpiIncoming> in;            // receive
  Tensor tensor;                              // receive
  std::shared_ptr<Charge> charge;             // receive
  std::unique_ptr<MpiCollective> collective;  // neither
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiEngine> engine, int rank)
      : engine_(std::move(engine)), rank_(rank) {}
  ~MpiCommunicator() override { SetWhereabouts(nullptr); }

  int rank() const override { return rank_; }
  int size() const override { return engine_->num_devices(); }
  absl::string_view name() const override { return "mpi"; }
  // The first bytes move from the begin on; sums, and what follows them, come at the wait.
  bool collectives_work_at_wait() const override { return true; }

  absl::StatusOr<Ticket> Send(Tensor tensor, int to, uint64_t tag) override {
    PIPELAB_RETURN_IF_ERROR(CheckCall(to));
    MpiHead head;
    head.from = rank_;
    head.to = to;
    head.tag = tag;
    PIPELAB_RETURN_IF_ERROR(SetSpec(tensor, rank_, &head));
    const void* data = tensor.data();
    const int64_t bytes = tensor.bytes();
    MpiOperation* operation;
    const Ticket ticket = operations_.Add(&operation);
    operation->peer = to;
    operation->tag = tag;
    operation->out = engine_->Send(head, data, bytes, std::move(tensor).Adopt(nullptr));
    return ticket;
  }

  absl::StatusOr<Ticket> Receive(TensorSpec spec, int from, uint64_t tag,
                                 std::shared_ptr<Charge> charge) override {
    PIPELAB_RETURN_IF_ERROR(CheckCall(from));
    MpiOperation* operation;
    const Ticket ticket = operations_.Add(&operation);
    const int64_t bytes = NumElements(spec.shape) * SizeOf(spec.type);
    operation->peer = from;
    operation->tag = tag;
    operation->tensor =
        Tensor(spec.type, std::move(spec.shape), std::make_shared<Storage>(bytes), nullptr);
    operation->charge = std::move(charge);
    operation->in =
        engine_->Receive(from, rank_, operation->tensor.data(), bytes, operation->tensor);
    return ticket;
  }

  absl::StatusOr<Tensor> Wait(Ticket ticket, absl::Duration limit) override {
    PIPELAB_RETURN_IF_ERROR(engine_->run().Check());
    MpiOperation* operation = operations_.Find(ticket);
    if (operation == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank_, " waits for a ticket that is not under way"));
    }
    absl::StatusOr<Tensor> result = operation->collective != nullptr
                                        ? FinishCollective(*operation, limit)
                                    : operation->out != nullptr ? FinishSend(*operation, limit)
                                                                : FinishReceive(*operation, limit);
    operations_.Remove(ticket);
    return result;
  }

  bool Arrived(Ticket ticket) override {
    const MpiOperation* operation = operations_.Find(ticket);
    if (operation == nullptr || operation->in == nullptr) return false;
    return engine_->Look([&] { return operation->in->done; });
  }

  absl::StatusOr<Ticket> BeginAllReduce(const Tensor& data, absl::Span<const int> group,
                                        ReduceOp op) override {
    const auto kind = op == ReduceOp::kMax ? CollectiveOp::kAllReduceMax : CollectiveOp::kAllReduce;
    return Begin(kind, -1, group, data, data);
  }
  absl::StatusOr<Ticket> BeginReduceScatter(const Tensor& data, const Tensor& part,
                                            absl::Span<const int> group) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size(), rank_, group));
    PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
    return Begin(CollectiveOp::kReduceScatter, -1, group, data, part);
  }
  absl::StatusOr<Ticket> BeginAllGather(const Tensor& part, const Tensor& data,
                                        absl::Span<const int> group) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size(), rank_, group));
    PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
    return Begin(CollectiveOp::kAllGather, -1, group, part, data);
  }
  absl::StatusOr<Ticket> BeginAllToAll(const Tensor& data, absl::Span<const int64_t> to,
                                       const Tensor& result, absl::Span<const int64_t> from,
                                       absl::Span<const int> group) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size(), rank_, group));
    PIPELAB_RETURN_IF_ERROR(CheckExchange(data, to, result, from, group, rank_));
    return Begin(CollectiveOp::kAllToAll, -1, group, data, result, to, from);
  }
  absl::Status Broadcast(const Tensor& data, int root, absl::Span<const int> group,
                         absl::Duration limit) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size(), rank_, group));
    PIPELAB_RETURN_IF_ERROR(CheckRoot(root, group));
    PIPELAB_ASSIGN_OR_RETURN(const Ticket ticket,
                             Begin(CollectiveOp::kBroadcast, root, group, data, data));
    return Wait(ticket, limit).status();
  }

  void Abort(absl::Status why) override {
    if (why.ok()) why = absl::AbortedError(absl::StrCat("rank ", rank_, " ended the run"));
    engine_->run().Fail(std::move(why)).IgnoreError();
  }

  void SetWhereabouts(std::function<std::string()> text) override {
    engine_->group().SetWhereabouts(rank_, std::move(text));
  }

 private:
  absl::Status CheckCall(int peer) {
    if (peer < 0 || peer >= size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank_, " calls rank ", peer, " of ", size()));
    }
    return engine_->run().Check();
  }

  absl::StatusOr<Ticket> Begin(CollectiveOp op, int root, absl::Span<const int> group,
                               const Tensor& data, const Tensor& result,
                               absl::Span<const int64_t> to = {},
                               absl::Span<const int64_t> from = {}) {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size(), rank_, group));
    PIPELAB_RETURN_IF_ERROR(engine_->run().Check());
    const int64_t number = begun_[std::vector<int>(group.begin(), group.end())]++;
    MpiOperation* operation;
    const Ticket ticket = operations_.Add(&operation);
    operation->collective = std::make_unique<MpiCollective>(engine_.get(), rank_, op, root, group,
                                                            number, data, result, to, from);
    return ticket;
  }

  static absl::StatusOr<Tensor> FinishCollective(const MpiOperation& op, absl::Duration limit) {
    PIPELAB_RETURN_IF_ERROR(op.collective->Finish(limit));
    return Tensor();
  }

  absl::StatusOr<Tensor> FinishSend(const MpiOperation& op, absl::Duration limit) {
    PIPELAB_RETURN_IF_ERROR(engine_->Await(
        rank_, [&] { return op.out->done; }, limit,
        [&] {
          return absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(limit), " for rank ",
                              op.peer, " to receive tag ", op.tag);
        }));
    return Tensor();
  }

  absl::StatusOr<Tensor> FinishReceive(MpiOperation& op, absl::Duration limit) {
    PIPELAB_RETURN_IF_ERROR(engine_->Await(
        rank_, [&] { return op.in->done; }, limit,
        [&] {
          return absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(limit), " for tag ",
                              op.tag, " from rank ", op.peer);
        }));
    const MpiHead& head = op.in->head;  // done: nobody writes to it any more
    const Tensor& tensor = op.tensor;
    const absl::StatusOr<TensorSpec> sent = SpecOf(head, op.peer);
    if (!sent.ok()) return engine_->Fail(rank_, sent.status());
    if (head.tag != op.tag || sent->type != tensor.type() || sent->shape != tensor.shape()) {
      return engine_->Fail(
          rank_, absl::InternalError(absl::StrCat(
                     "rank ", rank_, " expects tag ", op.tag, ", ", DataTypeName(tensor.type()),
                     ShapeToString(tensor.shape()), " from rank ", op.peer, ", which sent tag ",
                     head.tag, ", ", DataTypeName(sent->type), ShapeToString(sent->shape))));
    }
    op.in->keep = Tensor();
    return std::move(op.tensor).Adopt(std::move(op.charge));
  }

  const std::shared_ptr<MpiEngine> engine_;
  const int rank_;
  std::map<std::vector<int>, int64_t> begun_;  // collectives, by group
  TicketTable<MpiOperation> operations_;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(MpiWorld* world, std::unique_ptr<ProcessGroup> group)
      : world_(world), group_(std::move(group)) {}
  ~MpiTransport() override {
    MpiWorld::End();
    group_ = nullptr;
  }

  absl::string_view name() const override { return "mpi"; }
  ProcessGroup* processes() const override { return group_.get(); }
  MpiWorld* world() const { return world_; }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(int devices) override {
    PIPELAB_RETURN_IF_ERROR(CheckDevicesOfProcesses(devices, group_->size()));
    std::vector<int> process_of(devices);
    for (int d = 0; d < devices; ++d) process_of[d] = d / (devices / group_->size());
    return MakeMpiCommunicators(this, std::move(process_of));
  }

 private:
  MpiWorld* const world_;
  std::unique_ptr<ProcessGroup> group_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> JoinMpi(const ProcessGroupOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(MpiWorld * world, MpiWorld::Start());
  PIPELAB_ASSIGN_OR_RETURN(
      auto group, ProcessGroup::Create(world->rank(), world->size(), world->rendezvous(), options));
  return std::unique_ptr<Transport>(std::make_unique<MpiTransport>(world, std::move(group)));
}

std::vector<std::unique_ptr<Communicator>> MakeMpiCommunicators(Transport* transport,
                                                                std::vector<int> process_of) {
  auto* mpi = static_cast<MpiTransport*>(transport);
  ProcessGroup* group = mpi->processes();
  const std::shared_ptr<SharedRun> run = group->BeginRun();
  std::vector<int> own;
  for (size_t d = 0; d < process_of.size(); ++d) {
    if (process_of[d] == group->rank()) own.push_back(static_cast<int>(d));
  }
  std::vector<std::unique_ptr<Communicator>> ranks;
  if (own.empty()) return ranks;
  auto engine = std::make_shared<MpiEngine>(mpi->world(), group, run, std::move(process_of));
  for (const int d : own) ranks.push_back(std::make_unique<MpiCommunicator>(engine, d));
  return ranks;
}

}  // namespace pipelab
