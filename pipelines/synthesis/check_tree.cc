#include "pipelines/synthesis/check_tree.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/synthesis/check_graph.h"

namespace pipelab {
namespace {

constexpr int64_t kOpen = int64_t{1} << 61;

// A beginning of an order: the passes that have run, in order of time.
struct Beginning {
  std::vector<int64_t> end;                 // [node]; -1: it has not run
  std::vector<int> done;                    // [symbol]
  std::vector<int64_t> free, level, until;  // [device]; it must go on before `until`
  std::vector<int64_t> link;                // [device] when its host link is free
  std::vector<int> leaving;                 // [device] node of the last copy out, or -1
  std::vector<std::set<Symbol>> barred;     // [device] what it waited past
};

class Tree {
 public:
  Tree(const SynthesisProblem& p, const Proof& proof)
      : p_(p), proof_(proof), graph_(p, /*memory=*/true) {
    for (int d = 0; d < p.devices; ++d) {
      symbols_.emplace_back();
      for (int kind : {kPassI, kPassF, kPassW, kCopyO, kCopyL}) {
        for (int s = 0; s < p.stages(); ++s) {
          if (p.device_of_stage[s] != d || graph_.NodeOf(SymbolOf(s, kind), 0) < 0) continue;
          symbols_[d].push_back(SymbolOf(s, kind));
        }
      }
    }
  }

  absl::Status Check() {
    for (int node = 0; node < graph_.size(); ++node) {
      if (graph_.length(node) <= 0) return No("passes that take no time have no order of time");
    }
    Beginning start;
    start.end.assign(graph_.size(), -1);
    start.done.assign(p_.symbols(), 0);
    start.free.assign(p_.devices, 0);
    start.link = start.free;
    start.leaving.assign(p_.devices, -1);
    start.level = start.free;
    start.until.assign(p_.devices, kOpen);
    start.barred.resize(p_.devices);
    const absl::Status status = Visit(start);
    if (!status.ok()) return status;
    return at_ == proof_.log.size() ? absl::OkStatus() : No("more nodes than there are");
  }

 private:
  absl::Status No(absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("proof: node ", at_, " of ", proof_.log.size(), ": ", why));
  }

  // When the next pass of the kind can begin; kOpen: not as things are.
  int64_t BeginOf(const Beginning& b, int d, Symbol symbol) const {
    const int n = b.done[symbol];
    if (n == p_.micro_batches * p_.slices) return kOpen;
    const int node = graph_.NodeOf(symbol, n);
    const OrderLimits::Use use = graph_.use(node);
    const bool waits = IsCopy(symbol) && b.leaving[d] >= 0;
    if (!p_.limits.free.empty() &&
        b.level[d] - (waits ? BytesOf(b.leaving[d]) : 0) + std::max(use.peak, use.change).value() >
            p_.limits.free[d].value()) {
      return kOpen;
    }
    int64_t begin = waits ? std::max(b.free[d], b.end[b.leaving[d]]) : b.free[d];
    for (const auto& [other, delay] : graph_.before(node)) {
      if (IsRoom(symbol, other)) continue;  // the level says it
      if (b.end[other] < 0) return kOpen;
      // A copy goes into the link's queue, where what is before it is.
      if (IsCopy(symbol) && IsCopy(graph_.symbol(other))) continue;
      begin = std::max(begin, b.end[other] + delay);
    }
    return begin;
  }
  // That a copy moves.
  int64_t BytesOf(int node) const {
    return p_.Use(SymbolOf(StageOf(graph_.symbol(node)), kPassF)).change.value();
  }
  // The device goes on at once; the copy follows what is on the link.
  void Copy(int d, int node, int64_t begin, Beginning* b) const {
    if (b->leaving[d] >= 0) b->level[d] -= BytesOf(b->leaving[d]);
    const bool out = KindOf(graph_.symbol(node)) == kCopyO;
    b->leaving[d] = out ? node : -1;
    if (!out) b->level[d] += BytesOf(node);
    b->free[d] = begin;
    b->end[node] = b->link[d] = std::max(begin, b->link[d]) + graph_.length(node);
  }
  // Whether the edge to the symbol's pass is about memory: an F waits for no I or W else.
  bool IsRoom(Symbol symbol, int other) const {
    return KindOf(symbol) == kPassF && KindOf(graph_.symbol(other)) != kPassF;
  }

  absl::Status Visit(const Beginning& b) {
    if (at_ >= proof_.log.size()) return No("the log ends too early");
    const char letter = proof_.log[at_];
    int device = -1;
    int64_t first = kOpen;
    for (int d = 0; d < p_.devices; ++d) {
      for (const Symbol symbol : symbols_[d]) {
        if (b.barred[d].count(symbol) > 0) continue;
        const int64_t begin = BeginOf(b, d, symbol);
        if (begin < b.until[d] && begin < first) {
          first = begin;
          device = d;
        }
      }
    }
    switch (letter) {
      case kProofBranch:
        if (device < 0) return No("it branches, and nothing can begin");
        return Branch(b, device, first);
      case kProofStuck:
      case kProofDone: {
        if (device >= 0) return No("it ends, and a pass can begin");
        const bool all = std::count(b.end.begin(), b.end.end(), -1) == 0;
        if (all != (letter == kProofDone)) return No("an order, or none, against the log");
        const int64_t makespan = *std::max_element(b.free.begin(), b.free.end());
        if (all && makespan < proof_.makespan) {
          return No(absl::StrCat("an order of ", makespan, " ns"));
        }
        break;
      }
      case kProofBound:
        if (LeastMakespan(b) < proof_.makespan) {
          return No(absl::StrCat("closed at a bound of ", LeastMakespan(b), " ns"));
        }
        break;
      case kProofDominated:
        if (device < 0 || !WasClosed(b, first)) return No("no closed node comes before it");
        break;
      default:
        return No("an unknown letter");
    }
    ++at_;
    return absl::OkStatus();
  }

