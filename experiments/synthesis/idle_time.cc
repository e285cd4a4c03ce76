#include "experiments/synthesis/idle_time.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/check_proof.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kForward = 100;  // ns: of a half stage
constexpr double kPaper = 50;      // % less idle time

struct Placed {
  std::string name;
  SynthesisProblem problem;
};

// One placement with this room, nothing at the host.
SynthesisProblem IdleProblem(int P, int M, double memory, int virtual_stages, bool zigzag) {
  SynthesisProblem p = UnitProblem(
      P, M, zigzag ? ZigZagDevices(P, virtual_stages) : LoopedDevices(P, virtual_stages));
  const int64_t halves = 2 / virtual_stages;
  for (std::vector<int64_t>* times : {&p.lengths.forward, &p.lengths.recompute,
                                      &p.lengths.backward_input, &p.lengths.backward_weight}) {
    times->assign(p.stages(), halves * kForward);
  }
  p.limits.forward.assign(p.stages(), {Bytes(halves), Bytes(halves)});
  p.limits.backward_weight.assign(p.stages(), {Bytes(0), Bytes(-halves)});
  p.limits.free.assign(P, Bytes(static_cast<int64_t>(memory * 2 * P)));
  p.host_copy.assign(p.stages(), 3 * halves * kForward / 2);
  return p;
}

// With nothing at the host; and where those stages may offload that the catalogue's schemes
// offload, or some of the first ones, whose micro-batches live the longest.
std::vector<Placed> ProblemsOf(int P, int M, double memory) {
  std::vector<Placed> all;
  for (const auto& [name, virtual_stages, zigzag] :
       {std::make_tuple("one stage", 1, false), std::make_tuple("looped", 2, false),
        std::make_tuple("zigzag", 2, true)}) {
    const SynthesisProblem none = IdleProblem(P, M, memory, virtual_stages, zigzag);
    all.push_back({name, none});
    std::vector<std::vector<bool>> sets = OffloadedInCatalogue(none);
    for (int quarters = 1; quarters <= 3; ++quarters) {
      std::vector<bool> stages(none.stages(), false);
      std::fill_n(stages.begin(), none.stages() * quarters / 4, true);
      if (std::find(sets.begin(), sets.end(), stages) == sets.end()) sets.push_back(stages);
    }
    for (const std::vector<bool>& stages : sets) {
      all.push_back({absl::StrCat(name, ", ", std::count(stages.begin(), stages.end(), true),
                                  " of ", none.stages(), " stages may offload"),
                     none});
      all.back().problem.may_offload = stages;
    }
  }
  return all;
}

bool IsPipeOffload(const std::string& scheme) {
  return absl::StartsWith(scheme, "gis") || absl::StartsWith(scheme, "po_");
}

// The idle time of a device, in forwards; all have the same work.
double IdleOf(const SynthesisProblem& p, int64_t makespan) {
  return static_cast<double>(makespan - p.Work(0)) / kForward;
}

void TakeCatalogue(const SynthesisProblem& p, IdleRow* row) {
  for (const CatalogueOrder& order : CatalogueOrders(p)) {
    // Copies as needed are a start of the search, and no scheme of anyone's.
    if (absl::StrContains(order.scheme, "as needed")) continue;
    const bool offloads = IsPipeOffload(order.scheme);
    double* idle = offloads ? &row->pipe_offload : &row->catalogue;
    const double own = IdleOf(p, order.makespan);
    if (*idle >= 0 && *idle <= own) continue;
    *idle = own;
    (offloads ? row->offload_scheme : row->scheme) = order.scheme;
  }
}

