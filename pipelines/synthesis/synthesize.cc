#include "pipelines/synthesis/synthesize.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "pipelines/synthesis/beam.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/exact.h"
#include "pipelines/synthesis/heads.h"
#include "pipelines/synthesis/local_search.h"
#include "pipelines/synthesis/place_copies.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kWidths[] = {1, 8, 64, 256};
constexpr double kCopyLeads[] = {1, 0, 3};  // of copies back
constexpr double kRooms[] = {1.5, 2};
constexpr int64_t kManySymbols = 2000;
constexpr int kMostExactPasses = 400;
constexpr int kMostExactUnits = 16;

class Synthesizer {
 public:
  Synthesizer(const SynthesisProblem& p, const SynthesisOptions& options)
      : p_(p),
        options_(options),
        evaluator_(p),
        random_(options.seed, "synthesis"),
        end_(absl::Now() + options.time_limit) {
    result_.proof.makespan = kNoMakespan;
  }

  absl::StatusOr<Synthesis> Run() {
    PIPELAB_RETURN_IF_ERROR(CheckProblem(p_));
    heads_ = ComputeHeads(p_, /*memory=*/true);
    result_.proof.bound = BestBound(p_, &heads_);
    std::vector<CatalogueOrder> orders = CatalogueOrders(p_);
    if (!orders.empty()) {
      result_.catalogue = std::move(orders[0]);
      Take(result_.catalogue.words, result_.catalogue.scheme);
    }
    Beams();
    Improve(0);
    Exact();
    for (int round = 0; round < options_.rounds && !Over(); ++round) Vary(round);
    Improve(1);
    if (result_.proof.words.empty()) {
      if (result_.stopped) {
        return absl::DeadlineExceededError("synthesis: no order was found in the time");
      }
      return absl::ResourceExhaustedError("synthesis: no order was found that fits into memory");
    }
    return std::move(result_);
  }

 private:
  bool Stopped() {
    if (!result_.stopped) {
      result_.stopped = absl::Now() >= end_ || (options_.stop && options_.stop());
    }
    return result_.stopped;
  }
  bool Over() { return result_.proof.optimal() || Stopped(); }

  void Take(const OrderWords& words, const std::string& found_by) {
    for (int d = 0; d < p_.devices; ++d) {
      if (words.empty() || !IsWordOf(p_, d, words[d])) return;
    }
    const int64_t makespan = evaluator_.Makespan(words);
    if (makespan >= result_.proof.makespan) return;
    result_.proof.makespan = makespan;
    result_.proof.words = words;
    result_.found_by = found_by;
    if (options_.progress) {
      options_.progress({makespan, result_.proof.bound.value, found_by});
    }
  }

  // Each width; where there may be copies with all at the host, every second one, and as it comes,
  // and in more room.
  void Beams() {
    const SentSet all = EvenlySent(p_, 1), half = EvenlySent(p_, 0.5);
    std::vector<const SentSet*> sent = {nullptr};
    if (p_.HasCopies()) sent = {&all, &half, nullptr};
    for (const int width : kWidths) {
      if (width > options_.widest) break;
      BeamOptions beam;
      beam.width = width;
      for (const SentSet* set : sent) {
        if (Over()) return;
        beam.sent = set;
        Beam(beam, absl::StrCat("beam of ", width));
      }
      beam.sent = nullptr;
      for (const double room : kRooms) {
        if (p_.HasCopies() && !p_.limits.free.empty() && !Over()) Relaxed(room, beam);
      }
    }
  }

  void Beam(BeamOptions beam, const std::string& name) {
    if (result_.proof.makespan < kNoMakespan) beam.shorter_than = result_.proof.makespan;
    beam.stop = [this] { return Stopped(); };
    Take(BeamSearch(p_, heads_, beam), name);
  }

  // Where there may be copies, many orders are equally long.
  void Improve(uint64_t number) {
    if (!p_.HasCopies() || result_.proof.words.empty() || Over()) return;
    LocalSearchOptions local;
    // Small ones have more, which take no longer than those of large ones.
    local.moves = options_.moves * std::clamp<int64_t>(kManySymbols / p_.Symbols(), 1, 8);
    local.seed = random_.Bits(1000 + number);
    local.stop = [this] { return Stopped(); };
    Take(LocalSearch(p_, result_.proof.words, local), "local search");
  }

  // Passes in more room than there is, and what does not fit goes to the host.
  void Relaxed(double room, BeamOptions beam) {
    SynthesisProblem more = p_;
    more.may_offload.clear();
    for (Bytes& free : more.limits.free) {
      free = Bytes(static_cast<int64_t>(room * static_cast<double>(free.value())));
    }
    beam.stop = [this] { return Stopped(); };
    if (result_.proof.makespan < kNoMakespan) beam.shorter_than = result_.proof.makespan;
    const OrderWords passes = BeamSearch(more, ComputeHeads(more, true), beam);
    if (passes.empty()) return;
    for (const double lead : kCopyLeads) {
      Take(CopiesAsNeeded(p_, passes, lead),
           absl::StrCat("beam of ", beam.width, " in ", room, " times the room, copies as needed"));
    }
  }

  // Noise from the begin, or from a time of the best order on.
  void Vary(int round) {
    BeamOptions beam;
    beam.width = std::min(kWidths[1 + round % 3], options_.widest);
    beam.seed = random_.Bits(2 * round);
    beam.noise = 1 << round % 4;
    beam.window = round % 5 == 4 ? 4 : 16;
    beam.lead = kCopyLeads[(round + round / 3) % 3];
    const bool part = round % 4 != 0 && !result_.proof.words.empty();
    const OrderWords best = result_.proof.words;
    if (part) {
      beam.begin_as = &best;
      beam.begin_until = static_cast<int64_t>(random_.Uniform(2 * round + 1) *
                                              static_cast<double>(result_.proof.makespan));
    }
    Beam(beam,
         absl::StrCat(part ? "rebuilt by a" : "", part ? " " : "", "noisy beam of ", beam.width));
  }

  void Exact() {
    const int64_t passes = p_.Symbols();
    if (Over() || passes > kMostExactPasses || p_.units() > kMostExactUnits) return;
    ExactOptions exact;
    exact.most_nodes = options_.exact_nodes;
    exact.shorter_than = result_.proof.makespan;
    exact.stop = [this] { return Stopped(); };
    ExactResult found = SearchExactly(p_, heads_, exact);
    result_.exact_nodes = found.nodes;
    Take(found.words, "exact search");
    if (found.complete) result_.proof.log = std::move(found.log);
  }

  const SynthesisProblem& p_;
  const SynthesisOptions& options_;
  WordEvaluator evaluator_;
  const CounterRng random_;
  const absl::Time end_;
  Heads heads_;
  Synthesis result_;
};

}  // namespace

absl::StatusOr<Synthesis> Synthesize(const SynthesisProblem& p, const SynthesisOptions& options) {
  if (p.micro_batches < 1 || p.slices < 1 || p.device_of_stage.empty()) return CheckProblem(p);
  return Synthesizer(p, options).Run();
}

}  // namespace pipelab