  absl::Status Branch(const Beginning& b, int d, int64_t begin) {
    ++at_;
    Beginning waits = b;
    for (const Symbol symbol : symbols_[d]) {
      if (b.barred[d].count(symbol) > 0 || BeginOf(b, d, symbol) != begin) continue;
      const int node = graph_.NodeOf(symbol, b.done[symbol]);
      Beginning next = b;
      if (IsCopy(symbol)) {
        Copy(d, node, begin, &next);
      } else {
        next.end[node] = next.free[d] = begin + graph_.length(node);
        next.level[d] += graph_.use(node).change.value();
      }
      next.until[d] = kOpen;
      next.barred[d].clear();
      ++next.done[symbol];
      const absl::Status status = Visit(next);
      if (!status.ok()) return status;
      waits.barred[d].insert(symbol);
      // In front of what begins after its end it would be in no one's way.
      if (!IsCopy(symbol) && (p_.limits.free.empty() || graph_.use(node).change <= Bytes(0))) {
        waits.until[d] = std::min(waits.until[d], begin + graph_.length(node));
      }
    }
    const absl::Status status = Visit(waits);
    if (!status.ok()) return status;
    closed_[KeyOf(b)].push_back(TimesOf(b, begin));
    return absl::OkStatus();
  }

  // What is done, which copies out still hold room, and what was waited past.
  using Key = std::pair<std::vector<int>, std::vector<std::set<Symbol>>>;
  Key KeyOf(const Beginning& b) const {
    Key key = {b.done, b.barred};
    for (const int node : b.leaving) {
      key.first.push_back(node < 0 ? -1 : StageOf(graph_.symbol(node)));
    }
    return key;
  }
  // Devices and results that someone still waits for; nothing begins before `from`.
  std::vector<int64_t> TimesOf(const Beginning& b, int64_t from) const {
    std::vector<int64_t> times;
    for (const int64_t free : b.free) times.push_back(std::max(free, from));
    for (const int64_t free : b.link) times.push_back(std::max(free, from));
    for (const int node : b.leaving) {
      times.push_back(node < 0 ? from : std::max(b.end[node], from));
    }
    for (const int node : graph_.order()) {
      const Symbol symbol = graph_.symbol(node);
      if (b.end[node] >= 0 || IsCopy(symbol)) continue;  // device and link say when a copy begins
      for (const auto& [other, delay] : graph_.before(node)) {
        if (b.end[other] < 0 || graph_.device(other) == graph_.device(node)) continue;
        if (IsRoom(symbol, other)) continue;
        times.push_back(std::max(b.end[other] + delay, from));
      }
    }
    return times;
  }
  bool WasClosed(const Beginning& b, int64_t from) const {
    const auto found = closed_.find(KeyOf(b));
    if (found == closed_.end()) return false;
    const std::vector<int64_t> times = TimesOf(b, from);
    for (const auto& other : found->second) {
      bool no_later = true;
      for (size_t i = 0; i < times.size() && no_later; ++i) no_later = other[i] <= times[i];
      if (no_later) return true;
    }
    return false;
  }

  int64_t LeastMakespan(const Beginning& b) const {
    std::vector<int64_t> begin(graph_.size(), 0);
    std::vector<std::vector<int>> left(size_t{2} * p_.devices);  // and of links
    int64_t least = *std::max_element(b.free.begin(), b.free.end());
    for (const int node : graph_.order()) {
      if (b.end[node] >= 0) continue;
      const int d = graph_.device(node);
      const int own = d % p_.devices;
      begin[node] = std::max({graph_.head(node), b.free[own], d == own ? 0 : b.link[own]});
      for (const auto& [other, delay] : graph_.before(node)) {
        const int64_t end = b.end[other] >= 0 ? b.end[other] : begin[other] + graph_.length(other);
        begin[node] = std::max(begin[node], end + delay);
      }
      least = std::max(least, begin[node] + graph_.length(node) + graph_.tail(node));
      left[d].push_back(node);
    }
    for (std::vector<int>& nodes : left) {
      // From the longest tail on: all that have a tail at least as long follow one another.
      std::sort(nodes.begin(), nodes.end(),
                [&](int a, int c) { return graph_.tail(a) > graph_.tail(c); });
      int64_t first = kOpen, work = 0;
      for (const int node : nodes) {
        first = std::min(first, begin[node]);
        work += graph_.length(node);
        least = std::max(least, first + work + graph_.tail(node));
      }
    }
    return least;
  }

  const SynthesisProblem& p_;
  const Proof& proof_;
  const CheckGraph graph_;
  std::vector<std::vector<Symbol>> symbols_;  // [device] I, F, W
  std::map<Key, std::vector<std::vector<int64_t>>> closed_;
  size_t at_ = 0;
};

}  // namespace

absl::Status CheckTree(const SynthesisProblem& problem, const Proof& proof) {
  return Tree(problem, proof).Check();
}

}  // namespace pipelab
