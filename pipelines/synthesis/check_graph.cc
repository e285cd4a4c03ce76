#include "pipelines/synthesis/check_graph.h"

#include <algorithm>

namespace pipelab {

int ProofGraph::NodeOf(Symbol symbol, int n) const {
  return first_[symbol] < 0 ? -1 : first_[symbol] + n;
}

void ProofGraph::Join(Symbol from, int n_from, Symbol to, int n_to, int64_t delay) {
  if (n_from < 0 || n_to >= units_) return;
  const int a = NodeOf(from, n_from), b = NodeOf(to, n_to);
  before_[b].push_back({a, delay});
  // Run backwards, what follows waits: the delay stays between the two.
  after_[a].push_back({b, delay});
}

// Forwards take a micro-batch's slices from the first on, backwards from the last.
void ProofGraph::AddPasses(int s) {
  const Symbol f = SymbolOf(s, kPassF), i = SymbolOf(s, kPassI), w = SymbolOf(s, kPassW);
  for (int m = 0; m < p_.micro_batches; ++m) {
    for (int slice = 0; slice < p_.slices; ++slice) {
      const int forward = m * p_.slices + slice, back = m * p_.slices + p_.slices - 1 - slice;
      Join(f, forward - 1, f, forward, 0);
      Join(i, back - 1, i, back, 0);
      Join(f, forward, i, back, 0);
      if (s > 0) Join(SymbolOf(s - 1, kPassF), forward, f, forward, p_.Hop(s - 1));
      if (s + 1 < p_.stages()) {
        const int64_t rebuilt_before = p_.Rebuild(s, slice);
        Join(SymbolOf(s + 1, kPassI), back, i, back, p_.Hop(s) - rebuilt_before);
      }
      if (!p_.split_backward) continue;
      Join(w, back - 1, w, back, 0);
      Join(i, back, w, back, 0);
    }
  }
}

// When a forward begins, so many I (W) must be over that what cannot have been given back yet fits.
void ProofGraph::AddMemory(int stage) {
  const int d = p_.device_of_stage[stage];
  const Symbol f = SymbolOf(stage, kPassF), i = SymbolOf(stage, kPassI);
  const Symbol w = SymbolOf(stage, kPassW);
  // Bytes of a stage behind so many of a kind's passes.
  const auto after = [&](int s, int kind) {
    std::vector<int64_t> bytes = {0};
    for (int n = 0; n < units_; ++n) {
      const int node = NodeOf(SymbolOf(s, kind), n);
      bytes.push_back(bytes.back() + (node < 0 ? 0 : use(node).change.value()));
    }
    return bytes;
  };
  // The least that so many I leave of what forwards took, with the W that they allow.
  const auto left_by = [&](int s) {
    std::vector<int64_t> bytes = after(s, kPassI);
    const std::vector<int64_t> weights = after(s, kPassW);
    for (int n = 0; n <= units_; ++n) {
      bytes[n] += *std::min_element(weights.begin(), weights.begin() + n + 1);
    }
    return bytes;
  };
  std::vector<std::vector<int64_t>> took, left;  // of stages of the device before this one
  for (int s = 0; s < stage; ++s) {
    if (p_.device_of_stage[s] != d || p_.MayOffload(s)) continue;  // they may be at the host
    took.push_back(after(s, kPassF));
    left.push_back(left_by(s));
    for (int n = 1; n <= units_; ++n) {
      left.back()[n] = std::min(left.back()[n], left.back()[n - 1]);
    }
    // Where forwards give bytes back, nothing is known.
    if (std::is_sorted(took.back().begin(), took.back().end())) continue;
    took.pop_back();
    left.pop_back();
  }
  const bool stays = !p_.MayOffload(stage);
  const std::vector<int64_t> own = after(stage, kPassF), own_left = left_by(stage);
  const std::vector<int64_t> inputs_take = after(stage, kPassI);
  const std::vector<int64_t> weights_take = after(stage, kPassW);
  int inputs = 0, weights = 0;
  for (int n = 0; n < units_; ++n) {
    const OrderLimits::Use pass = use(NodeOf(f, n));
    int64_t free = p_.limits.free[d].value() - std::max(pass.peak, pass.change).value();
    if (stays) free -= own[n];
    const int earlier = n / p_.slices * p_.slices;  // units of the micro-batches before
    for (; inputs < earlier; ++inputs) {
      int64_t held = stays ? own_left[inputs] : 0;
      for (size_t a = 0; a < took.size(); ++a) {
        held += std::max<int64_t>(0, took[a][n + 1] + left[a][inputs]);
      }
      if (held <= free) break;
    }
    Join(i, inputs - 1, f, n, 0);
    if (!p_.split_backward || !stays) continue;
    for (; weights < earlier; ++weights) {
      int64_t least = inputs_take[n];  // of I that are over: at least as many as W, at most as F
      for (int over = n; over >= weights && least + weights_take[weights] > free; --over) {
        least = std::min(least, inputs_take[over]);
      }
      if (least + weights_take[weights] <= free) break;
    }
    Join(w, weights - 1, f, n, 0);
  }
}

ProofGraph::ProofGraph(const SynthesisProblem& p, bool memory)
    : p_(p), units_(p.micro_batches * p.slices) {
  first_.assign(p.symbols(), -1);
  for (int symbol = 0; symbol < p.symbols(); ++symbol) {
    const int s = symbol / kSymbolKinds, kind = symbol % kSymbolKinds;
    if (kind >= p.kinds()) continue;  // copies need not be made
    first_[symbol] = static_cast<int>(device_.size());
    symbol_.push_back(static_cast<Symbol>(symbol));
    device_.insert(device_.end(), units_, p.device_of_stage[s]);
    for (int n = 0; n < units_; ++n) {
      const int place = n % p.slices;
      slice_.push_back(kind == kPassF ? place : p.slices - 1 - place);
      length_.push_back(p.Length(symbol_.back(), slice_.back()));
    }
  }
  const int nodes = static_cast<int>(device_.size());
  before_.resize(nodes);
  after_.resize(nodes);
  for (int s = 0; s < p.stages(); ++s) {
    AddPasses(s);
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

// The earliest begin of each pass, in the order: after what it waits for, and behind all passes of
// its device that must be over, of which one runs at a time.
std::vector<int64_t> ProofGraph::Earliest(const std::vector<std::vector<Edge>>& before,
                                          const std::vector<int>& order) const {
  const size_t nodes = before.size();
  constexpr size_t kBits = 64;
  const size_t words = (nodes + kBits - 1) / kBits;
  std::vector<std::vector<uint64_t>> over(nodes);  // [node] a bit for each that must be over before
  std::vector<int> readers(nodes, 0);
  for (const auto& edges : before) {
    for (const Edge& edge : edges) ++readers[edge.first];
  }
  std::vector<std::vector<int>> of_device(p_.devices);  // in the order of their begins
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

CheckedHolding ProofGraph::Holding(int device) const {
  CheckedHolding result;
  if (p_.limits.free.empty()) return result;
  const auto free = static_cast<double>(p_.limits.free[device].value());
  double held = 0, fill = 0, drain = 0, largest = 0;  // bytes x ns, bytes / ns twice, bytes
  result.head = result.tail = int64_t{1} << 61;
  bool steady = true;                            // room is taken and given back by passes alone
  std::vector<std::pair<double, double>> trips;  // to the host: bytes x ns saved, ns of the link
  std::vector<int64_t> back(p_.slices, 0);       // from the end of F to the gradient's arrival
  for (int s = p_.stages() - 1; s >= 0; --s) {
    const Symbol f = SymbolOf(s, kPassF), i = SymbolOf(s, kPassI), w = SymbolOf(s, kPassW);
    int64_t inner = 0;  // the next slice's whole life, which lies within this one's
    int64_t rest = 0;   // bytes that I gave later slices and this one gives back
    for (int slice = p_.slices - 1; slice >= 0; --slice) {
      const int64_t f_time = p_.Length(f, slice), i_time = p_.Length(i, slice);
      const int64_t w_time = p_.split_backward ? p_.Length(w, slice) : 0;
      const int64_t gap = std::max({int64_t{0}, back[slice] - p_.Rebuild(s, slice), inner});
      inner = f_time + gap + i_time;
      if (s > 0) back[slice] = inner + 2 * p_.Hop(s - 1);
      if (p_.device_of_stage[s] != device) continue;
      const int64_t took = p_.Use(f, slice).change.value();
      const int64_t late = p_.split_backward ? -p_.Use(w, slice).change.value() : 0;
      rest += took + p_.Use(i, slice).change.value() - late;
      if (took <= 0 || late < 0 || rest < 0) return {};
      const auto kept = static_cast<double>(took), left = static_cast<double>(late);
      held += p_.micro_batches *
              (kept * static_cast<double>(inner) + left * static_cast<double>(w_time));
      if (p_.MayOffload(s)) {
        steady = false;
        const int64_t copies = 2 * p_.host_copy[s * p_.slices + slice];
        const auto moved = static_cast<double>(p_.Moved(s, slice).value());
        const auto saved = static_cast<double>(gap - copies) * moved;
        if (saved > 0) trips.push_back({saved, static_cast<double>(copies)});
      }
      const auto rate = [](double bytes, int64_t ns) {
        return bytes / static_cast<double>(std::max<int64_t>(1, ns));
      };
      fill = std::max({fill, rate(kept, f_time), rate(left - kept, i_time)});
      drain = std::max({drain, rate(kept - left, i_time), rate(left, w_time)});
      largest = std::max({largest, kept, left});
    }
    if (p_.device_of_stage[s] != device) continue;
    result.head = std::min(result.head, head_[NodeOf(f, 0)]);
    result.tail = std::min(result.tail, tail_[NodeOf(SymbolOf(s, p_.kinds() - 1), units_ - 1)]);
  }
  if (held <= 0 || free <= 0) return {};
  const double rest = free - largest;
  const auto fits = [&](int64_t ns) {
    double link = static_cast<double>(ns), left = held;
    for (const auto& [saved, copies] : trips) {
      const double all = copies * p_.micro_batches;
      const double part = all > link ? link / all : 1;
      left -= part * saved * p_.micro_batches;
      link -= part * all;
    }
    return left <= free * static_cast<double>(ns) * (1 + 1e-12);
  };
  std::sort(trips.begin(), trips.end(), [](const auto& a, const auto& b) {
    return a.first * b.second > b.first * a.second;  // the most for the link's time first
  });
  int64_t short_of = -1, enough = static_cast<int64_t>(held / free) + 1;
  while (enough - short_of > 1) {
    const int64_t middle = short_of + (enough - short_of) / 2;
    (fits(middle) ? enough : short_of) = middle;
  }
  auto time = static_cast<double>(trips.empty() ? held / free : enough);
  if (steady && rest > 0 && time > rest / fill + rest / drain) {
    time = (held + rest * rest / (2 * fill) + rest * rest / (2 * drain)) / free;
  }
  result.work = static_cast<int64_t>(time * (1 + 1e-12));
  return result;
}

}  // namespace pipelab
