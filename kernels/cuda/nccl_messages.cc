#include "kernels/cuda/nccl_messages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/tensor/storage.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// All but the tag.
bool Fits(const WireHead& head, int from, const Tensor& tensor) {
  const absl::StatusOr<TensorSpec> spec = SpecOf(head, from);
  return spec.ok() && spec->type == tensor.type() && spec->shape == tensor.shape();
}

}  // namespace

// A posted receive, from its post to its end.
struct NcclMessages::Arrival {
  enum class State : uint8_t { kPosted, kHeadComing, kBytesComing, kDone };
  State state = State::kPosted;
  std::unique_ptr<NcclBytes> head_bytes;
  WireHead head;
  Tensor tensor;
  std::unique_ptr<NcclEvent> event;
  bool wrong = false;  // the head is not what was expected: no bytes are asked for
};

absl::StatusOr<std::shared_ptr<NcclMessages::Outgoing>> NcclMessages::Send(Tensor tensor, int to,
                                                                           uint64_t tag) {
  WireHead head;
  PIPELAB_RETURN_IF_ERROR(SetSpec(tensor, world_.rank(), &head));
  head.tag = tag;
  auto out = std::make_shared<Outgoing>();
  out->to = to;
  out->tag = tag;
  out->tensor = std::move(tensor).Adopt(nullptr);
  if (to == world_.rank()) {
    to_self_.push_back({head, out->tensor});
  } else {
    PIPELAB_RETURN_IF_ERROR(world_.OrFail(StartSend(to, head, out.get())));
  }
  return out;
}

absl::Status NcclMessages::StartSend(int to, const WireHead& head, Outgoing* out) {
  out->head = std::make_unique<NcclBytes>(world_.device().get(), sizeof(head));
  if (out->head->data() == nullptr) return world_.device()->Finish();
  world_.device()->FromHost(&head, out->head->data(), sizeof(head));
  PIPELAB_RETURN_IF_ERROR(world_.device()->Finish());  // the tensor's values, too
  PIPELAB_RETURN_IF_ERROR(world_.to(to).Send(out->head->data(), sizeof(head)).status());
  PIPELAB_ASSIGN_OR_RETURN(out->sent, world_.to(to).Send(out->tensor.data(), out->tensor.bytes()));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<NcclMessages::Incoming>> NcclMessages::Post(
    TensorSpec spec, int from, uint64_t tag, std::shared_ptr<Charge> charge) {
  auto arrival = std::make_shared<Arrival>();
  if (from != world_.rank()) {
    const int64_t bytes = NumElements(spec.shape) * SizeOf(spec.type);
    arrival->tensor =
        Tensor(spec.type, spec.shape, std::make_shared<Storage>(bytes, world_.device()), nullptr);
    arrival->head_bytes = std::make_unique<NcclBytes>(world_.device().get(), sizeof(WireHead));
    // The memory is there, for any stream.
    PIPELAB_RETURN_IF_ERROR(world_.OrFail(world_.device()->Finish()));
  }
  posted_[from].push_back(arrival);
  PIPELAB_RETURN_IF_ERROR(world_.OrFail(Progress()));
  auto in = std::make_shared<Incoming>();
  *in = {from, tag, std::move(spec), std::move(charge), std::move(arrival)};
  return in;
}

absl::Status NcclMessages::Progress() {
  for (int from = 0; from < world_.size(); ++from) {
    while (from != world_.rank() && !posted_[from].empty()) {
      Arrival& in = *posted_[from].front();
      PIPELAB_ASSIGN_OR_RETURN(const bool done, Advance(from, &in));
      if (!done) break;
      posted_[from].pop_front();
    }
  }
  return absl::OkStatus();
}

// True when nothing more is to be done for it.
absl::StatusOr<bool> NcclMessages::Advance(int from, Arrival* in) {
  if (in->state == Arrival::State::kPosted) {
    PIPELAB_ASSIGN_OR_RETURN(in->event,
                             world_.from(from).Receive(in->head_bytes->data(), sizeof(WireHead)));
    in->state = Arrival::State::kHeadComing;
  }
  PIPELAB_ASSIGN_OR_RETURN(bool arrived, in->event->Ready());
  if (in->state == Arrival::State::kHeadComing && arrived) {
    world_.device()->ToHost(in->head_bytes->data(), &in->head, sizeof(WireHead));
    PIPELAB_RETURN_IF_ERROR(world_.device()->Finish());
    in->wrong = !Fits(in->head, from, in->tensor);
    if (in->wrong) {
      in->state = Arrival::State::kDone;  // its wait ends the run
      return false;                       // and nothing behind it can be right
    }
    PIPELAB_ASSIGN_OR_RETURN(in->event,
                             world_.from(from).Receive(in->tensor.data(), in->tensor.bytes()));
    in->state = Arrival::State::kBytesComing;
    PIPELAB_ASSIGN_OR_RETURN(arrived, in->event->Ready());
  }
  if (in->state == Arrival::State::kBytesComing && arrived) in->state = Arrival::State::kDone;
  return in->state == Arrival::State::kDone && !in->wrong;
}

absl::Status NcclMessages::Finish(const Outgoing& out, absl::Duration limit) {
  if (out.sent == nullptr) return absl::OkStatus();
  return world_.Await([&] { return out.sent->Ready(); }, limit,
                      [&] {
                        return absl::StrCat("rank ", world_.rank(), " waited ",
                                            absl::FormatDuration(limit), " for rank ", out.to,
                                            " to receive tag ", out.tag);
                      });
}

absl::StatusOr<Tensor> NcclMessages::Finish(Incoming* in, absl::Duration limit) {
  const auto done = [&]() -> absl::StatusOr<bool> {
    if (in->from == world_.rank()) TakeOwnMail();
    return in->arrival->state == Arrival::State::kDone;
  };
  PIPELAB_RETURN_IF_ERROR(world_.Await(done, limit, [&] {
    return absl::StrCat("rank ", world_.rank(), " waited ", absl::FormatDuration(limit),
                        " for tag ", in->tag, " from rank ", in->from);
  }));
  const WireHead& head = in->arrival->head;
  PIPELAB_ASSIGN_OR_RETURN(const TensorSpec sent, SpecOf(head, in->from));
  if (head.tag != in->tag || sent.type != in->spec.type || sent.shape != in->spec.shape) {
    return absl::InternalError(absl::StrCat(
        "rank ", world_.rank(), " expects tag ", in->tag, ", ", DataTypeName(in->spec.type),
        ShapeToString(in->spec.shape), " from rank ", in->from, ", which sent tag ", head.tag, ", ",
        DataTypeName(sent.type), ShapeToString(sent.shape)));
  }
  return HandOver(std::move(in->arrival->tensor), std::move(in->charge));
}

void NcclMessages::TakeOwnMail() {
  while (!posted_[world_.rank()].empty() && !to_self_.empty()) {
    Arrival& in = *posted_[world_.rank()].front();
    in.head = to_self_.front().first;
    in.tensor = std::move(to_self_.front().second);
    in.state = Arrival::State::kDone;
    to_self_.pop_front();
    posted_[world_.rank()].pop_front();
  }
}

}  // namespace pipelab
