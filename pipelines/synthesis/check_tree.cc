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
#include "pipelines/synthesis/check_rules.h"

namespace pipelab {
namespace {

class Tree {
 public:
  Tree(const SynthesisProblem& p, const Proof& proof)
      : p_(p), proof_(proof), graph_(p, /*memory=*/true), rules_(p, graph_) {
    for (int d = 0; d < p.devices; ++d) {
      symbols_.emplace_back();
      for (int kind : {kPassI, kPassF, kPassW, kCopyO, kCopyL, kSentF}) {
        for (int s = 0; s < p.stages(); ++s) {
          const bool has = kind < kCopyO ? kind < p.kinds() : p.MayOffload(s);
          if (p.device_of_stage[s] != d || !has) continue;
          symbols_[d].push_back(SymbolOf(s, kind));
        }
      }
    }
  }

  absl::Status Check() {
    for (int node = 0; node < graph_.size(); ++node) {
      if (graph_.length(node) <= 0) return No("passes that take no time have no order of time");
    }
    for (int s = 0; s < p_.stages(); ++s) {
      for (int part = s * p_.slices; part < (s + 1) * p_.slices && p_.MayOffload(s); ++part) {
        if (p_.host_copy[part] <= 0) return No("copies that take no time");
      }
    }
    const absl::Status status = Visit(rules_.Start());
    if (!status.ok()) return status;
    return at_ == proof_.log.size() ? absl::OkStatus() : No("more nodes than there are");
  }

 private:
  absl::Status No(absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("proof: node ", at_, " of ", proof_.log.size(), ": ", why));
  }

  absl::Status Visit(const CheckedBeginning& b) {
    if (at_ >= proof_.log.size()) return No("the log ends too early");
    const char letter = proof_.log[at_];
    int device = -1;
    int64_t first = kOpen;
    for (int d = 0; d < p_.devices; ++d) {
      for (const Symbol symbol : symbols_[d]) {
        if (b.barred[d].count(symbol) > 0) continue;
        const int64_t begin = rules_.BeginOf(b, d, symbol);
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
        if (rules_.LeastMakespan(b) < proof_.makespan) {
          return No(absl::StrCat("closed at a bound of ", rules_.LeastMakespan(b), " ns"));
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

  absl::Status Branch(const CheckedBeginning& b, int d, int64_t begin) {
    ++at_;
    CheckedBeginning waits = b;
    for (const Symbol symbol : symbols_[d]) {
      if (b.barred[d].count(symbol) > 0 || rules_.BeginOf(b, d, symbol) != begin) continue;
      CheckedBeginning next = b;
      rules_.Run(d, symbol, begin, &next);
      next.until[d] = kOpen;
      next.barred[d].clear();
      const absl::Status status = Visit(next);
      if (!status.ok()) return status;
      waits.barred[d].insert(symbol);
      if (rules_.IsFree(symbol, b.done[symbol])) {
        const int node = graph_.NodeOf(symbol, b.done[symbol]);
        waits.until[d] = std::min(waits.until[d], begin + graph_.length(node));
      }
    }
    const absl::Status status = Visit(waits);
    if (!status.ok()) return status;
    closed_[KeyOf(b)].push_back(TimesOf(b, begin));
    return absl::OkStatus();
  }

  // Passes that are done, where each unit is whose I is not, which copies out still hold
  // room, and what was waited past.
  using Key = std::pair<std::vector<int>, std::vector<std::set<Symbol>>>;
  Key KeyOf(const CheckedBeginning& b) const {
    Key key = {b.leaving, b.barred};
    for (int s = 0; s < p_.stages(); ++s) {
      for (int kind = 0; kind < p_.kinds(); ++kind) key.first.push_back(b.done[SymbolOf(s, kind)]);
      const int out = b.done[SymbolOf(s, kCopyO)], back = static_cast<int>(b.back[s].size());
      const std::vector<int> backwards = rules_.SentBackwards(b, s);
      for (int trip = 0; trip < static_cast<int>(b.sent[s].size()); ++trip) {
        const int own = rules_.MateOf(b.sent[s][trip]);
        if (own < b.done[SymbolOf(s, kPassI)]) continue;
        const bool is_back = back > 0 && own <= backwards[back - 1];
        key.first.push_back(b.sent[s][trip]);
        key.first.push_back(is_back ? -3 : trip < out ? -2 : -1);
      }
    }
    return key;
  }
  // Devices and results that someone still waits for; nothing begins before `from`.
  std::vector<int64_t> TimesOf(const CheckedBeginning& b, int64_t from) const {
    std::vector<int64_t> times;
    for (const int64_t free : b.free) times.push_back(std::max(free, from));
    for (const int64_t free : b.link) times.push_back(std::max(free, from));
    for (int d = 0; d < p_.devices; ++d) {
      times.push_back(b.leaving[d] < 0 ? from : std::max(b.out[d], from));
    }
    for (int s = 0; s < p_.stages(); ++s) {
      const std::vector<int> backwards = rules_.SentBackwards(b, s);
      for (size_t trip = 0; trip < b.back[s].size(); ++trip) {
        if (backwards[trip] < b.done[SymbolOf(s, kPassI)]) continue;
        times.push_back(std::max(b.back[s][trip], from));
      }
    }
    for (const int node : graph_.order()) {
      const Symbol symbol = graph_.symbol(node);
      if (b.end[node] >= 0) continue;
      for (const auto& [other, delay] : graph_.before(node)) {
        if (b.end[other] < 0 || graph_.device(other) == graph_.device(node)) continue;
        if (rules_.IsRoom(symbol, other)) continue;
        times.push_back(std::max(b.end[other] + delay, from));
      }
    }
    return times;
  }
  bool WasClosed(const CheckedBeginning& b, int64_t from) const {
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

  const SynthesisProblem& p_;
  const Proof& proof_;
  const ProofGraph graph_;
  const ProofRules rules_;
  std::vector<std::vector<Symbol>> symbols_;  // [device] I, F, W, O, L, forwards to the host
  std::map<Key, std::vector<std::vector<int64_t>>> closed_;
  size_t at_ = 0;
};

}  // namespace

absl::Status CheckTree(const SynthesisProblem& problem, const Proof& proof) {
  return Tree(problem, proof).Check();
}

}  // namespace pipelab
