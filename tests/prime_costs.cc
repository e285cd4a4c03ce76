#include "tests/prime_costs.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"

namespace pipelab {
namespace {

// Ascending.
const std::vector<int32_t>& AllPrimes() {
  static const std::vector<int32_t>* const primes = [] {
    constexpr int32_t kMost = 4'000'000;
    std::vector<bool> composite(kMost, false);
    auto* found = new std::vector<int32_t>;
    for (int32_t n = 2; n < kMost; ++n) {
      if (composite[n]) continue;
      found->push_back(n);
      for (int64_t multiple = int64_t{n} * n; multiple < kMost; multiple += n) {
        composite[multiple] = true;
      }
    }
    return found;
  }();
  return *primes;
}

// Hands out primes, each once.
class Primes {
 public:
  // Where few are needed, they differ by more.
  explicit Primes(bool many) : stride_(many ? 1 : 64) {}

  int64_t Next() {
    CHECK_LT(next_, AllPrimes().size()) << "a program with more prices than there are primes";
    return AllPrimes()[std::exchange(next_, next_ + stride_)];
  }
  // For what is less than anything else.
  int64_t NextSmall() {
    CHECK_LT(next_small_, kFirst) << "a program with more small prices than there are small primes";
    return AllPrimes()[next_small_++];
  }

 private:
  static constexpr size_t kFirst = 10000;
  const size_t stride_;
  size_t next_ = kFirst, next_small_ = 2;
};

class PrimeTable {
 public:
  PrimeTable(const Program& program, PricesOf prices)
      : program_(program),
        s_(program.schedule),
        prices_(prices),
        primes_(/*many=*/program.schedule.NumShapes() > 1) {}

  CostTable Make() && {
    table_.stages.resize(s_.num_stages());
    for (StageCost& stage : table_.stages) {
      SetPasses(&stage);
      SetState(&stage);
    }
    table_.edge_bytes = EdgeBytes();
    SetSlices();
    SetExchanges();
    SetLinks();
    SetWays();
    for (const Reduction& r : program_.reductions) {
      if (!r.parameter.empty() && table_.tie_bytes.count(r.parameter) == 0) {
        table_.tie_bytes[r.parameter] = Bytes(4 * primes_.Next());
      }
    }
    return std::move(table_);
  }

 private:
  // What differs by slice or pass.
  void SetPasses(StageCost* stage) {
    for (Nanoseconds* time : {&stage->forward, &stage->backward_input, &stage->backward_weight,
                              &stage->recompute, &stage->step}) {
      *time = Nanoseconds(primes_.Next());
    }
    for (Bytes* bytes : stage->memory.Activations()) *bytes = Bytes(primes_.Next());
    // A forward that recomputes keeps less than one that does not.
    stage->memory.kept_when_dropped = stage->memory.carried = Bytes(0);
    if (s_.num_slices > 1) {
      stage->memory.kept_when_dropped = Bytes(primes_.NextSmall());
      stage->memory.carried = Bytes(primes_.NextSmall());
    }
    StageCost::TensorTraffic& traffic = stage->tensor_traffic;
    for (Bytes* bytes : {&traffic.forward, &traffic.backward_input, &traffic.backward_weight}) {
      *bytes = Bytes(primes_.Next());
    }
    if (prices_ != PricesOf::kSharedLinks) return;
    stage->statistics.forward = {{Collective::kAllReduce, Bytes(primes_.Next())}};
    stage->statistics.backward_input = {{Collective::kAllReduce, Bytes(primes_.Next())}};
  }

  void SetState(StageCost* stage) {
    StageMemory& m = stage->memory;
    if (prices_ == PricesOf::kBlocking) m.numbers = {/*weights=*/2, /*gradients=*/2, /*cast=*/true};
    const int64_t own = primes_.Next(), tied = primes_.Next(), statistics = primes_.Next();
    const int64_t experts = program_.expert_copies > 1 ? primes_.Next() : 0;
    const int64_t later_uses = primes_.Next(), values = own + tied + experts;
    m.gradients = Bytes(m.numbers.gradients * own);
    m.expert_gradients = Bytes(m.numbers.gradients * experts);
    m.weights = Bytes(m.numbers.weights * values);
    m.optimizer = Bytes(m.numbers.OptimizerBytes(/*tensors=*/2) * values);
    m.statistics = Bytes(4 * statistics);
    m.state =
        m.weights + m.optimizer + m.statistics + Bytes(m.numbers.gradients * (values + later_uses));
    stage->tensor_traffic.step = Bytes(primes_.Next());
    if (s_.merges_passes) stage->merged_saving = Nanoseconds(primes_.NextSmall());
  }

