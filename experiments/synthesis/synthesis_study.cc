#include "experiments/synthesis/synthesis_study.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "pipelines/synthesis/check_proof.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct Instance {
  int devices = 0, micro_batches = 0, virtual_stages = 1;
  uint64_t seed = 0;  // of unequal times; 0: equal ones
  double memory = 1;  // activations of a whole device, in multiples of P
};

// Unequal ones: each pass half to one and a half times of 100, a hop a twentieth.
SynthesisProblem ProblemOfInstance(const Instance& i) {
  SynthesisProblem p =
      UnitProblem(i.devices, i.micro_batches, ZigZagDevices(i.devices, i.virtual_stages));
  const CounterRng random(i.seed, "synthesis/times");
  for (int s = 0; s < p.stages() && i.seed > 0; ++s) {
    p.lengths.forward[s] = 50 + random.Below(3 * s, 101);
    p.lengths.backward_input[s] = 50 + random.Below(3 * s + 1, 101);
    p.lengths.backward_weight[s] = 50 + random.Below(3 * s + 2, 101);
    p.lengths.hop[s] = 5;
  }
  const auto room = static_cast<int64_t>(i.memory * i.devices * i.virtual_stages);
  p.limits.free.assign(i.devices, Bytes(std::max<int64_t>(room, i.virtual_stages)));
  return p;
}

// Not in the row where nothing fits.
absl::StatusOr<SynthesizedRow> Solve(const Instance& i, const SynthesisStudySize& size,
                                     double limit_s) {
  const SynthesisProblem p = ProblemOfInstance(i);
  SynthesisOptions options;
  options.time_limit = absl::Seconds(limit_s);
  options.rounds = size.rounds;
  options.widest = size.widest;
  options.exact_nodes = size.exact_nodes;
  PIPELAB_ASSIGN_OR_RETURN(const Synthesis found, Synthesize(p, options));
  PIPELAB_RETURN_IF_ERROR(CheckProof(p, found.proof));
  SynthesizedRow row;
  row.devices = i.devices;
  row.micro_batches = i.micro_batches;
  row.placement = i.virtual_stages == 1 ? "one stage" : "zigzag";
  row.times = i.seed == 0 ? "equal" : absl::StrCat("unequal ", i.seed);
  row.memory = absl::StrFormat("%g P", i.memory);
  row.name = absl::StrFormat("P=%d M=%d %s, %s, %s", i.devices, i.micro_batches, row.placement,
                             row.times, row.memory);
  if (!found.catalogue.words.empty()) {
    row.scheme = found.catalogue.scheme;
    row.catalogue = static_cast<double>(found.catalogue.makespan);
  }
  row.makespan = static_cast<double>(found.proof.makespan);
  row.bound = static_cast<double>(found.proof.lower_bound());
  const bool tree = found.proof.bound.value < found.proof.makespan && found.proof.optimal();
  row.reason = tree ? "tree" : BoundReasonName(found.proof.bound.reason);
  row.found_by = found.found_by;
  row.optimal = found.proof.optimal();
  row.stopped = found.stopped;
  return row;
}

absl::Status AddRows(const std::vector<Instance>& instances, const SynthesisStudySize& size,
                     double limit_s, std::vector<SynthesizedRow>* rows) {
  for (const Instance& i : instances) {
    absl::StatusOr<SynthesizedRow> row = Solve(i, size, limit_s);
    if (!row.ok() && !absl::IsResourceExhausted(row.status())) return row.status();
    if (row.ok()) rows->push_back(*std::move(row));
  }
  return absl::OkStatus();
}

std::vector<Instance> EqualTimes(int most_devices) {
  std::vector<Instance> all;
  for (const int P : {2, 3, 4, 6, 8, 12, 16}) {
    if (P > most_devices) break;
    for (const int M : {P, 2 * P, 4 * P}) {
      for (const int V : {1, 2}) {
        for (const double memory : {0.5, 0.625, 0.875, 1.0, 2.0}) {
          all.push_back({P, M, V, 0, memory});
        }
      }
    }
  }
  return all;
}

