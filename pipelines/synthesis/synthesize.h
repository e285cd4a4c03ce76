// The best order that is found for a problem, with a bound that says how good it is.
//
//   SynthesisOptions options;
//   options.time_limit = absl::Seconds(10);
//   PIPELAB_ASSIGN_OR_RETURN(const Synthesis found, Synthesize(problem, options));
//   found.proof.makespan;  found.proof.lower_bound();  found.found_by;
//   ScheduleOf(problem, found.proof.words);
//
// Starts from every schedule of the catalogue that the problem can say and that fits, so it is
// never longer than the best of them; where the problem may offload and the scheme does not, as it
// is, and with the copies that make room (place_copies.h). Then rounds of beams, wider ones and
// ones that rebuild the best order from some time on, local search where there may be copies, and
// for small problems the exact search. Deterministic by seed unless the time limit or `stop` ends
// it.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIZE_H_
#define PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIZE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/proof.h"

namespace pipelab {

struct SynthesisProgress {
  int64_t makespan = 0, bound = 0;  // ns
  std::string found_by;
};

struct SynthesisOptions {
  absl::Duration time_limit = absl::InfiniteDuration();
  int rounds = 12;               // of varied beams; a time limit ends them early
  int widest = 256;              // beam
  int64_t exact_nodes = 300000;  // of the exact search
  int64_t moves = 20000;         // of each of two local searches, where there may be copies; small
                                 // problems have up to 8 times as many
  uint64_t seed = 1;
  std::function<void(const SynthesisProgress&)> progress;  // each time the order becomes shorter
  std::function<bool()> stop;                              // asked often; true: the best so far
};

struct CatalogueOrder {
  std::string scheme;  // with what was varied: "interleaved_zb1p group_size=8"
  OrderWords words;
  int64_t makespan = 0;  // ns
};

struct Synthesis {
  Proof proof;
  std::string found_by;      // "zb1p", "beam of 64", "local search", "exact search"
  CatalogueOrder catalogue;  // the shortest that fits; no words: none does
  int64_t exact_nodes = 0;
  bool stopped = false;  // by the time limit or `stop`
};

// InvalidArgument or ResourceExhausted of CheckProblem; DeadlineExceeded or ResourceExhausted where
// no order was found.
absl::StatusOr<Synthesis> Synthesize(const SynthesisProblem& problem,
                                     const SynthesisOptions& options);

// All schedules of the catalogue over the problem's stages and devices that fit its memory, the
// shortest first. Synchronous ones of one replica; with the problem's times where a scheme takes
// them, and as they were published.
std::vector<CatalogueOrder> CatalogueOrders(const SynthesisProblem& problem);

// Which stages the catalogue's schemes on this placement offload (po_h, po_f), each set once.
std::vector<std::vector<bool>> OffloadedInCatalogue(const SynthesisProblem& problem);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIZE_H_
