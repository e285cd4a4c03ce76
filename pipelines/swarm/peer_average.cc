// The part of SwarmPeer that averages: an all-reduce of a stage, each peer answering for one part.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/messages/order_free_sum.h"
#include "pipelines/swarm/peer.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Where a part of `values` begins, with `parts` as equal as can be.
int64_t PartBegin(int64_t values, int64_t parts, int64_t part) { return values * part / parts; }

std::string ToBytes(absl::Span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

absl::Status AddBytes(const std::string& bytes, bool assign, absl::Span<float> sum) {
  if (bytes.size() != sum.size() * sizeof(float)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sum of ", bytes.size(), " bytes for ", sum.size(), " values"));
  }
  std::vector<float> values(sum.size());
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = assign ? values[i] : sum[i] + values[i];
  return absl::OkStatus();
}

// The shares' sums, one after the other: exact and rounded once, or in float32.
class SumOfShares {
 public:
  SumOfShares(int64_t values, bool order_free)
      : order_free_(order_free), exact_(order_free ? values : 0), sum_(values) {}
  absl::Status Add(const swarm::Sum& sum, int64_t vectors) {
    if (!order_free_) {
      const bool first = std::exchange(first_, false);
      return AddBytes(sum.bytes(), first, absl::MakeSpan(sum_));
    }
    PIPELAB_ASSIGN_OR_RETURN(const OrderFreeSum theirs,
                             OrderFreeSum::FromBytes(sum.bytes(), exact_.values()));
    if (theirs.vectors() != vectors) {
      return absl::InvalidArgumentError(
          absl::StrCat("a sum of ", theirs.vectors(), " micro-batches in the place of ", vectors));
    }
    return exact_.Merge(theirs);
  }
  std::vector<float> Result() {
    if (order_free_) exact_.Round(absl::MakeSpan(sum_));
    return std::move(sum_);
  }

 private:
  const bool order_free_;
  bool first_ = true;
  OrderFreeSum exact_;
  std::vector<float> sum_;
};

void AddFault(const swarm::Share& of, const absl::Status& what, swarm::ReduceDone* done) {
  swarm::Fault* fault = done->add_faults();
  fault->set_peer(of.peer());
  fault->set_what(std::string(what.message()));
}

}  // namespace

absl::StatusOr<std::vector<SwarmPeer::Gradient>> SwarmPeer::GradientsOf(
    int64_t joined, const swarm::GetSum& get) const {
  absl::MutexLock lock(&books_);
  PIPELAB_RETURN_IF_ERROR(CheckJoined(joined));
  if (get.begin() < 0 || get.begin() > get.end() || get.end() > parameters_) {
    return absl::InvalidArgumentError(
        absl::StrCat("values [", get.begin(), ", ", get.end(), ") of ", parameters_));
  }
  std::vector<Gradient> gradients;
  for (int micro_batch : get.micro_batches()) {
    const auto it = gradients_.find({get.step(), micro_batch});
    if (it == gradients_.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("has no gradient of micro-batch ", micro_batch, " of step ", get.step()));
    }
    gradients.push_back(it->second);
  }
  return gradients;
}

absl::Status SwarmPeer::ServeSum(int64_t joined, const swarm::GetSum& get, swarm::Sum* sum) const {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Gradient> gradients, GradientsOf(joined, get));
  const int64_t begin = get.begin(), size = get.end() - begin;
  bool order_free = false;
  {
    absl::MutexLock lock(&books_);
    PIPELAB_RETURN_IF_ERROR(CheckJoined(joined));
    order_free = job_.order_free();
    if (get.reduced()) {
      if (part_.step != get.step() || part_.attempt != get.attempt() || part_.begin != begin ||
          static_cast<int64_t>(part_.values.size()) != size) {
        return absl::FailedPreconditionError(
            absl::StrCat("has no such part of step ", get.step(), ", attempt ", get.attempt()));
      }
      *sum->mutable_bytes() = ToBytes(part_.values);
      return absl::OkStatus();
    }
  }
  if (order_free) {
    OrderFreeSum exact(size);
    for (const Gradient& g : gradients) {
      PIPELAB_RETURN_IF_ERROR(exact.Add(absl::MakeConstSpan(*g).subspan(begin, size)));
    }
    *sum->mutable_bytes() = exact.ToBytes();
    return absl::OkStatus();
  }
  std::vector<float> floats(size);
  for (const Gradient& g : gradients) {
    for (int64_t i = 0; i < size; ++i) floats[i] += (*g)[begin + i];
  }
  *sum->mutable_bytes() = ToBytes(floats);
  return absl::OkStatus();
}