  // Tensor-parallel groups can send parts of eight times a prime.
  std::vector<Bytes> EdgeBytes() {
    const int64_t times = prices_ == PricesOf::kAtWait ? 8 : 1;
    std::vector<Bytes> edge_bytes;
    for (size_t e = 0; e < s_.stages.edges.size(); ++e) {
      edge_bytes.push_back(Bytes(times * primes_.Next()));
    }
    return edge_bytes;
  }

  void SetSlices() {
    if (s_.NumShapes() == 1 || prices_ == PricesOf::kWholeParts) return;
    table_.of_passes = !s_.carried.empty();
    table_.slices.resize(s_.NumShapes());
    for (SliceCosts& slice : table_.slices) {
      slice.stages.resize(s_.num_stages());
      for (StageCost& stage : slice.stages) SetPasses(&stage);
      slice.edge_bytes = EdgeBytes();
    }
  }

  void SetExchanges() {
    CostTable::Exchanges& exchanges = table_.exchanges;
    exchanges.costs.resize(program_.exchanges.size());
    for (StageCost& stage : exchanges.costs) SetPasses(&stage);
    exchanges.of_pass.resize(exchanges.costs.size());
    std::iota(exchanges.of_pass.begin(), exchanges.of_pass.end(), 0);
  }

  Link PrimeLink() {
    return {"link", Nanoseconds(primes_.NextSmall()),
            BytesPerSecond(1e5 * static_cast<double>(primes_.Next()))};
  }

  // A byte takes a nanosecond, or about as long.
  void SetLinks() {
    const Link every = PrimeLink();
    table_.hop_latency = every.latency;
    table_.bandwidth = every.bandwidth;
    table_.host_bandwidth = PrimeLink().bandwidth;
    table_.reduce = Nanoseconds(primes_.NextSmall());
    if (prices_ != PricesOf::kSharedLinks) return;
    table_.network = SharedUplinks(s_.num_devices(), /*devices_per_node=*/2, Link(), Link());
    for (Link& link : table_.network.links) link = PrimeLink();
    for (int m = 0; m < s_.num_micro_batches; ++m) {
      table_.releases.push_back(Nanoseconds(m * primes_.Next()));
    }
  }

  void SetWays() {
    table_.overlap = table_.overlap_collectives = prices_ != PricesOf::kBlocking;
    table_.steady_overlap = prices_ == PricesOf::kSteady;
    table_.collectives_at_wait = prices_ == PricesOf::kAtWait;
    if (prices_ == PricesOf::kBlocking) {
      for (int d = 0; d < s_.num_devices(); ++d) table_.device_speed.push_back(1 - d % 4 * 0.125);
    }
    if (prices_ == PricesOf::kSteady) {
      for (size_t e = 0; e < s_.stages.edges.size(); ++e) {
        table_.edge_latency.push_back(
            {Nanoseconds(primes_.NextSmall()), Nanoseconds(primes_.NextSmall())});
      }
    }
    if (prices_ == PricesOf::kAtWait) {
      table_.tensor_parallel = 2;
      table_.divided_messages = true;
    }
    if (program_.calls != MessageCalls::kNone) {
      const Link gather = PrimeLink();
      table_.message_gather = {gather.latency, gather.bandwidth};
      table_.launch_gap = Nanoseconds(primes_.NextSmall());
    }
  }

  const Program& program_;
  const Schedule& s_;
  const PricesOf prices_;
  Primes primes_;
  CostTable table_;
};

}  // namespace

CostTable PrimeCosts(const Program& program, PricesOf prices) {
  return PrimeTable(program, prices).Make();
}

}  // namespace pipelab
