#include "pipelines/synthesis/beam.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "pipelines/synthesis/partial.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

struct Child {
  int parent = 0, device = 0;
  Symbol symbol = 0;
  int64_t bound = 0;
  double rest = 0;  // of equal bounds, less is better
};

// Which pass was added to which beginning of the level before.
struct BeamStep {
  int32_t parent;
  int16_t device;
  Symbol symbol;
};

class Beam {
 public:
  Beam(const SynthesisProblem& p, const Heads& heads, const BeamOptions& options)
      : p_(p),
        options_(options),
        rules_(p, heads, {options.window, true, options.lead, options.sent}),
        random_(options.seed, "beam"),
        least_(options.shorter_than > 0 ? options.shorter_than : kNoMakespan) {
    double work = 0;
    for (int d = 0; d < p.devices; ++d) work += static_cast<double>(p.Work(d));
    unit_ = work / static_cast<double>(p.Symbols());
  }

  OrderWords Run() {
    states_ = {rules_.Start()};
    if (options_.begin_as != nullptr) Begin(*options_.begin_as);
    // Orders are of different lengths where what goes to the host is searched.
    while (!states_.empty()) {
      if (options_.stop && steps_.size() % 64 == 0 && options_.stop()) return {};
      MakeChildren();
      if (children_.empty()) break;
      Keep();
    }
    return best_;
  }

 private:
  void Begin(const OrderWords& words) {
    WordEvaluator evaluator(p_);
    if (evaluator.Makespan(words) == kNoMakespan) return;
    std::vector<std::tuple<int64_t, int, size_t>> order;
    for (int d = 0; d < p_.devices; ++d) {
      for (size_t i = 0; i < words[d].size(); ++i) {
        const int64_t begin = evaluator.Begins(d)[i];
        if (begin < options_.begin_until) order.push_back({begin, d, i});
      }
    }
    std::sort(order.begin(), order.end());
    for (const auto& [begin, d, i] : order) {
      const Symbol symbol = words[d][i];
      // A pass that takes no time may stand before what it waits for; the rest is then searched.
      if (rules_.Arrival(states_[0], symbol) == kNoMakespan || rules_.IsFull(states_[0], symbol))
        return;
      rules_.Apply(d, symbol, &states_[0]);
      steps_.push_back({{0, static_cast<int16_t>(d), symbol}});
    }
  }

  void MakeChildren() {
    children_.clear();
    for (size_t i = 0; i < states_.size(); ++i) {
      const PartialOrders::Outcome outcome = rules_.Next(states_[i], &next_);
      if (outcome == PartialOrders::Outcome::kDone) TakeOrder(static_cast<int>(i));
      if (outcome != PartialOrders::Outcome::kDecision) continue;
      for (const auto* list : {&next_.symbols, &next_.later}) {
        for (const Symbol symbol : *list) {
          PartialOrders::Undo undo;
          rules_.Apply(next_.device, symbol, &states_[i], &undo);
          Child child{static_cast<int>(i), next_.device, symbol};
          int64_t sum = 0;
          child.bound = rules_.LowerBound(states_[i], nullptr, &sum);
          rules_.Revert(next_.device, symbol, undo, &states_[i]);
          if (child.bound >= least_) continue;
          child.rest = static_cast<double>(sum);
          if (options_.noise > 0) {
            child.rest += options_.noise * unit_ * random_.Uniform(drawn_++);
          }
          children_.push_back(child);
        }
      }
    }
  }

  void Keep() {
    const auto better = [](const Child& a, const Child& b) {
      if (a.bound != b.bound) return a.bound < b.bound;
      if (a.rest != b.rest) return a.rest < b.rest;
      return std::make_pair(a.parent, a.symbol) < std::make_pair(b.parent, b.symbol);
    };
    const size_t most = std::min(children_.size(), size_t{4} * options_.width);
    std::partial_sort(children_.begin(), children_.begin() + static_cast<int64_t>(most),
                      children_.end(), better);
    std::vector<PartialOrders::State> kept;
    std::vector<BeamStep> steps;
    std::vector<size_t> seen;
    for (size_t c = 0; c < most && kept.size() < static_cast<size_t>(options_.width); ++c) {
      const Child& child = children_[c];
      PartialOrders::State state = TakeBuffer();
      state = states_[child.parent];
      rules_.Apply(child.device, child.symbol, &state);
      // The same passes in another order, with the same times: once is enough.
      const size_t hash = Hash(state);
      if (std::find(seen.begin(), seen.end(), hash) != seen.end()) {
        buffers_.push_back(std::move(state));
        continue;
      }
      seen.push_back(hash);
      kept.push_back(std::move(state));
      steps.push_back({child.parent, static_cast<int16_t>(child.device), child.symbol});
    }
    for (PartialOrders::State& state : states_) buffers_.push_back(std::move(state));
    states_ = std::move(kept);
    steps_.push_back(std::move(steps));
  }

  PartialOrders::State TakeBuffer() {
    if (buffers_.empty()) return {};
    PartialOrders::State state = std::move(buffers_.back());
    buffers_.pop_back();
    return state;
  }

  size_t Hash(const PartialOrders::State& state) {
    times_.clear();
    rules_.AppendTimes(state, 0, &times_);
    uint64_t hash = 14695981039346656037u;
    for (int symbol = 0; symbol < p_.symbols(); ++symbol) {
      hash = (hash ^ rules_.UnitOf(state, static_cast<Symbol>(symbol))) * 1099511628211u;
    }
    rules_.ForEachHeld(state, [&hash](bool sent) { hash = (hash ^ sent) * 1099511628211u; });
    for (const int64_t time : times_) hash = (hash ^ time) * 1099511628211u;
    return hash;
  }

  // State i, where all is done.
  void TakeOrder(int i) {
    const int64_t end = rules_.LowerBound(states_[i]);
    if (end >= least_) return;
    least_ = end;
    best_.assign(p_.devices, {});
    for (size_t level = steps_.size(); level-- > 0;) {
      const BeamStep& step = steps_[level][i];
      best_[step.device].push_back(step.symbol);
      i = step.parent;
    }
    for (auto& word : best_) std::reverse(word.begin(), word.end());
  }

  const SynthesisProblem& p_;
  const BeamOptions& options_;
  const PartialOrders rules_;
  const CounterRng random_;
  int64_t least_;  // ns: only what is shorter
  OrderWords best_;
  uint64_t drawn_ = 0;
  double unit_ = 1;  // ns: a pass
  PartialOrders::Decision next_;
  std::vector<PartialOrders::State> states_, buffers_;
  std::vector<Child> children_;
  std::vector<std::vector<BeamStep>> steps_;  // [level]
  std::vector<int64_t> times_;
};

}  // namespace

OrderWords BeamSearch(const SynthesisProblem& p, const Heads& heads, const BeamOptions& options) {
  return Beam(p, heads, options).Run();
}

}  // namespace pipelab
