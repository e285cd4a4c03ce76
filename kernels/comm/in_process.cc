// The in-process communicator: ranks are threads, a message hands its memory over.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/comm/communicator.h"
#include "kernels/comm/in_process_collectives.h"
#include "kernels/comm/in_process_world.h"
#include "kernels/comm/ticket_table.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A send, receive or collective that has not been waited for. A message's number counts those of
// its pair.
struct InProcessOperation {
  bool is_send = false;
  bool arrived = false;
  int peer = 0;
  int64_t number = 0;
  uint64_t tag = 0;
  TensorSpec spec;                             // receive
  std::shared_ptr<Charge> charge;              // receive
  Envelope envelope;                           // receive, once arrived
  std::unique_ptr<CollectiveCall> collective;  // neither
};

class InProcessCommunicator : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<InProcessWorld> world, int rank)
      : world_(std::move(world)), rank_(rank), peers_(world_->size()) {}

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  absl::string_view name() const override { return "in-process"; }
  bool collectives_work_at_wait() const override { return true; }

  absl::StatusOr<Ticket> Send(Tensor tensor, int to, uint64_t tag) override {
    PIPELAB_RETURN_IF_ERROR(CheckCall(to));
    PIPELAB_RETURN_IF_ERROR(world_->FinishQueued(rank_));
    Pair& pair = world_->pair(rank_, to);
    pair.mail.Push(Envelope{std::move(tensor).Adopt(nullptr), tag});
    world_->parker(to).Unpark();
    InProcessOperation* operation;
    const Ticket ticket = operations_.Add(&operation);
    operation->is_send = true;
    operation->peer = to;
    operation->number = peers_[to].sends++;
    operation->tag = tag;
    return ticket;
  }

  absl::StatusOr<Ticket> Receive(TensorSpec spec, int from, uint64_t tag,
                                 std::shared_ptr<Charge> charge) override {
    PIPELAB_RETURN_IF_ERROR(CheckCall(from));
    InProcessOperation* operation;
    const Ticket ticket = operations_.Add(&operation);
    operation->peer = from;
    operation->number = peers_[from].receives++;
    operation->tag = tag;
    operation->spec = std::move(spec);
    operation->charge = std::move(charge);
    peers_[from].posted.Push(ticket);
    if (world_->rendezvous()) {
      world_->pair(from, rank_).posted.fetch_add(1);
      world_->parker(from).Unpark();
    }
    return ticket;
  }

  absl::StatusOr<Tensor> Wait(Ticket ticket, absl::Duration limit) override {
    PIPELAB_RETURN_IF_ERROR(world_->Check());
    InProcessOperation* operation = operations_.Find(ticket);
    if (operation == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank_, " waits for a ticket that is not under way"));
    }
    absl::StatusOr<Tensor> result = operation->collective != nullptr
                                        ? FinishCollective(*operation, limit)
                                    : operation->is_send ? FinishSend(*operation, limit)
                                                         : FinishReceive(*operation, limit);
    operations_.Remove(ticket);
    return result;
  }

  bool Arrived(Ticket ticket) override {
    if (!world_->Check().ok()) return true;
    const InProcessOperation* operation = operations_.Find(ticket);
    if (operation == nullptr || operation->is_send || operation->collective != nullptr)
      return false;
    return operation->arrived ||
           world_->pair(operation->peer, rank_).mail.pushed() > operation->number;
  }

  absl::StatusOr<Ticket> BeginAllReduce(const Tensor& data, absl::Span<const int> group,
                                        ReduceOp op) override {
    return Begin(CollectiveCall::AllReduce(*world_, rank_, data, group, op));
  }
  absl::StatusOr<Ticket> BeginReduceScatter(const Tensor& data, const Tensor& part,
                                            absl::Span<const int> group) override {
    return Begin(CollectiveCall::ReduceScatter(*world_, rank_, data, part, group));
  }
  absl::StatusOr<Ticket> BeginAllGather(const Tensor& part, const Tensor& data,
                                        absl::Span<const int> group) override {
    return Begin(CollectiveCall::AllGather(*world_, rank_, part, data, group));
  }
  absl::StatusOr<Ticket> BeginAllToAll(const Tensor& data, absl::Span<const int64_t> to,
                                       const Tensor& result, absl::Span<const int64_t> from,
                                       absl::Span<const int> group) override {
    return Begin(CollectiveCall::AllToAll(*world_, rank_, data, to, result, from, group));
  }
  absl::Status Broadcast(const Tensor& data, int root, absl::Span<const int> group,
                         absl::Duration limit) override {
    PIPELAB_ASSIGN_OR_RETURN(const Ticket ticket,
                             Begin(CollectiveCall::Broadcast(*world_, rank_, data, root, group)));
    return Wait(ticket, limit).status();
  }

  void Abort(absl::Status why) override {
    if (why.ok()) why = absl::AbortedError(absl::StrCat("rank ", rank_, " ended the run"));
    world_->Fail(std::move(why)).IgnoreError();
  }

 private:
  struct Peer {
    int64_t sends = 0, receives = 0;
    SpscQueue<Ticket> posted;  // receives whose message has not been taken from the mail
  };

  absl::Status CheckCall(int peer) const {
    if (peer < 0 || peer >= world_->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank_, " calls rank ", peer, " of ", world_->size()));
    }
    return world_->Check();
  }

  absl::StatusOr<Ticket> Begin(CollectiveCall::Result call) {
    if (!call.ok()) return call.status();
    PIPELAB_RETURN_IF_ERROR(world_->Check());
    InProcessOperation* operation;
    const Ticket ticket = operations_.Add(&operation);
    operation->collective = *std::move(call);
    return ticket;
  }

  static absl::StatusOr<Tensor> FinishCollective(const InProcessOperation& op,
                                                 absl::Duration limit) {
    PIPELAB_RETURN_IF_ERROR(op.collective->Finish(limit));
    return Tensor();
  }

  absl::StatusOr<Tensor> FinishSend(const InProcessOperation& op, absl::Duration limit) {
    if (!world_->rendezvous()) return Tensor();
    const std::atomic<int64_t>& posted = world_->pair(rank_, op.peer).posted;
    PIPELAB_RETURN_IF_ERROR(world_->Await(
        rank_, [&] { return posted.load() > op.number; }, limit,
        [&] {
          return absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(limit), " for rank ",
                              op.peer, " to receive tag ", op.tag);
        }));
    return Tensor();
  }

  absl::StatusOr<Tensor> FinishReceive(InProcessOperation& op, absl::Duration limit) {
    if (!op.arrived) {
      SpscQueue<Envelope>& mail = world_->pair(op.peer, rank_).mail;
      PIPELAB_RETURN_IF_ERROR(world_->Await(
          rank_, [&] { return mail.pushed() > op.number; }, limit,
          [&] {
            return absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(limit),
                                " for tag ", op.tag, " from rank ", op.peer);
          }));
      // Messages match in order, so those before this one belong to earlier receives.
      while (!op.arrived) {
        InProcessOperation& next = *operations_.Find(peers_[op.peer].posted.Pop());
        next.envelope = mail.Pop();
        next.arrived = true;
      }
    }
    const Tensor& tensor = op.envelope.tensor;
    if (op.envelope.tag != op.tag || tensor.type() != op.spec.type ||
        tensor.shape() != op.spec.shape) {
      return world_->Fail(absl::InternalError(absl::StrCat(
          "rank ", rank_, " expects tag ", op.tag, ", ", DataTypeName(op.spec.type),
          ShapeToString(op.spec.shape), " from rank ", op.peer, ", which sent tag ",
          op.envelope.tag, ", ", DataTypeName(tensor.type()), ShapeToString(tensor.shape()))));
    }
    return HandOver(std::move(op.envelope.tensor), std::move(op.charge));
  }

  const std::shared_ptr<InProcessWorld> world_;
  const int rank_;
  std::vector<Peer> peers_;
  TicketTable<InProcessOperation> operations_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeInProcessCommunicators(
    int size, const InProcessOptions& options) {
  auto world = std::make_shared<InProcessWorld>(size, options);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(std::make_unique<InProcessCommunicator>(world, r));
  return ranks;
}

}  // namespace pipelab