absl::Status SwarmPeer::FetchSum(int64_t joined, const swarm::Share& share,
                                 const swarm::GetSum& get, swarm::Sum* sum) {
  bool own = false;
  absl::Duration limit;
  {
    absl::MutexLock lock(&books_);
    own = share.peer() == peer_;
    limit = WaitLimit(job_);
  }
  if (own) return ServeSum(joined, get, sum);
  swarm::Request request;
  swarm::Reply reply;
  *request.mutable_get_sum() = get;
  request.set_epoch(epoch_);
  // Well before whoever asked for the average gives this peer up.
  PIPELAB_RETURN_IF_ERROR(link_.Call(share.address(), request, limit / 4, &reply));
  *sum = std::move(*reply.mutable_sum());
  return absl::OkStatus();
}

absl::Status SwarmPeer::ServeReduce(int64_t joined, const swarm::Reduce& r,
                                    swarm::ReduceDone* done) {
  Average part;
  part.step = r.step();
  part.attempt = r.attempt();
  swarm::GetSum get;
  get.set_step(r.step());
  get.set_attempt(r.attempt());
  bool order_free = false;
  {
    absl::MutexLock lock(&books_);
    if (r.part() < 0 || r.part() >= r.parts_size()) {
      return absl::InvalidArgumentError(absl::StrCat("part ", r.part(), " of ", r.parts_size()));
    }
    part.begin = PartBegin(parameters_, r.parts_size(), r.part());
    get.set_begin(part.begin);
    get.set_end(PartBegin(parameters_, r.parts_size(), r.part() + 1));
    order_free = job_.order_free();
  }
  SumOfShares sum(get.end() - get.begin(), order_free);
  for (const swarm::Share& share : r.shares()) {
    *get.mutable_micro_batches() = share.micro_batches();
    swarm::Sum theirs;
    absl::Status added = FetchSum(joined, share, get, &theirs);
    if (added.ok()) added = sum.Add(theirs, share.micro_batches_size());
    if (added.ok()) continue;
    AddFault(share, added, done);
    break;  // one limit's wait, not several
  }
  if (done->faults_size() > 0) return absl::OkStatus();
  part.values = sum.Result();
  absl::MutexLock lock(&books_);
  PIPELAB_RETURN_IF_ERROR(CheckJoined(joined));
  part_ = std::move(part);
  return absl::OkStatus();
}

absl::Status SwarmPeer::ServeGather(int64_t joined, const swarm::Reduce& r,
                                    swarm::ReduceDone* done) {
  Average whole;
  whole.step = r.step();
  whole.attempt = r.attempt();
  int64_t values = 0;
  {
    absl::MutexLock lock(&books_);
    values = parameters_;
  }
  whole.values.resize(values);
  for (int i = 0; i < r.parts_size(); ++i) {
    swarm::GetSum get;
    get.set_step(r.step());
    get.set_attempt(r.attempt());
    get.set_reduced(true);
    get.set_begin(PartBegin(values, r.parts_size(), i));
    get.set_end(PartBegin(values, r.parts_size(), i + 1));
    swarm::Sum part;
    absl::Status fetched = FetchSum(joined, r.parts(i), get, &part);
    if (fetched.ok()) {
      fetched =
          AddBytes(part.bytes(), /*assign=*/true,
                   absl::MakeSpan(whole.values).subspan(get.begin(), get.end() - get.begin()));
    }
    if (fetched.ok()) continue;
    AddFault(r.parts(i), fetched, done);
    break;
  }
  if (done->faults_size() > 0) return absl::OkStatus();
  absl::MutexLock lock(&books_);
  PIPELAB_RETURN_IF_ERROR(CheckJoined(joined));
  whole_ = std::move(whole);
  return absl::OkStatus();
}

}  // namespace pipelab
