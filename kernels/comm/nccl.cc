#include "kernels/comm/nccl.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/comm/collective_checks.h"
#include "kernels/comm/nccl_link.h"
#include "kernels/comm/ticket_table.h"
#include "kernels/tensor/storage.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// What goes ahead of a message's bytes, and what members of a collective show each other.
struct Head {
  uint64_t tag = 0;
  int32_t type = 0, dims = 0;
  std::array<int64_t, 8> shape{};
  int32_t op = 0, root = 0;  // of a collective
  int64_t size = 0;
};

// Bytes in the device's memory until the last user is gone.
class DeviceBytes {
 public:
  DeviceBytes(gpu::Device* device, int64_t bytes)
      : device_(device), data_(bytes == 0 ? nullptr : device->Take(bytes)), bytes_(bytes) {}
  ~DeviceBytes() {
    if (data_ != nullptr) device_->Give(data_, bytes_, {});
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  gpu::Device* const device_;
  void* const data_;
  const int64_t bytes_;
};

// A message on its way out. Its memory stays until it is sent.
struct Outgoing {
  Tensor tensor;
  std::unique_ptr<DeviceBytes> head;
  std::unique_ptr<NcclEvent> sent;  // null: to itself
};

// A posted receive, from its post to its end.
struct Incoming {
  enum class State : uint8_t { kPosted, kHeadComing, kBytesComing, kDone };
  State state = State::kPosted;
  std::unique_ptr<DeviceBytes> head_bytes;
  Head head;
  Tensor tensor;
  std::unique_ptr<NcclEvent> event;
  bool wrong = false;  // the head is not what was expected: no bytes are asked for
};

struct Collective {
  struct Member {
    std::unique_ptr<DeviceBytes> heads;  // the own one, then the other's
    std::unique_ptr<NcclEvent> event;
  };
  CollectiveClaim claim;
  std::vector<int> group;
  int me = 0;
  Tensor data, result;          // uncharged
  std::vector<Member> members;  // by place in the group; the own one is empty
};

struct Operation {
  int peer = 0;
  uint64_t tag = 0;
  TensorSpec spec;
  std::shared_ptr<Charge> charge;
  std::shared_ptr<Outgoing> out;
  std::shared_ptr<Incoming> in;
  std::shared_ptr<Collective> collective;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(ProcessGroup* processes, std::shared_ptr<SharedRun> run, int size,
                   std::shared_ptr<gpu::Device> device)
      : processes_(processes),
        run_(std::move(run)),
        rank_(processes->rank()),
        size_(size),
        device_(std::move(device)),
        posted_(size),
        out_(size),
        in_(size),
        beside_(size) {}

  // What waits on the GPU would wait for ever: after an error, and for receives that nobody waited
  // for.
  ~NcclCommunicator() override {
    SetWhereabouts(nullptr);
    if (run_->ended() || operations_under_way_ > 0) AbortLinks();
  }

  // Of all ranks' names for the links that they begin: to each other rank its messages' and, from
  // the lower rank of a pair, their collectives'.
  absl::StatusOr<std::string> NewNames() const {
    std::string names;
    for (int other = 0; other < size_; ++other) {
      for (const bool needed : {other != rank_, other > rank_}) {
        if (!needed) continue;
        PIPELAB_ASSIGN_OR_RETURN(const std::string id, NcclLink::NewId());
        names += id;
      }
    }
    return names;
  }