absl::Status TakeSynthesis(const Placed& placed, const SynthesisStudySize& size, IdleRow* row) {
  SynthesisOptions options;
  options.time_limit = absl::Seconds(size.idle_limit_s);
  options.rounds = size.idle_rounds;
  options.widest = size.widest;
  options.moves = size.idle_moves;
  options.exact_nodes = 0;
  const absl::StatusOr<Synthesis> found = Synthesize(placed.problem, options);
  if (!found.ok()) {
    row->stopped = row->stopped || absl::IsDeadlineExceeded(found.status());
    const bool none =
        absl::IsResourceExhausted(found.status()) || absl::IsDeadlineExceeded(found.status());
    return none ? absl::OkStatus() : found.status();
  }
  PIPELAB_RETURN_IF_ERROR(CheckProof(placed.problem, found->proof));
  row->stopped = row->stopped || found->stopped;
  const double own = IdleOf(placed.problem, found->proof.makespan);
  if (row->synthesized >= 0 && row->synthesized <= own) return absl::OkStatus();
  row->synthesized = own;
  row->placement = placed.name;
  row->found_by = found->found_by;
  return absl::OkStatus();
}

absl::StatusOr<IdleRow> RunRow(int P, int M, double memory, const SynthesisStudySize& size) {
  IdleRow row;
  row.devices = P;
  row.micro_batches = M;
  row.memory = memory;
  const std::vector<Placed> all = ProblemsOf(P, M, memory);
  std::vector<std::pair<double, const Placed*>> by_bound;
  const absl::Time begin = absl::Now();
  for (const Placed& placed : all) {
    if (!CheckProblem(placed.problem).ok()) continue;  // not even one micro-batch
    by_bound.push_back({IdleOf(placed.problem, BestBound(placed.problem).value), &placed});
  }
  std::stable_sort(by_bound.begin(), by_bound.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  row.bound = by_bound.empty() ? 0 : by_bound[0].first;
  for (const auto& [bound, placed] : by_bound) {
    if (row.synthesized >= 0 && bound >= row.synthesized) continue;
    PIPELAB_RETURN_IF_ERROR(TakeSynthesis(*placed, size, &row));
  }
  row.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  for (const auto& [bound, placed] : by_bound) TakeCatalogue(placed->problem, &row);
  return row;
}

// The share of `other`'s idle time that is gone, in %. Null: there is nothing to compare.
absl::optional<double> GainOf(const IdleRow& r, double other) {
  if (other <= 0 || r.synthesized < 0) return absl::nullopt;
  return 100 * (1 - r.synthesized / other);
}

Claim Named(const char* id, absl::string_view than, absl::string_view which) {
  Claim c =
      PaperClaim(id, absl::StrCat("idle time less at the same memory than ", than, ", ", which),
                 "OptPipe (arXiv 2510.05186, withdrawn), abstract", "read");
  c.unit = "%";
  Published(&c, kPaper);
  return c;
}

constexpr char kBoth[] = "the best of zero-bubble schedules and PipeOffload's";

// What the abstract says.
Claim MostClaim(const std::vector<IdleRow>& rows) {
  Claim c = Named("optpipe.idle_most", kBoth, "\"up to\"");
  double most = 0;
  const IdleRow* where = nullptr;
  for (const IdleRow& r : rows) {
    const auto gain = GainOf(r, r.best());
    if (!gain.has_value() || (where != nullptr && *gain <= most)) continue;
    most = *gain;
    where = &r;
  }
  if (where == nullptr) {
    NotMade(&c, "none of their schedules fits");
    return c;
  }
  Found(&c, Origin::kComputed, most,
        absl::StrFormat("%.1f %% with P = %d, M = %d in %g P", most, where->devices,
                        where->micro_batches, where->memory));
  MetIf(&c, most >= kPaper, "at least 50 % at one size",
        "the sizes of the paper's runs are not known");
  return c;
}

// More than the abstract says: so much at the middle size.
Claim MedianClaim(const std::vector<IdleRow>& rows, bool pipe_offload) {
  Claim c = Named(pipe_offload ? "optpipe.idle_pipeoffload" : "optpipe.idle",
                  pipe_offload ? "the best of PipeOffload's schemes" : kBoth,
                  "median over sizes with equal times");
  std::vector<double> gains;
  for (const IdleRow& r : rows) {
    const auto gain = GainOf(r, pipe_offload ? r.pipe_offload : r.best());
    if (gain.has_value()) gains.push_back(*gain);
  }
  if (gains.empty()) {
    NotMade(&c, "none of their schedules fits");
    return c;
  }
  const int64_t halved =
      std::count_if(gains.begin(), gains.end(), [](double g) { return g >= kPaper; });
  const double median = MedianOf(gains);
  Found(&c, Origin::kComputed, median,
        absl::StrFormat("median %.1f %%, %d of %d sizes at 50 %% or more", median,
                        static_cast<int>(halved), static_cast<int>(gains.size())));
  MetIf(&c, median >= kPaper, "at least 50 %",
        absl::StrCat("the paper's is an \"up to\"; ",
                     pipe_offload ? ""
                                  : "where 1F1B's memory is there, zero-bubble schedules are at "
                                    "the bound; ",
                     "with a quarter of ", pipe_offload ? "1F1B's memory" : "it",
                     " the search finds little that is shorter than po_f; the sizes of the paper's "
                     "runs are not known"));
  return c;
}

}  // namespace

