// Samples that arrive at a pipeline over time: how long each is on its way, and which are dropped
// where they come faster than the pipeline takes them (PARTIME, arXiv 2210.09147).
//
//   StreamRules rules;
//   rules.tick = Milliseconds(4);  rules.latency = 8 * rules.tick;     // of a trace
//   rules.when_full = WhenFull::kDropOldest;
//   const StreamFigures f = RunArrivals(EvenArrivals(1000, Milliseconds(3)), rules);
//   f.dropped;  f.median;  f.p99;
//
// The pipeline takes a sample each tick at most, the oldest that waits. A sample that finds every
// place taken waits at its source (kBlock), or takes the place of the oldest one, which is lost
// (kDropOldest). Latency is from the arrival to the end of the last stage. Nanoseconds.
#ifndef PIPELAB_PIPELINES_ANALYSIS_ARRIVALS_H_
#define PIPELAB_PIPELINES_ANALYSIS_ARRIVALS_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "tools/base/units.h"

namespace pipelab {

enum class WhenFull : uint8_t { kBlock, kDropOldest };

struct StreamRules {
  Nanoseconds tick;     // above 0
  Nanoseconds latency;  // from where the pipeline takes a sample to the last stage's end
  int64_t places = 1;   // for waiting samples, at least 1
  WhenFull when_full = WhenFull::kBlock;
};

// Percentiles by nearest rank: the least time that 50 %, 99 % and all of them do not exceed.
struct TimeShares {
  Nanoseconds median, p99, longest;
};
TimeShares SharesOf(std::vector<Nanoseconds> times);  // zeros where there are none

struct StreamFigures {
  int64_t taken = 0, dropped = 0;
  int64_t blocked = 0;               // waited at their source
  Nanoseconds median, p99, longest;  // latencies of those taken
  Nanoseconds end;                   // of the last one
};

// `arrivals` ascend.
StreamFigures RunArrivals(const std::vector<Nanoseconds>& arrivals, const StreamRules& rules);

// [micro-batch] Of any trace with times: from where its first forward begins to
// where its last one ends. Where stages run at once, that is less than a tick a stage.
std::vector<Nanoseconds> SampleLatencies(const Program& program, const Trace& trace);

// What RunArrivals needs of such a trace without releases, as it is in its second half: the time
// between the begins of two samples, and the median latency. None with fewer than four samples, or
// where these times differ by more than 1 % (or 1 ns).
absl::optional<StreamRules> SteadyRules(const Program& program, const Trace& trace);

// The figures of a trace whose cost table has these releases, whatever the schedule: from a
// micro-batch's release on. Micro-batches that begin later than that have waited at their source.
StreamFigures FiguresOfReleases(const Program& program, const Trace& trace,
                                const std::vector<Nanoseconds>& releases);

// At 0, period, 2 period, ...
std::vector<Nanoseconds> EvenArrivals(int64_t count, Nanoseconds period);

// At random, so many a second in the mean (a Poisson process), from 0 on: the same for a seed on
// every machine.
std::vector<Nanoseconds> RandomArrivals(int64_t count, double per_second, uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_ANALYSIS_ARRIVALS_H_