  absl::Status Connect(const std::vector<std::string>& names, absl::Duration limit) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string any, NcclLink::NewId());
    const size_t length = any.size();
    // The place of (from, to)'s name in from's list, and whether it is that of collectives.
    const auto name = [&](int from, int to, bool collective) {
      size_t place = 0;
      for (int other = 0; other < to; ++other) place += (other != from) + (other > from);
      return names[from].substr((place + (collective ? 1 : 0)) * length, length);
    };
    std::vector<NcclLink*> links;
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      const int low = std::min(rank_, other), high = std::max(rank_, other);
      for (auto& [link, id, end] :
           {std::make_tuple(&out_[other], name(rank_, other, false), 0),
            std::make_tuple(&in_[other], name(other, rank_, false), 1),
            std::make_tuple(&beside_[other], name(low, high, true), rank_ == low ? 0 : 1)}) {
        *link = std::make_unique<NcclLink>();
        PIPELAB_RETURN_IF_ERROR((*link)->Begin(id, end));
        links.push_back(link->get());
      }
    }
    PIPELAB_RETURN_IF_ERROR(AwaitLinks(links, limit));
    const DeviceBytes bytes(device_.get(), 2 * static_cast<int64_t>(links.size()) + 1);
    PIPELAB_RETURN_IF_ERROR(device_->Finish());
    for (size_t i = 0; i < links.size(); ++i) {
      PIPELAB_RETURN_IF_ERROR(links[i]->BeginConnect(bytes.data() + 2 * i));
    }
    PIPELAB_RETURN_IF_ERROR(AwaitLinks(links, limit));
    for (NcclLink* link : links) {
      PIPELAB_ASSIGN_OR_RETURN(const auto done, link->Send(nullptr, 0));
      PIPELAB_RETURN_IF_ERROR(
          Await([&] { return done->Ready(); }, limit,
                [] { return std::string("NCCL's first bytes did not arrive"); }));
    }
    return absl::OkStatus();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "nccl"; }

  absl::StatusOr<Ticket> Send(Tensor tensor, int to, uint64_t tag) override {
    PIPELAB_RETURN_IF_ERROR(CheckCall(to));
    Head head;
    if (tensor.shape().size() > head.shape.size()) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank_, " sends ",
                                                     tensor.shape().size(), " dimensions; at most ",
                                                     head.shape.size(), " can be"));
    }
    head.tag = tag;
    head.type = static_cast<int32_t>(tensor.type());
    for (const int64_t d : tensor.shape()) head.shape[head.dims++] = d;
    auto out = std::make_shared<Outgoing>();
    out->tensor = std::move(tensor).Adopt(nullptr);
    if (to == rank_) {
      to_self_.push_back({head, out->tensor});
    } else {
      PIPELAB_RETURN_IF_ERROR(OrFail(StartSend(to, head, out.get())));
    }
    return AddOperation([&](Operation* o) {
      o->peer = to;
      o->tag = tag;
      o->out = std::move(out);
    });
  }

  absl::StatusOr<Ticket> Receive(TensorSpec spec, int from, uint64_t tag,
                                 std::shared_ptr<Charge> charge) override {
    PIPELAB_RETURN_IF_ERROR(CheckCall(from));
    auto in = std::make_shared<Incoming>();
    if (from != rank_) {
      const int64_t bytes = NumElements(spec.shape) * SizeOf(spec.type);
      in->tensor =
          Tensor(spec.type, spec.shape, std::make_shared<Storage>(bytes, device_), nullptr);
      in->head_bytes = std::make_unique<DeviceBytes>(device_.get(), sizeof(Head));
      PIPELAB_RETURN_IF_ERROR(OrFail(device_->Finish()));  // the memory is there, for any stream
    }
    posted_[from].push_back(in);
    PIPELAB_RETURN_IF_ERROR(OrFail(Progress()));
    return AddOperation([&](Operation* o) {
      o->peer = from;
      o->tag = tag;
      o->spec = std::move(spec);
      o->charge = std::move(charge);
      o->in = std::move(in);
    });
  }

  absl::StatusOr<Tensor> Wait(Ticket ticket, absl::Duration limit) override {
    PIPELAB_RETURN_IF_ERROR(CheckRun());
    Operation* operation = operations_.Find(ticket);
    if (operation == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank_, " waits for a ticket that is not under way"));
    }
    absl::StatusOr<Tensor> result = operation->collective != nullptr
                                        ? FinishCollective(*operation->collective, limit)
                                    : operation->out != nullptr ? FinishSend(*operation, limit)
                                                                : FinishReceive(*operation, limit);
    if (!result.ok() && !run_->ended()) result = OrFail(result.status());
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
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size_, rank_, group));
    PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
    return Begin(CollectiveOp::kReduceScatter, -1, group, data, part);
  }
  absl::StatusOr<Ticket> BeginAllGather(const Tensor& part, const Tensor& data,
                                        absl::Span<const int> group) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size_, rank_, group));
    PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
    return Begin(CollectiveOp::kAllGather, -1, group, part, data);
  }
  absl::Status Broadcast(const Tensor& data, int root, absl::Span<const int> group,
                         absl::Duration limit) override {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size_, rank_, group));
    PIPELAB_RETURN_IF_ERROR(CheckRoot(root, group));
    PIPELAB_ASSIGN_OR_RETURN(const Ticket ticket,
                             Begin(CollectiveOp::kBroadcast, root, group, data, data));
    return Wait(ticket, limit).status();
  }

  void Abort(absl::Status why) override {
    if (why.ok()) why = absl::AbortedError(absl::StrCat("rank ", rank_, " ended the run"));
    run_->Fail(std::move(why)).IgnoreError();
  }

  void SetWhereabouts(std::function<std::string()> text) override {
    processes_->SetWhereabouts(rank_, std::move(text));
  }

 private:
  // The run's end, of which the GPU hears here: by this rank's thread.
  absl::Status CheckRun() {
    if (run_->ended()) AbortLinks();
    return run_->Check();
  }
  absl::Status CheckCall(int peer) {
    if (peer < 0 || peer >= size_) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank_, " calls rank ", peer, " of ", size_));
    }
    return CheckRun();
  }
  // An error of the transport ends the run for all.
  absl::Status OrFail(absl::Status status) {
    if (status.ok()) return status;
    if (run_->ended()) return CheckRun();
    status = run_->Fail(std::move(status));
    AbortLinks();
    return status;
  }
  void AbortLinks() {
    for (auto* links : {&out_, &in_, &beside_}) {
      for (const std::unique_ptr<NcclLink>& link : *links) {
        if (link != nullptr) link->Abort();
      }
    }
  }

  template <class Fill>
  Ticket AddOperation(const Fill& fill) {
    Operation* operation;
    const Ticket ticket = operations_.Add(&operation);
    ++operations_under_way_;
    fill(operation);
    return ticket;
  }

  // Polls ready(), and moves what is posted on meanwhile.
  template <class Ready, class Describe>
  absl::Status Await(const Ready& ready, absl::Duration limit, const Describe& describe) {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t round = 0;; ++round) {
      PIPELAB_RETURN_IF_ERROR(CheckRun());
      PIPELAB_RETURN_IF_ERROR(Progress());
      PIPELAB_ASSIGN_OR_RETURN(const bool done, ready());
      if (done) return absl::OkStatus();
      if (absl::FromChrono(std::chrono::steady_clock::now() - begin) > limit) {
        return absl::DeadlineExceededError(describe());
      }
      if (round > 100) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  absl::Status AwaitLinks(const std::vector<NcclLink*>& links, absl::Duration limit) {
    const auto all_ready = [&]() -> absl::StatusOr<bool> {
      for (NcclLink* link : links) {
        PIPELAB_ASSIGN_OR_RETURN(const bool ready, link->Ready());
        if (!ready) return false;
      }
      return true;
    };
    return Await(all_ready, limit, [&] {
      return absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(limit),
                          " for NCCL to join the ranks");
    });
  }

  absl::Status StartSend(int to, const Head& head, Outgoing* out) {
    out->head = std::make_unique<DeviceBytes>(device_.get(), sizeof(head));
    if (out->head->data() == nullptr) return device_->Finish();
    device_->FromHost(&head, out->head->data(), sizeof(head));
    PIPELAB_RETURN_IF_ERROR(device_->Finish());  // the tensor's values, too
    PIPELAB_RETURN_IF_ERROR(out_[to]->Send(out->head->data(), sizeof(head)).status());
    PIPELAB_ASSIGN_OR_RETURN(out->sent, out_[to]->Send(out->tensor.data(), out->tensor.bytes()));
    return absl::OkStatus();
  }

  // Goes on with the first posted receive of each other rank.
  absl::Status Progress() {
    for (int from = 0; from < size_; ++from) {
      while (from != rank_ && !posted_[from].empty()) {
        Incoming& in = *posted_[from].front();
        PIPELAB_ASSIGN_OR_RETURN(const bool done, Advance(from, &in));
        if (!done) break;
        posted_[from].pop_front();
      }
    }
    return absl::OkStatus();
  }

  // True when nothing more is to be done for it.
  absl::StatusOr<bool> Advance(int from, Incoming* in) {
    if (in->state == Incoming::State::kPosted) {
      PIPELAB_ASSIGN_OR_RETURN(in->event, in_[from]->Receive(in->head_bytes->data(), sizeof(Head)));
      in->state = Incoming::State::kHeadComing;
    }
    PIPELAB_ASSIGN_OR_RETURN(bool arrived, in->event->Ready());
    if (in->state == Incoming::State::kHeadComing && arrived) {
      device_->ToHost(in->head_bytes->data(), &in->head, sizeof(Head));
      PIPELAB_RETURN_IF_ERROR(device_->Finish());
      in->wrong = !Fits(in->head, in->tensor);
      if (in->wrong) {
        in->state = Incoming::State::kDone;  // its wait ends the run
        return false;                        // and nothing behind it can be right
      }
      PIPELAB_ASSIGN_OR_RETURN(in->event,
                               in_[from]->Receive(in->tensor.data(), in->tensor.bytes()));
      in->state = Incoming::State::kBytesComing;
      PIPELAB_ASSIGN_OR_RETURN(arrived, in->event->Ready());
    }
    if (in->state == Incoming::State::kBytesComing && arrived) in->state = Incoming::State::kDone;
    return in->state == Incoming::State::kDone && !in->wrong;
  }

  static Shape ShapeOf(const Head& head) {
    return Shape(head.shape.begin(), head.shape.begin() + head.dims);
  }
  // All but the tag.
  static bool Fits(const Head& head, const Tensor& tensor) {
    return static_cast<DataType>(head.type) == tensor.type() && ShapeOf(head) == tensor.shape();
  }

  absl::StatusOr<Tensor> FinishSend(const Operation& op, absl::Duration limit) {
    if (op.out->sent == nullptr) return Tensor();
    PIPELAB_RETURN_IF_ERROR(Await([&] { return op.out->sent->Ready(); }, limit,
                                  [&] {
                                    return absl::StrCat("rank ", rank_, " waited ",
                                                        absl::FormatDuration(limit), " for rank ",
                                                        op.peer, " to receive tag ", op.tag);
                                  }));
    return Tensor();
  }

  absl::StatusOr<Tensor> FinishReceive(Operation& op, absl::Duration limit) {
    const auto done = [&]() -> absl::StatusOr<bool> {
      if (op.peer == rank_) TakeOwnMail();
      return op.in->state == Incoming::State::kDone;
    };
    PIPELAB_RETURN_IF_ERROR(Await(done, limit, [&] {
      return absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(limit), " for tag ",
                          op.tag, " from rank ", op.peer);
    }));
    const Head& head = op.in->head;
    const auto type = static_cast<DataType>(head.type);
    if (head.tag != op.tag || type != op.spec.type || ShapeOf(head) != op.spec.shape) {
      return absl::InternalError(
          absl::StrCat("rank ", rank_, " expects tag ", op.tag, ", ", DataTypeName(op.spec.type),
                       ShapeToString(op.spec.shape), " from rank ", op.peer, ", which sent tag ",
                       head.tag, ", ", DataTypeName(type), ShapeToString(ShapeOf(head))));
    }
    return HandOver(std::move(op.in->tensor), std::move(op.charge));
  }

  void TakeOwnMail() {
    while (!posted_[rank_].empty() && !to_self_.empty()) {
      Incoming& in = *posted_[rank_].front();
      in.head = to_self_.front().first;
      in.tensor = std::move(to_self_.front().second);
      in.state = Incoming::State::kDone;
      to_self_.pop_front();
      posted_[rank_].pop_front();
    }
  }

  absl::StatusOr<Ticket> Begin(CollectiveOp op, int root, absl::Span<const int> group,
                               const Tensor& data, const Tensor& result) {
    PIPELAB_RETURN_IF_ERROR(CheckGroup(size_, rank_, group));
    PIPELAB_RETURN_IF_ERROR(CheckRun());
    auto call = std::make_shared<Collective>();
    call->claim = {op, root, data.type(), data.size()};
    call->group.assign(group.begin(), group.end());
    call->me = static_cast<int>(std::find(group.begin(), group.end(), rank_) - group.begin());
    call->data = Tensor(data).Adopt(nullptr);
    call->result = Tensor(result).Adopt(nullptr);
    return AddOperation([&](Operation* o) { o->collective = std::move(call); });
  }

  absl::Status ShowClaims(Collective* call) {
    Head head;
    head.op = static_cast<int32_t>(call->claim.op);
    head.root = call->claim.root;
    head.type = static_cast<int32_t>(call->claim.type);
    head.size = call->claim.size;
    call->members.resize(call->group.size());
    for (size_t i = 0; i < call->group.size(); ++i) {
      if (static_cast<int>(i) == call->me) continue;
      Collective::Member& member = call->members[i];
      member.heads = std::make_unique<DeviceBytes>(device_.get(), 2 * sizeof(Head));
      if (member.heads->data() == nullptr) return device_->Finish();
      device_->FromHost(&head, member.heads->data(), sizeof(head));
    }
    PIPELAB_RETURN_IF_ERROR(device_->Finish());  // the data's values, too
    return Exchange(call, [&](int i) {
      char* const heads = call->members[i].heads->data();
      return Bytes4{heads, sizeof(Head), heads + sizeof(Head), sizeof(Head)};
    });
  }

  struct Bytes4 {
    const void* out;
    int64_t out_bytes;
    void* in;
    int64_t in_bytes;
  };

  // Starts an exchange with each other member: what goes and comes is bytes(place in the group).
  template <class Bytes>
  absl::Status Exchange(Collective* call, const Bytes& bytes) {
    for (size_t i = 0; i < call->group.size(); ++i) {
      if (static_cast<int>(i) == call->me) continue;
      const Bytes4 b = bytes(static_cast<int>(i));
      PIPELAB_ASSIGN_OR_RETURN(call->members[i].event, beside_[call->group[i]]->Exchange(
                                                           b.out, b.out_bytes, b.in, b.in_bytes));
    }
    return absl::OkStatus();
  }

  absl::Status AwaitExchange(const Collective& call, absl::Duration limit) {
    for (size_t i = 0; i < call.group.size(); ++i) {
      if (static_cast<int>(i) == call.me) continue;
      PIPELAB_RETURN_IF_ERROR(Await([&] { return call.members[i].event->Ready(); }, limit,
                                    [&] {
                                      return WaitedInCollective(rank_, limit, call.group[i],
                                                                call.claim.op, call.group);
                                    }));
    }
    return absl::OkStatus();
  }

  absl::Status CheckClaims(const Collective& call) {
    for (size_t i = 0; i < call.group.size(); ++i) {
      if (static_cast<int>(i) == call.me) continue;
      Head head;
      device_->ToHost(call.members[i].heads->data() + sizeof(Head), &head, sizeof(head));
      PIPELAB_RETURN_IF_ERROR(device_->Finish());
      const CollectiveClaim claim = {static_cast<CollectiveOp>(head.op), head.root,
                                     static_cast<DataType>(head.type), head.size};
      if (claim == call.claim) continue;
      const bool lower = static_cast<int>(i) < call.me;
      return Disagreement(call.group, lower ? call.group[i] : rank_, lower ? claim : call.claim,
                          lower ? rank_ : call.group[i], lower ? call.claim : claim);
    }
    return absl::OkStatus();
  }

  // Elements that member i adds up, of an all-reduce.
  static std::pair<int64_t, int64_t> ChunkOf(const Collective& call, int i) {
    const int64_t n = call.data.size(), members = static_cast<int64_t>(call.group.size());
    const int64_t lines = (n + 31) / 32;
    return {std::min(n, lines * i / members * 32), std::min(n, lines * (i + 1) / members * 32)};
  }

  // All of it is done here: members wait for those that they share in one order, and each begins
  // them where it likes.
  absl::StatusOr<Tensor> FinishCollective(Collective& call, absl::Duration limit) {
    PIPELAB_RETURN_IF_ERROR(ShowClaims(&call));
    PIPELAB_RETURN_IF_ERROR(AwaitExchange(call, limit));
    PIPELAB_RETURN_IF_ERROR(CheckClaims(call));
    switch (call.claim.op) {
      case CollectiveOp::kAllReduce:
      case CollectiveOp::kAllReduceMax:
        PIPELAB_RETURN_IF_ERROR(AllReduceBytes(&call, limit));
        break;
      case CollectiveOp::kReduceScatter:
        PIPELAB_RETURN_IF_ERROR(ReduceScatterBytes(&call, limit));
        break;
      case CollectiveOp::kAllGather:
        PIPELAB_RETURN_IF_ERROR(AllGatherBytes(&call, limit));
        break;
      case CollectiveOp::kBroadcast:
        PIPELAB_RETURN_IF_ERROR(BroadcastBytes(&call, limit));
        break;
      case CollectiveOp::kNone:
        break;
    }
    PIPELAB_RETURN_IF_ERROR(device_->Finish());
    return Tensor();
  }

  static char* At(const Tensor& tensor, int64_t element) {
    return static_cast<char*>(tensor.data()) + element * SizeOf(tensor.type());
  }

  // Everybody's elements [begin, end) of this member, added in group order to `output`.
  absl::Status Gathered(Collective* call, absl::Duration limit,
                        const std::function<std::pair<int64_t, int64_t>(int)>& part, void* output) {
    const auto [begin, end] = part(call->me);
    const int64_t width = SizeOf(call->data.type()), own = (end - begin) * width;
    const int64_t members = static_cast<int64_t>(call->group.size());
    const DeviceBytes scratch(device_.get(), own * members);
    PIPELAB_RETURN_IF_ERROR(device_->Finish());
    PIPELAB_RETURN_IF_ERROR(Exchange(call, [&](int i) {
      const auto [theirs, last] = part(i);
      return Bytes4{At(call->data, theirs), (last - theirs) * width, scratch.data() + i * own, own};
    }));
    PIPELAB_RETURN_IF_ERROR(AwaitExchange(*call, limit));
    if (own == 0) return absl::OkStatus();
    std::vector<const void*> inputs;
    for (int i = 0; i < members; ++i) {
      inputs.push_back(i == call->me ? At(call->data, begin) : scratch.data() + i * own);
    }
    const auto reduction = call->claim.op == CollectiveOp::kAllReduceMax ? MemoryReduction::kMax
                                                                         : MemoryReduction::kSum;
    device_->Reduce(reduction, inputs, absl::MakeConstSpan(&output, 1), call->data.type(), 0,
                    end - begin);
    return device_->Finish();
  }

  absl::Status AllReduceBytes(Collective* call, absl::Duration limit) {
    const auto chunk = [&](int i) { return ChunkOf(*call, i); };
    const int64_t width = SizeOf(call->data.type());
    const auto [begin, end] = chunk(call->me);
    PIPELAB_RETURN_IF_ERROR(Gathered(call, limit, chunk, At(call->data, begin)));
    PIPELAB_RETURN_IF_ERROR(Exchange(call, [&, begin = begin, end = end](int i) {
      const auto [theirs, last] = chunk(i);
      return Bytes4{At(call->data, begin), (end - begin) * width, At(call->data, theirs),
                    (last - theirs) * width};
    }));
    return AwaitExchange(*call, limit);
  }

  absl::Status ReduceScatterBytes(Collective* call, absl::Duration limit) {
    const int64_t size = call->result.size();
    const auto part = [size](int i) { return std::make_pair(i * size, (i + 1) * size); };
    return Gathered(call, limit, part, call->result.data());
  }

  absl::Status AllGatherBytes(Collective* call, absl::Duration limit) {
    const int64_t size = call->data.size(), bytes = call->data.bytes();
    PIPELAB_RETURN_IF_ERROR(Exchange(call, [&](int i) {
      return Bytes4{call->data.data(), bytes, At(call->result, i * size), bytes};
    }));
    char* const own = At(call->result, call->me * size);
    if (bytes > 0 && own != call->data.data()) device_->Copy(call->data.data(), own, bytes);
    return AwaitExchange(*call, limit);
  }

  absl::Status BroadcastBytes(Collective* call, absl::Duration limit) {
    const bool root = call->claim.root == rank_;
    PIPELAB_RETURN_IF_ERROR(Exchange(call, [&](int i) {
      const bool from_them = call->group[i] == call->claim.root;
      return Bytes4{call->data.data(), root ? call->data.bytes() : 0, call->data.data(),
                    from_them ? call->data.bytes() : 0};
    }));
    return AwaitExchange(*call, limit);
  }

  ProcessGroup* const processes_;
  const std::shared_ptr<SharedRun> run_;
  const int rank_, size_;
  const std::shared_ptr<gpu::Device> device_;
  std::deque<std::pair<Head, Tensor>> to_self_;
  std::vector<std::deque<std::shared_ptr<Incoming>>> posted_;  // [from], in order
  TicketTable<Operation> operations_;
  int64_t operations_under_way_ = 0;
  // [other rank]: messages to it, messages from it, collectives with it. After what uses them.
  std::vector<std::unique_ptr<NcclLink>> out_, in_, beside_;
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(ProcessGroup* processes, std::shared_ptr<gpu::Device> device, absl::Duration limit)
      : processes_(processes), device_(std::move(device)), limit_(limit) {}

  absl::string_view name() const override { return "nccl"; }
  ProcessGroup* processes() const override { return processes_; }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(int devices) override {
    if (devices != processes_->size()) {
      return absl::InvalidArgumentError(absl::StrCat("NCCL has a device a process: ", devices,
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
    return absl::InvalidArgumentError(absl::StrCat(
        "NCCL has a device a process: ", size, " devices in ", processes->size(), " processes"));
  }
  const std::shared_ptr<SharedRun> run = processes->BeginRun();
  const bool member = processes->rank() < size;
  std::unique_ptr<NcclCommunicator> own;
  std::string names;
  if (member) {
    own = std::make_unique<NcclCommunicator>(processes, run, size, std::move(device));
    PIPELAB_ASSIGN_OR_RETURN(names, own->NewNames());
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> all, processes->ToAll(names, limit));
  if (!member) return own;
  const absl::Status connected = own->Connect(all, limit);
  if (!connected.ok()) return run->Fail(connected);
  return own;
}

}  // namespace pipelab