double IdleRow::best() const {
  if (catalogue < 0 || pipe_offload < 0) return std::max(catalogue, pipe_offload);
  return std::min(catalogue, pipe_offload);
}

absl::StatusOr<std::vector<IdleRow>> RunIdleTimes(const SynthesisStudySize& size) {
  std::vector<IdleRow> rows;
  for (const int P : {4, 8, 16}) {
    for (const int M : {P, 2 * P, 4 * P}) {
      for (const double memory : {0.25, 0.5, 1.0}) {
        if (P > size.idle_devices) continue;
        PIPELAB_ASSIGN_OR_RETURN(IdleRow row, RunRow(P, M, memory, size));
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

Table IdleTable(const std::vector<IdleRow>& rows) {
  Table t("idle_time", "Idle time of a device at the same memory, in forwards of a half stage");
  for (const char* key : {"devices", "micro_batches", "memory"}) t.AddKey(key);
  const auto column = [&t](const char* metric, const char* heading, const char* unit,
                           Origin origin) {
    t.AddColumn(
        {.metric = metric, .title = heading, .unit = unit, .origin = origin, .decimals = 1});
  };
  column("catalogue", "best that offloads nothing", "time units", Origin::kComputed);
  column("pipe_offload", "best of PipeOffload's", "time units", Origin::kComputed);
  column("synthesized", "synthesized", "time units", Origin::kComputed);
  column("bound", "lower bound", "time units", Origin::kComputed);
  column("less", "less than the better", "%", Origin::kComputed);
  column("solver", "search", "s", Origin::kMeasured);
  for (const IdleRow& r : rows) {
    const auto cell = [](double idle, const std::string& note) {
      return idle < 0 ? Missing("none fits") : Computed(idle).WithNote(note);
    };
    const auto gain = GainOf(r, r.best());
    t.AddRow(
        {Label(absl::StrCat(r.devices)), Label(absl::StrCat(r.micro_batches)),
         Label(absl::StrFormat("%g P", r.memory)), cell(r.catalogue, r.scheme),
         cell(r.pipe_offload, r.offload_scheme),
         cell(r.synthesized, absl::StrCat(r.placement, "; ", r.found_by,
                                          r.stopped ? "; the limit of time ended a search" : "")),
         Computed(r.bound), gain.has_value() ? Computed(*gain) : Missing("nothing to compare with"),
         Measured(r.seconds)});
  }
  return t;
}

std::vector<Claim> IdleClaims(const std::vector<IdleRow>& rows) {
  return {MostClaim(rows), MedianClaim(rows, /*pipe_offload=*/false),
          MedianClaim(rows, /*pipe_offload=*/true)};
}

}  // namespace pipelab
