#include "pipelines/synthesis/check_graph.h"

#include <algorithm>

namespace pipelab {

int CheckGraph::NodeOf(Symbol symbol, int m) const {
  return first_[symbol] < 0 ? -1 : first_[symbol] + m;
}

void CheckGraph::Join(Symbol from, int m_from, Symbol to, int m_to, int64_t delay) {
  if (m_from < 0 || m_to >= p_.micro_batches) return;
  const int a = NodeOf(from, m_from), b = NodeOf(to, m_to);
  before_[b].push_back({a, delay});
  // Run backwards, what follows waits: the delay stays between the two.
  after_[a].push_back({b, delay});
}

// F before O before L before I.
void CheckGraph::AddCopies(int s) {
  for (int m = 0; m < p_.micro_batches; ++m) {
    for (const int kind : {kCopyO, kCopyL}) {
      Join(SymbolOf(s, kind), m - 1, SymbolOf(s, kind), m, 0);
    }
    Join(SymbolOf(s, kPassF), m, SymbolOf(s, kCopyO), m, 0);
    Join(SymbolOf(s, kCopyO), m, SymbolOf(s, kCopyL), m, 0);
    Join(SymbolOf(s, kCopyL), m, SymbolOf(s, kPassI), m, 0);
  }
}

// Of n forwards of the stage that have begun, the last one included, a must have been given back.
void CheckGraph::AddMemory(int stage) {
  const int d = p_.device_of_stage[stage];
  const int64_t free = p_.limits.free[d].value();
  const OrderLimits::Use f = p_.Use(SymbolOf(stage, kPassF)), i = p_.Use(SymbolOf(stage, kPassI));
  const int64_t peak = std::max(f.peak, f.change).value();
  int64_t earlier = 0;  // of one micro-batch, at stages of the device before this one
  for (int s = 0; s < stage; ++s) {
    if (p_.device_of_stage[s] != d) continue;
    if (p_.Offloads(s)) continue;  // they may be at the host
    earlier += std::max<int64_t>(0, p_.Use(SymbolOf(s, kPassF)).change.value());
  }
  const int64_t kept = p_.Offloads(stage) ? 0 : f.change.value();
  const int64_t until_i = kept + earlier;
  const int64_t until_w = std::min<int64_t>(kept, f.change.value() + i.change.value());
  for (int m = 0; m < p_.micro_batches; ++m) {
    // The least number of I (W) that are over when F m begins.
    int inputs = 0, weights = 0;
    while (inputs < m && until_i > 0 && (m - inputs) * until_i + earlier + peak > free) ++inputs;
    while (weights < m && until_w > 0 && (m - weights) * until_w + peak > free) ++weights;
    Join(SymbolOf(stage, kPassI), inputs - 1, SymbolOf(stage, kPassF), m, 0);
    if (p_.split_backward) {
      Join(SymbolOf(stage, kPassW), weights - 1, SymbolOf(stage, kPassF), m, 0);
    }
  }
}

CheckGraph::CheckGraph(const SynthesisProblem& p, bool memory) : p_(p) {
  const int M = p.micro_batches;
  first_.assign(p.symbols(), -1);
  for (int symbol = 0; symbol < p.symbols(); ++symbol) {
    const int s = symbol / kSymbolKinds, kind = symbol % kSymbolKinds;
    const bool copy = kind == kCopyO || kind == kCopyL;
    if (copy ? !p.Offloads(s) : kind >= p.kinds()) continue;
    first_[symbol] = static_cast<int>(device_.size());
    symbol_.push_back(static_cast<Symbol>(symbol));
    device_.insert(device_.end(), M, p.device_of_stage[s] + (copy ? p.devices : 0));
    length_.insert(length_.end(), M, copy ? p.host_copy[s] : p.Length(symbol_.back()));
  }
  const int nodes = static_cast<int>(device_.size());
  before_.resize(nodes);
  after_.resize(nodes);
  for (int s = 0; s < p.stages(); ++s) {
    for (int kind = 0; kind < p.kinds(); ++kind) {
      for (int m = 0; m < M; ++m) {
        Join(SymbolOf(s, kind), m - 1, SymbolOf(s, kind), m, 0);
        if (kind > 0) Join(SymbolOf(s, kind - 1), m, SymbolOf(s, kind), m, 0);
        if (kind == kPassF && s > 0)
          Join(SymbolOf(s - 1, kind), m, SymbolOf(s, kind), m, p.Hop(s - 1));
        if (kind == kPassI && s + 1 < p.stages()) {
          const int64_t rebuilt_before = p.Rebuild(s);
          Join(SymbolOf(s + 1, kind), m, SymbolOf(s, kind), m, p.Hop(s) - rebuilt_before);
        }
      }
    }
    if (p.Offloads(s)) AddCopies(s);
    if (memory && !p.limits.free.empty()) AddMemory(s);
  }
  std::vector<int> waits(nodes);
  for (int node = 0; node < nodes; ++node) {
    waits[node] = static_cast<int>(before_[node].size());
    if (waits[node] == 0) order_.push_back(node);
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    for (const Edge& edge : after_[order_[i]]) {
      if (--waits[edge.first] == 0) order_.push_back(edge.first);
    }
  }
  head_ = Earliest(before_, order_);
  tail_ = Earliest(after_, std::vector<int>(order_.rbegin(), order_.rend()));
}

// Of each pass, in the order: behind what it waits for, and behind all passes of its device that
// must be over, of which one runs at a time.
std::vector<int64_t> CheckGraph::Earliest(const std::vector<std::vector<Edge>>& before,
                                          const std::vector<int>& order) const {
  const size_t nodes = before.size();
  constexpr size_t kBits = 64;
  const size_t words = (nodes + kBits - 1) / kBits;
  std::vector<std::vector<uint64_t>> over(nodes);  // [node] a bit for each that must be over before
  std::vector<int> readers(nodes, 0);
  for (const auto& edges : before) {
    for (const Edge& edge : edges) ++readers[edge.first];
  }
  std::vector<std::vector<int>> of_device(
      2 * p_.devices);  // and of links; in the order of their begins
  std::vector<int64_t> earliest(nodes, 0);
  for (const int node : order) {
    std::vector<uint64_t>& all = over[node];
    all.assign(words, 0);
    int64_t begin = 0;
    for (const auto& [other, delay] : before[node]) {
      begin = std::max(begin, earliest[other] + length_[other] + delay);
      const std::vector<uint64_t>& others = over[other];
      for (size_t i = 0; i < words; ++i) all[i] |= others[i];
      all[other / kBits] |= uint64_t{1} << other % kBits;
      if (--readers[other] == 0) std::vector<uint64_t>().swap(over[other]);
    }
    int64_t busy = 0;
    std::vector<int>& mates = of_device[device_[node]];
    for (const int mate : mates) {
      if ((all[mate / kBits] >> mate % kBits & 1) != 0)
        busy = std::max(busy, earliest[mate]) + length_[mate];
    }
    earliest[node] = std::max(begin, busy);
    const auto place = std::upper_bound(mates.begin(), mates.end(), node,
                                        [&](int a, int b) { return earliest[a] < earliest[b]; });
    mates.insert(place, node);
    if (readers[node] == 0) std::vector<uint64_t>().swap(over[node]);
  }
  return earliest;
}

CheckedHolding CheckGraph::Holding(int device) const {
  CheckedHolding result;
  if (p_.limits.free.empty()) return result;
  const auto free = static_cast<double>(p_.limits.free[device].value());
  double held = 0, fill = 0, drain = 0, largest = 0;  // bytes x ns, bytes / ns twice, bytes
  result.head = result.tail = int64_t{1} << 61;
  bool steady = true;  // room is taken and given back by passes alone
  int64_t back = 0;    // from the end of F to the gradient's arrival
  for (int s = p_.stages() - 1; s >= 0; --s) {
    const int64_t f = p_.Length(SymbolOf(s, kPassF)), i = p_.Length(SymbolOf(s, kPassI));
    const int64_t w = p_.split_backward ? p_.Length(SymbolOf(s, kPassW)) : 0;
    const int64_t rebuild = p_.Rebuild(s);
    const int64_t copies = p_.Offloads(s) ? 2 * p_.host_copy[s] : 0;
    const int64_t to_end_of_i = f + std::max<int64_t>(copies, back - rebuild) + i;
    if (p_.device_of_stage[s] == device) {
      const auto kept = static_cast<double>(p_.Use(SymbolOf(s, kPassF)).change.value());
      double left = kept + static_cast<double>(p_.Use(SymbolOf(s, kPassI)).change.value());
      if (!p_.split_backward) left = 0;
      if (kept <= 0 || left < 0) return {};
      const int64_t on_device = p_.Offloads(s) ? f + copies + i : to_end_of_i;
      if (p_.Offloads(s)) steady = false;
      held += p_.micro_batches *
              (kept * static_cast<double>(on_device) + left * static_cast<double>(w));
      const auto rate = [](double bytes, int64_t ns) {
        return bytes / static_cast<double>(std::max<int64_t>(1, ns));
      };
      fill = std::max({fill, rate(kept, f), rate(left - kept, i)});
      drain = std::max({drain, rate(kept - left, i), rate(left, w)});
      largest = std::max({largest, kept, left});
      const int last = NodeOf(SymbolOf(s, p_.kinds() - 1), p_.micro_batches - 1);
      result.head = std::min(result.head, head_[NodeOf(SymbolOf(s, kPassF), 0)]);
      result.tail = std::min(result.tail, tail_[last]);
    }
    if (s > 0) back = to_end_of_i + 2 * p_.Hop(s - 1);
  }
  if (held <= 0 || free <= 0) return {};
  const double rest = free - largest;
  double time = held / free;
  if (steady && rest > 0 && time > rest / fill + rest / drain) {
    time = (held + rest * rest / (2 * fill) + rest * rest / (2 * drain)) / free;
  }
  result.work = static_cast<int64_t>(time * (1 + 1e-12));
  return result;
}

}  // namespace pipelab
