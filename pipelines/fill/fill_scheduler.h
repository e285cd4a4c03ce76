// Which fill job a device takes next (PipeFill, MLSys 2025): jobs arrive, wait, and run in the gaps
// of one device each, to their end.
//
//   std::vector<FillRequest> jobs = GenerateFillRequests(/*seed=*/1, {});
//   PIPELAB_ASSIGN_OR_RETURN(FillOutcome o, ScheduleFill(jobs, rates, ShortestFirst));
//   o.mean_wait_s;  o.missed_deadlines;
//
// `rates[device][kind]` is how much of a job of the kind the device's gaps do in a second, in
// seconds of a device of the job's own: FillWork of its plan over the time of the steps. 0: a piece
// of it fits nowhere. A policy is a comparison: which of two jobs a free device takes. All times
// are seconds.
//
// Requests are generated: no trace of a cluster's jobs is in a package. Sizes are heavy-tailed, as
// in published traces (most jobs are short, a few are most of the work): Pareto between two bounds,
// with arrivals that know nothing of each other (Poisson).
#ifndef PIPELAB_PIPELINES_FILL_FILL_SCHEDULER_H_
#define PIPELAB_PIPELINES_FILL_FILL_SCHEDULER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pipelab {

struct FillRequest {
  std::string name;
  int kind = 0;  // which fill job it is
  double arrival_s = 0;
  double work_s = 0;  // on a device of its own
  double deadline_s = std::numeric_limits<double>::infinity();
};

// A waiting job, to a device that is free now.
struct FillOffer {
  const FillRequest* request = nullptr;
  double rate = 0;     // of the job's kind on this device, above 0
  double takes_s = 0;  // from now to its end
};

// Whether `a` goes before `b`. Where neither does, the one that came first.
using FillPolicy = bool (*)(const FillOffer& a, const FillOffer& b);
bool MostWork(const FillOffer& a, const FillOffer& b);       // the most work a second
bool ShortestFirst(const FillOffer& a, const FillOffer& b);  // the soonest end
bool DeadlineFirst(const FillOffer& a, const FillOffer& b);  // the earliest deadline

struct NamedFillPolicy {
  absl::string_view name;  // "most_work"
  FillPolicy before = nullptr;
};
absl::Span<const NamedFillPolicy> FillPolicies();

struct FillPlacement {
  int device = -1;
  double begin_s = 0, end_s = 0;
};

struct FillOutcome {
  std::vector<FillPlacement> placements;  // [request]
  double end_s = 0;                       // of the last job
  double work_s = 0;
  double mean_wait_s = 0;        // from arrival to end
  double busy_share = 0;         // of the devices' time until the last end, 0 to 1
  int64_t missed_deadlines = 0;  // ends behind the deadline
};

// InvalidArgument naming a request that no device can do, or whose figures cannot be.
absl::StatusOr<FillOutcome> ScheduleFill(const std::vector<FillRequest>& requests,
                                         const std::vector<std::vector<double>>& rates,
                                         FillPolicy before);

struct FillRequestOptions {
  int64_t count = 1000;
  int kinds = 1;             // equally likely
  double mean_gap_s = 60;    // between two arrivals
  double shape = 1.2;        // of the Pareto distribution; the smaller, the heavier its tail
  double least_work_s = 60;  // bounds of a job's work
  double most_work_s = 86400;
  // A deadline is so many times the work behind the arrival, uniform between the two.
  double least_patience = 2, most_patience = 20;
};
std::vector<FillRequest> GenerateFillRequests(uint64_t seed, const FillRequestOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_FILL_FILL_SCHEDULER_H_