std::vector<Instance> SmallSizes(int most) {
  std::vector<Instance> all;
  for (int P = 2; P <= 4; ++P) {
    for (int M = 1; M <= most; ++M) {
      for (const uint64_t seed : {0, 1, 2}) {
        for (const double memory : {0.5, 1.0, 2.0}) all.push_back({P, M, 1, seed, memory});
      }
    }
  }
  return all;
}

std::vector<Instance> OneSize(int P, int M) {
  std::vector<Instance> all;
  for (const int V : {1, 2}) {
    for (const uint64_t seed : {0, 1, 2}) {
      for (const double memory : {0.5, 1.0, 2.0}) all.push_back({P, M, V, seed, memory});
    }
  }
  return all;
}

double MedianGap(const std::vector<SynthesizedRow>& rows) {
  std::vector<double> gaps;
  for (const SynthesizedRow& row : rows) gaps.push_back(ToPercent(row.gap()));
  return MedianOf(gaps);
}

Table RowsTable(const std::string& name, const std::string& title,
                const std::vector<SynthesizedRow>& rows) {
  Table t(name, title);
  for (const char* key : {"devices", "micro_batches", "stages", "times", "memory"}) t.AddKey(key);
  const auto column = [&t](const char* metric, const char* heading, const char* unit,
                           int decimals) {
    t.AddColumn({.metric = metric,
                 .title = heading,
                 .unit = unit,
                 .origin = Origin::kComputed,
                 .decimals = decimals});
  };
  column("catalogue", "best of the catalogue", "time units", 0);
  column("synthesized", "synthesized", "time units", 0);
  column("bound", "lower bound", "time units", 0);
  column("gap", "gap", "%", 2);
  for (const SynthesizedRow& r : rows) {
    Cell catalogue = r.scheme.empty() ? Missing("no schedule of the catalogue fits")
                                      : Computed(r.catalogue).WithNote(r.scheme);
    Cell bound = Computed(r.bound).WithNote(r.reason);
    t.AddRow({Label(absl::StrCat(r.devices)), Label(absl::StrCat(r.micro_batches)),
              Label(r.placement), Label(r.times), Label(r.memory), catalogue,
              Computed(r.makespan)
                  .WithNote(absl::StrCat(r.found_by,
                                         r.stopped ? "; the limit of time ended the search" : "")),
              bound, Computed(ToPercent(r.gap()))});
  }
  return t;
}

Table UnequalTable(const std::vector<UnequalCaseRow>& rows) {
  Table t("unequal", "Steps of models with unequal stages or devices");
  t.AddKey("case");
  const auto column = [&t](const char* metric, const char* heading, const char* unit) {
    t.AddColumn({.metric = metric,
                 .title = heading,
                 .unit = unit,
                 .origin = Origin::kSimulated,
                 .decimals = 2});
  };
  column("catalogue", "step, best of the catalogue", "ms");
  column("synthesized", "step, synthesized", "ms");
  column("gain", "shorter by", "%");
  for (const UnequalCaseRow& r : rows) {
    const Cell none = Missing("no schedule of the catalogue fits");
    t.AddRow({Label(r.name), r.scheme.empty() ? none : Simulated(r.catalogue_ms).WithNote(r.scheme),
              Simulated(r.step_ms).WithNote(r.placement),
              r.scheme.empty() ? none : Simulated(ToPercent(r.gain()))});
  }
  return t;
}

void AddGapClaim(const char* id, const std::vector<SynthesizedRow>& rows, double limit,
                 const char* text, std::vector<Claim>* claims) {
  if (rows.empty()) return;
  Claim c = OwnClaim(id, text);
  c.unit = "%";
  Found(&c, Origin::kComputed, MedianGap(rows));
  MetIf(&c, MedianGap(rows) <= limit, absl::StrFormat("at most %g %%", limit),
        "bounds of two stages a device in little memory are weak");
  claims->push_back(std::move(c));
}

}  // namespace

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

