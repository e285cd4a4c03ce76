#include "pipelines/synthesis/check_rules.h"

#include <algorithm>

namespace pipelab {
namespace {

int PlaceIn(const std::vector<int>& list, int n) {  // -1: it is not there
  const auto at = std::find(list.begin(), list.end(), n);
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

}  // namespace

std::vector<int> ProofRules::SentBackwards(const CheckedBeginning& b, int stage) const {
  const int forwards = b.done[SymbolOf(stage, kPassF)];
  std::vector<int> backwards;
  for (const int forward : b.sent[stage]) {
    if (forward < forwards - forwards % p_.slices) backwards.push_back(MateOf(forward));
  }
  std::sort(backwards.begin(), backwards.end());
  return backwards;
}

CheckedBeginning ProofRules::Start() const {
  CheckedBeginning start;
  start.end.assign(graph_.size(), -1);
  start.done.assign(p_.symbols(), 0);
  start.free.assign(p_.devices, 0);
  start.link = start.free;
  start.leaving.assign(p_.devices, -1);
  start.out = start.free;
  start.sent.resize(p_.stages());
  start.back.resize(p_.stages());
  start.level = start.free;
  start.until.assign(p_.devices, kOpen);
  start.barred.resize(p_.devices);
  return start;
}

int64_t ProofRules::BeginOf(const CheckedBeginning& b, int d, Symbol symbol) const {
  if (IsCopy(symbol)) return CopyBegin(b, d, symbol);
  const Symbol pass = KindOf(symbol) == kSentF ? SymbolOf(StageOf(symbol), kPassF) : symbol;
  const int n = b.done[pass];
  if (n == p_.micro_batches * p_.slices) return kOpen;
  const int node = graph_.NodeOf(pass, n);
  if (!HasRoom(d, b.level[d], graph_.use(node))) return kOpen;
  int64_t begin = b.free[d];
  for (const auto& [other, delay] : graph_.before(node)) {
    if (IsRoom(pass, other)) continue;  // the level says it
    if (b.end[other] < 0) return kOpen;
    begin = std::max(begin, b.end[other] + delay);
  }
  if (KindOf(pass) != kPassI) return begin;
  const int trip = PlaceIn(SentBackwards(b, StageOf(pass)), n);
  if (trip < 0) return begin;
  const std::vector<int64_t>& back = b.back[StageOf(pass)];
  return trip < static_cast<int>(back.size()) ? std::max(begin, back[trip]) : kOpen;
}

bool ProofRules::HasRoom(int d, int64_t level, OrderLimits::Use use) const {
  return p_.limits.free.empty() ||
         level + std::max(use.peak, use.change).value() <= p_.limits.free[d].value();
}

int64_t ProofRules::CopyBegin(const CheckedBeginning& b, int d, Symbol symbol) const {
  const int s = StageOf(symbol);
  const bool out = KindOf(symbol) == kCopyO;
  const std::vector<int> units = out ? b.sent[s] : SentBackwards(b, s);
  const auto n = static_cast<size_t>(b.done[symbol]);
  if (n >= units.size()) return kOpen;
  const int forward = out ? units[n] : MateOf(units[n]);
  if (!out && PlaceIn(b.sent[s], forward) >= b.done[SymbolOf(s, kCopyO)]) return kOpen;
  const bool waits = b.leaving[d] >= 0;
  const int64_t level = b.level[d] - (waits ? BytesOf(b.leaving[d]) : 0);
  const Bytes taken(out ? 0 : BytesOf(PartOf(s, forward)));
  if (!HasRoom(d, level, {taken, taken})) return kOpen;
  return waits ? std::max(b.free[d], b.out[d]) : b.free[d];
}

// The device goes on at once; the copy follows what is on the link.
void ProofRules::Copy(int d, Symbol symbol, int64_t begin, CheckedBeginning* b) const {
  const int s = StageOf(symbol);
  if (b->leaving[d] >= 0) b->level[d] -= BytesOf(b->leaving[d]);
  const bool out = KindOf(symbol) == kCopyO;
  const int n = b->done[symbol];
  const int part = PartOf(s, out ? b->sent[s][n] : MateOf(SentBackwards(*b, s)[n]));
  b->leaving[d] = out ? part : -1;
  if (!out) b->level[d] += BytesOf(part);
  b->free[d] = begin;
  b->link[d] = std::max(begin, b->link[d]) + p_.host_copy[part];
  if (out) {
    b->out[d] = b->link[d];
  } else {
    b->back[s].push_back(b->link[d]);
  }
  ++b->done[symbol];
}

void ProofRules::Run(int d, Symbol symbol, int64_t begin, CheckedBeginning* b) const {
  if (IsCopy(symbol)) return Copy(d, symbol, begin, b);
  const int s = StageOf(symbol);
  const bool sent = KindOf(symbol) == kSentF;
  const Symbol pass = sent ? SymbolOf(s, kPassF) : symbol;
  const int n = b->done[pass]++, node = graph_.NodeOf(pass, n);
  if (sent) b->sent[s].push_back(n);
  b->end[node] = b->free[d] = begin + graph_.length(node);
  b->level[d] += graph_.use(node).change.value();
}

bool ProofRules::IsFree(Symbol symbol, int n) const {
  if (IsCopy(symbol) || KindOf(symbol) == kSentF) return false;
  if (p_.limits.free.empty()) return true;
  return graph_.use(graph_.NodeOf(symbol, n)).change <= Bytes(0) &&
         !(KindOf(symbol) == kPassF && p_.MayOffload(StageOf(symbol)));
}

// When the pass has its copy back at the least, if it is the I of a micro-batch that was sent.
int64_t ProofRules::LeastBack(const CheckedBeginning& b, int node) const {
  const Symbol symbol = graph_.symbol(node);
  const int s = StageOf(symbol), d = p_.device_of_stage[s];
  if (KindOf(symbol) != kPassI) return 0;
  const int n = node - graph_.NodeOf(symbol, 0), trip = PlaceIn(SentBackwards(b, s), n);
  if (trip < 0) return 0;
  if (trip < static_cast<int>(b.back[s].size())) return b.back[s][trip];
  const int forward = MateOf(n);
  const int64_t copies = PlaceIn(b.sent[s], forward) < b.done[SymbolOf(s, kCopyO)] ? 1 : 2;
  return std::max(b.free[d], b.link[d]) + copies * p_.host_copy[PartOf(s, forward)];
}

// Copies of what was sent follow one another on each link, and behind the last one is an I.
int64_t ProofRules::LeastOfLinks(const CheckedBeginning& b) const {
  std::vector<int64_t> work(p_.devices, 0), behind(p_.devices, kOpen);
  for (int s = 0; s < p_.stages(); ++s) {
    const int d = p_.device_of_stage[s], out = b.done[SymbolOf(s, kCopyO)];
    const int copies = 2 * static_cast<int>(b.sent[s].size()) - out - b.done[SymbolOf(s, kCopyL)];
    if (copies == 0) continue;
    const std::vector<int> backwards = SentBackwards(b, s);
    for (int n = 0; n < static_cast<int>(b.sent[s].size()); ++n) {
      const int64_t copy = p_.host_copy[PartOf(s, b.sent[s][n])];
      work[d] += n < out ? copy : 2 * copy;
    }
    for (int n = 0; n < b.done[SymbolOf(s, kCopyL)]; ++n) {
      work[d] -= p_.host_copy[PartOf(s, MateOf(backwards[n]))];
    }
    const int last = graph_.NodeOf(SymbolOf(s, kPassI), p_.micro_batches * p_.slices - 1);
    behind[d] = std::min(behind[d], graph_.length(last) + graph_.tail(last));
  }
  int64_t least = 0;
  for (int d = 0; d < p_.devices; ++d) {
    if (work[d] == 0) continue;
    least = std::max(least, std::max(b.free[d], b.link[d]) + work[d] + behind[d]);
  }
  return least;
}

int64_t ProofRules::LeastMakespan(const CheckedBeginning& b) const {
  std::vector<int64_t> begin(graph_.size(), 0);
  std::vector<std::vector<int>> left(p_.devices);
  int64_t least = std::max(*std::max_element(b.free.begin(), b.free.end()), LeastOfLinks(b));
  for (const int node : graph_.order()) {
    if (b.end[node] >= 0) continue;
    const int d = graph_.device(node);
    begin[node] = std::max({graph_.head(node), b.free[d], LeastBack(b, node)});
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

}  // namespace pipelab
