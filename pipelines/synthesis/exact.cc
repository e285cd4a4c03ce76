#include "pipelines/synthesis/exact.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pipelines/synthesis/partial.h"
#include "pipelines/synthesis/proof.h"

namespace pipelab {
namespace {

constexpr size_t kMostRemembered = 48;          // closed states of the same passes done
constexpr size_t kMostBytes = size_t{1} << 30;  // of all closed states

class ExactOrderSearch {
 public:
  ExactOrderSearch(const SynthesisProblem& p, const Heads& heads, const ExactOptions& options)
      : p_(p), options_(options), rules_(p, heads, {p.micro_batches, false}), words_(p.devices) {
    result_.makespan = options.shorter_than;
  }

  ExactResult Run() {
    PartialOrders::State state = rules_.Start();
    result_.complete = Visit(&state);
    if (!result_.complete) result_.log.clear();
    return std::move(result_);
  }

 private:
  // False: it gave up.
  bool Visit(PartialOrders::State* state) {
    if (++result_.nodes > options_.most_nodes) return false;
    if (result_.nodes % 1024 == 0 && options_.stop && options_.stop()) return false;
    PartialOrders::Decision next;
    const auto outcome = rules_.Next(*state, &next);
    if (outcome == PartialOrders::Outcome::kClosed) return Log(kProofStuck);
    int device = -1;
    const int64_t bound = rules_.LowerBound(*state, &device);
    if (outcome == PartialOrders::Outcome::kDone) {
      if (bound < result_.makespan) {
        result_.makespan = bound;
        result_.words = words_;
      }
      return Log(kProofDone);
    }
    if (bound >= result_.makespan) return Log(kProofBound);
    std::string key;
    std::vector<int64_t> times;
    Describe(*state, next.begin, &key, &times);
    if (IsClosed(key, times)) return Log(kProofDominated);
    Log(kProofBranch);
    for (const Symbol symbol : Ordered(next.symbols)) {
      PartialOrders::Undo undo;
      rules_.Apply(next.device, symbol, state, &undo);
      words_[next.device].push_back(symbol);
      const bool closed = Visit(state);
      words_[next.device].pop_back();
      rules_.Revert(next.device, symbol, undo, state);
      if (!closed) return false;
    }
    PartialOrders::State waiting = *state;
    rules_.Delay(next, &waiting);
    if (!Visit(&waiting)) return false;
    Close(key, std::move(times));
    return true;
  }

  // Input gradients first: a good order is found early. The log does not depend on it, for the
  // checker goes the same way.
  static std::vector<Symbol> Ordered(std::vector<Symbol> symbols) {
    std::stable_sort(symbols.begin(), symbols.end(), [](Symbol a, Symbol b) {
      const auto rank = [](Symbol s) {
        return KindOf(s) == kPassI ? 0 : KindOf(s) == kPassF ? 1 : KindOf(s);
      };
      return rank(a) < rank(b);
    });
    return symbols;
  }

  bool Log(char letter) {
    result_.log += letter;
    return true;
  }

  // What is done and ruled out, and when what is there is there; nothing begins before `from`.
  void Describe(const PartialOrders::State& s, int64_t from, std::string* key,
                std::vector<int64_t>* times) const {
    for (int symbol = 0; symbol < p_.symbols(); ++symbol) {
      *key += static_cast<char>(rules_.UnitOf(s, static_cast<Symbol>(symbol)));
    }
    rules_.ForEachHeld(s, [key](bool sent) { *key += sent ? 's' : 'k'; });
    for (int d = 0; d < p_.devices; ++d) {
      const int64_t bits = rules_.RuledOut(s, d);
      key->append(reinterpret_cast<const char*>(&bits), sizeof(bits));
      if (!p_.HasCopies()) continue;
      const int64_t leaving = rules_.Leaving(s, d);
      key->append(reinterpret_cast<const char*>(&leaving), sizeof(leaving));
    }
    rules_.AppendTimes(s, from, times);
  }

  static bool IsNoLater(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] > b[i]) return false;
    }
    return true;
  }
  bool IsClosed(const std::string& key, const std::vector<int64_t>& times) const {
    const auto found = closed_.find(key);
    if (found == closed_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(),
                       [&](const auto& other) { return IsNoLater(other, times); });
  }
  void Close(const std::string& key, std::vector<int64_t> times) {
    auto& list = closed_[key];
    if (list.size() >= kMostRemembered || bytes_ > kMostBytes) return;
    bytes_ += times.size() * sizeof(int64_t) + sizeof(std::vector<int64_t>) +
              (list.empty() ? 2 * key.size() + 64 : 0);
    list.push_back(std::move(times));
  }

  const SynthesisProblem& p_;
  const ExactOptions& options_;
  const PartialOrders rules_;
  OrderWords words_;
  ExactResult result_;
  std::unordered_map<std::string, std::vector<std::vector<int64_t>>> closed_;
  size_t bytes_ = 0;
};

}  // namespace

ExactResult SearchExactly(const SynthesisProblem& p, const Heads& heads,
                          const ExactOptions& options) {
  bool positive = true;
  std::vector<int> of_device(p.devices);
  for (int symbol = 0; symbol < p.symbols(); ++symbol) {
    const auto own = static_cast<Symbol>(symbol);
    if (!p.Has(own)) continue;
    for (int slice = 0; slice < p.slices; ++slice) positive &= p.Length(own, slice) > 0;
    ++of_device[p.device_of_stage[StageOf(own)]];
  }
  // A bit for each symbol of a device says what it waited past.
  constexpr int kMostSymbols = 62;
  const bool many = *std::max_element(of_device.begin(), of_device.end()) > kMostSymbols;
  ExactResult result;
  result.makespan = options.shorter_than;
  if (!positive || p.units() > 120 || many) return result;
  return ExactOrderSearch(p, heads, options).Run();
}

}  // namespace pipelab