absl::StatusOr<SynthesisStudy> RunSynthesisStudy(const SynthesisStudySize& size) {
  SynthesisStudy study;
  PIPELAB_RETURN_IF_ERROR(
      AddRows(EqualTimes(size.most_devices), size, size.small_limit_s, &study.equal));
  PIPELAB_RETURN_IF_ERROR(
      AddRows(SmallSizes(size.most_small), size, size.small_limit_s, &study.small));
  PIPELAB_RETURN_IF_ERROR(AddRows(OneSize(8, 32), size, size.small_limit_s, &study.medium));
  if (size.large) {
    PIPELAB_RETURN_IF_ERROR(AddRows(OneSize(32, 128), size, size.large_limit_s, &study.large));
  }
  PIPELAB_ASSIGN_OR_RETURN(study.unequal, RunUnequalCases(size));
  PIPELAB_ASSIGN_OR_RETURN(study.slices, RunSliceCases(size));
  return study;
}

std::vector<Table> SynthesisTables(const SynthesisStudy& study) {
  std::vector<Table> tables;
  tables.push_back(RowsTable("equal_times", "Equal times", study.equal));
  tables.push_back(RowsTable("small", "Small sizes", study.small));
  tables.push_back(RowsTable("p8_m32", "P = 8, M = 32", study.medium));
  if (!study.large.empty()) tables.push_back(RowsTable("p32_m128", "P = 32, M = 128", study.large));
  tables.push_back(UnequalTable(study.unequal));
  tables.push_back(SlicesTable(study.slices));
  return tables;
}

std::vector<Claim> SynthesisClaims(const SynthesisStudy& study) {
  std::vector<Claim> claims;
  int longer = 0, shorter = 0, compared = 0;
  for (const SynthesizedRow& r : study.equal) {
    if (r.scheme.empty()) continue;
    ++compared;
    longer += r.makespan > r.catalogue ? 1 : 0;
    shorter += r.makespan < r.catalogue ? 1 : 0;
  }
  Claim equal = OwnClaim("synthesis.equal_times",
                         "problems of equal times whose order is shorter than the catalogue's best "
                         "at the same memory");
  equal.unit = "problems";
  Found(&equal, Origin::kComputed, shorter,
        absl::StrFormat("%d of %d shorter, %d longer", shorter, compared, longer));
  MetIf(&equal, longer == 0 && shorter > 0, "none longer, some shorter",
        "the catalogue's orders are the shortest there are wherever one fits");
  claims.push_back(std::move(equal));

  int proven = 0;
  for (const SynthesizedRow& r : study.small) proven += r.optimal ? 1 : 0;
  const double share =
      study.small.empty() ? 0 : 100.0 * proven / static_cast<double>(study.small.size());
  Claim small = OwnClaim("synthesis.small_proven", "problems of P <= 4, M <= 8 proven optimal");
  small.unit = "%";
  Found(&small, Origin::kComputed, share,
        absl::StrFormat("%d of %d", proven, static_cast<int>(study.small.size())));
  MetIf(&small, share >= 90, "at least 90 %", "the exact search gives up at its number of nodes");
  claims.push_back(std::move(small));

  AddGapClaim("synthesis.gap_p8_m32", study.medium, 2, "median gap to the bound, P = 8, M = 32",
              &claims);
  AddGapClaim("synthesis.gap_p32_m128", study.large, 5, "median gap to the bound, P = 32, M = 128",
              &claims);

  std::vector<double> gains;
  for (const UnequalCaseRow& r : study.unequal) {
    if (!r.scheme.empty()) gains.push_back(ToPercent(r.gain()));
  }
  Claim unequal = OwnClaim("synthesis.unequal",
                           "unequal stages or devices: step shorter than the catalogue's best at "
                           "the same memory, median");
  unequal.unit = "%";
  Found(&unequal, Origin::kSimulated, MedianOf(gains),
        absl::StrFormat("%.1f %% (%d cases)", MedianOf(gains), static_cast<int>(gains.size())));
  MetIf(&unequal, MedianOf(gains) >= 5, "at least 5 %",
        "schemes that take the times of passes are near the bound where devices are equal");
  claims.push_back(std::move(unequal));
  claims.push_back(SlicesClaim(study.slices));
  return claims;
}

}  // namespace pipelab
