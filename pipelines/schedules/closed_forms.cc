#include "pipelines/schedules/closed_forms.h"

#include <algorithm>
#include <vector>

#include "glog/logging.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Scheme, holds, makespan, bubble, in flight on device r, weights on device r.
constexpr ClosedForm kForms[] = {
    {"gpipe", "M >= 1", "3 (M + P - 1)", "(P - 1) / (M + P - 1)", "M", "1"},
    {"1f1b", "M >= 1", "3 (M + P - 1)", "(P - 1) / (M + P - 1)", "min(M, P - r)", "1"},
    {"terapipe", "M >= 1", "3 (s M + P - 1) / s", "(P - 1) / (s M + P - 1)", "s M", "1"},
    {"seq1f1b", "M >= 1", "3 (s M + P - 1) / s", "(P - 1) / (s M + P - 1)",
     "min(s M, P - r + s - 1)", "1"},
    // g in micro-batches, of at least P slices together.
    {"interleaved_seq1f1b", "V == 1", "3 (s M + P - 1) / s", "(P - 1) / (s M + P - 1)",
     "min(s M, P - r + s - 1)", "1"},
    {"interleaved_seq1f1b", "s M >= P", "3 (V s M + P - 1) / s", "(P - 1) / (V s M + P - 1)",
     "min(V s M, (V - 1) g s + 2 (P - 1 - r) + s)", "V"},
    {"zb_seq1f1b", "M >= P", "(3 s M + P - 1) / s", "(P - 1) / (3 s M + P - 1)",
     "min(s M, P + s - 1)", "1"},
    {"interleaved", "V == 1", "3 (M + P - 1)", "(P - 1) / (M + P - 1)", "min(M, P - r)", "1"},
    {"interleaved", "M >= P", "3 (V M + P - 1)", "(P - 1) / (V M + P - 1)",
     "min(V M, (V - 1) g + 2 (P - 1 - r) + 1)", "V"},
    {"interleaved", "M < P", "3 (V P + M - 1)", "1 - V M / (V P + M - 1)",
     "min(V M, (V - 1) g + 2 (P - 1 - r) + 1)", "V"},
    {"gis", "M >= P and M mod g == 0", "3 V M + 2 (P - 1) + (V - 1) (P - g)",
     "(2 (P - 1) + (V - 1) (P - g)) / T", "min(V M, (V - 1) g + P - r)", "V"},
    {"gis_h", "M >= P and M mod floor((P + 1)/2) == 0", "3 V M + 2 (P - 1) + (V - 1) floor(P/2)",
     "(2 (P - 1) + (V - 1) floor(P/2)) / T", "(V - 1) floor((P + 1)/2) + P - r", "V"},
    // With a host link of any ratio up to 1 (pipelines/cost/offload.h).
    {"po_f", "P >= 3 and V >= 2 and M >= P and M mod floor((P + 1)/2) == 0",
     "3 V M + 2 (P - 1) + (V - 1) floor(P/2)", "(2 (P - 1) + (V - 1) floor(P/2)) / T", "3", "V"},
    {"interleaved_merged", "M >= P", "3 (V M + P - 1)", "(P - 1) / (V M + P - 1)",
     "min(V M, (V - 1) g + 2 (P - r))", "V"},
    {"interleaved_merged", "M < P", "3 (V P + M - 1)", "1 - V M / (V P + M - 1)",
     "min(V M, (V - 1) g + 2 (P - r))", "V"},
    {"breadth_first", "M >= P", "3 (V M + P - 1)", "(P - 1) / (V M + P - 1)", "V M", "V"},
    {"breadth_first", "M < P", "3 (V P + M - 1)", "1 - V M / (V P + M - 1)", "V M", "V"},
    {"chimera", "f == 1 and M mod P == 0", "3 M + (P - 2) (M/P + 1)", "(P - 2) (M/P + 1) / T",
     "P/2 + 1 + min(r, P - 1 - r)", "2"},
    {"chimera", "f == 1 and M > P and M mod 2 == 0",
     "3 M + (P - 2) (floor(M/P) + 1) + 2 P - 3 - M mod P", "1 - 3 M / T",
     "P/2 + 1 + min(r, P - 1 - r)", "2"},
    {"chimera", "M mod P == 0", "3 M + (P/f - 2) (M/P + 1)", "(P/f - 2) (M/P + 1) / T",
     "P - P/(2 f) + 1 + min(r mod (P/f), P/f - 1 - r mod (P/f))", "2 f"},
    {"chimera", "M mod (2 P) == 0", "3 M + 3 (P/2 - 1)", "(P - 2) / (2 M + P - 2)",
     "3 P/2 + 1 + min(r, P - 1 - r)", "2", Concatenation::kForwardDoubling},
    {"chimera", "M mod P == 0", "6 M + 3 (P/2 - 1)", "(P - 2) / (4 M + P - 2)",
     "3 P/2 + 1 + min(r, P - 1 - r)", "2", Concatenation::kBackwardHalving},
    {"gems", "M >= 2", "M (2 P + 1) + P - 1", "(P - 1) (2 M + 1) / T", "1", "2"},
    {"zb_h1", "M >= P", "3 M + P - 1", "(P - 1) / (3 M + P - 1)", "P", "1"},
    {"zb_h1", "M < P", "2 M + 2 P - 1", "1 - 3 M / (2 M + 2 P - 1)", "M", "1"},
    {"zb_h2", "M >= P", "3 M + P - 1", "(P - 1) / (3 M + P - 1)", "min(M, 2 P - 1)", "1"},
    {"zb_h2", "M < P", "2 M + 2 P - 1", "1 - 3 M / (2 M + 2 P - 1)", "M", "1"},
    {"zb1p", "M >= P", "3 M + P - 1", "(P - 1) / (3 M + P - 1)", "P", "1"},
    {"zb2p", "M >= P", "3 M + P - 1", "(P - 1) / (3 M + P - 1)", "min(M, 2 P)", "1"},
    {"interleaved_zb1p", "M >= P", "3 V M + P - 1", "(P - 1) / (3 V M + P - 1)",
     "min(V M, (V - 1) g + P)", "V"},
    {"pipedream", "M >= P", "3 (M + P - 1)", "(P - 1) / (M + P - 1)", "P - r",
     "min(P - r, M - P + r + 2)"},
    {"pipedream_vertical_sync", "M >= P", "3 (M + P - 1)", "(P - 1) / (M + P - 1)", "P - r",
     "min(P, M - P + 2)"},
    {"pipedream_2bw", "M >= 1", "3 (M + P - 1)", "(P - 1) / (M + P - 1)", "min(M, P - r)",
     "min(M/u, 2)"},
    {"zbv", "M >= P", "6 M + P - 1", "(P - 1) / (6 M + P - 1)", "2 P", "2"},
    {"v_half", "P >= 3 and M >= P", "6 M + 6 floor((P + 1)/2) - 7", "(6 floor((P + 1)/2) - 7) / T",
     "P + 2 - P mod 2", "2"},
    {"v_min", "P >= 3 and M >= P", "6 M + 12 floor(P/3) - 1 - 6 (P mod 3 == 0)",
     "(12 floor(P/3) - 1 - 6 (P mod 3 == 0)) / T", "2 floor((P + 1)/3) + 2", "2"},
    {"dualpipe", "M >= P", "3 M + P/2 - 1", "(P/2 - 1) / (3 M + P/2 - 1)", "min(M, P + 1)", "2"},
    {"dualpipev", "M >= P", "6 M + P - 1", "(P - 1) / (6 M + P - 1)", "min(2 M, 2 P + 1)", "2"},
    {"bitpipe", "M mod P == 0", "6 M + (P - 2) (M/P + 1)", "(P - 2) (M/P + 1) / T",
     "3 P/2 + 1 + min(r, P - 1 - r)", "4"},
    {"bitpipe", "M > P", "6 M + (P - 2) (floor(M/P) + 1) + 5 P - 3 - 4 (M mod P)", "1 - 6 M / T",
     "3 P/2 + 1 + min(r, P - 1 - r)", "4"},
    {"hanayo", "M mod P == 0", "3 V M + 2 (P - 1) (M/P + 1)", "2 (P - 1) (M/P + 1) / T",
     "(V - 1) P + 1 + r", "V"},
    {"hanayo", "M > P",
     "3 V M + 2 (P - 1) (floor(M/P) + 1) + (3 V - 2) P - 3 - (3 V - 4) (M mod P)", "1 - 3 V M / T",
     "(V - 1) P + 1 + r", "V"},
    // Where hops take no time. Of the weights one stage's are the device's own, the others come by
    // hops: of each slot those in use and those that arrive.
    {"weipipe_naive", "P >= 8 and M >= 2 P", "3 M", "0", "P", "min(5, max(3, r + 2))"},
    {"weipipe", "P >= 8 and M >= 2 P", "3 M", "0", "P", "5"},
    {"weipipe_zb1", "P >= 8 and M >= 2 P", "3 M", "0", "2 P - 1 - r", "5"},
    {"weipipe_zb2", "P >= 8 and M >= 2 P", "3 M", "0", "P", "5"},
    // Without --edges: a chain.
    {"graph", "M >= 1", "3 (M + P - 1)", "(P - 1) / (M + P - 1)", "min(M, P - r)", "1"},
    {"local", "V == 1", "3 M + P - 1", "(P - 1) / (3 M + P - 1)", "1", "1"},
    {"local", "M mod P == 0", "3 V M + P - 1", "(P - 1) / (3 V M + P - 1)", "1", "V"},
    // Without --stage_micro_batches.
    {"local_replay", "M >= 1", "3 M + P - 1", "(P - 1) / (3 M + P - 1)", "1", "1"},
    {"over_time", "M >= 1", "3 M + P - 1", "(P - 1) / (3 M + P - 1)", "1", "1"},
    {"over_time_inference", "M >= 1", "M + P - 1", "(P - 1) / (M + P - 1)", "1", "1"},
    // With P groups of requests or more.
    {"decode", "M >= 1", "M + P - 1", "(P - 1) / (M + P - 1)", "1", "1"},
    {"prefill_decode", "M >= 4 P", "M + P - 1", "(P - 1) / (M + P - 1)", "1", "1"},
};

// Scheme, holds, turns, lock step, hops of weights, hops of gradients.
constexpr RingForm kRingForms[] = {
    {"weipipe_naive", "P >= 3", "2 M + P - 1", "4 M + P - 1 - M/P",
     "(3 P P - 10 P + 12) M/P + 2 (P - 2) + (P mod 2) (P - 3) (M/P - 1/2)",
     "P (2 M - P - 1) + P (P - 1)/2"},
    {"weipipe", "P >= 3 and M >= 2 P", "M + 2 P - 1", "3 (M + P - 1)",
     "2 (P - 1) (P - 2) M/P + P (P - 1) + 3 + (P mod 2) ((P - 1) M/P - (P + 1)/2)",
     "P (M - 1) + P (P - 1)/2"},
    {"weipipe_zb1", "P >= 3 and M >= 2 P", "M + 2 P - 1", "3 M + 2 (P - 1)",
     "2 (P - 1) (P - 2) M/P + P (P - 1) + 3 + (P mod 2) ((P - 1) M/P - (P + 1)/2)", "P (M - 1)"},
    {"weipipe_zb2", "P >= 3", "2 M + P", "3 M + P - 1",
     "((13 P P - 42 P + 44) M/P + P P + 10 P - 16 + "
     "(P mod 2) ((6 P - 13) M/P - 4 P + 9)) / 4",
     "P (2 M - P - 1 + floor((P - 1)/2))"},
    {"tawpipe", "g >= 2 and M >= 2 P", "M + P + P/g", "3 (M + P/g - 1)",
     "(P - 1) (2 (P - 2) M/P + 4) + (P mod 2) (M/P - 1) (P + 1 - 2 P/g)", "M P - g"},
};

}  // namespace

absl::Span<const ClosedForm> ClosedForms() { return kForms; }

absl::Span<const RingForm> RingForms() { return kRingForms; }

absl::StatusOr<FormulaValues> ValuesOf(absl::string_view scheme, SchemeParams params) {
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* found, FindScheme(scheme));
  if (params.virtual_stages == 0) params.virtual_stages = found->default_virtual_stages;
  std::vector<int> groups = {params.group_size == 0 ? params.devices : params.group_size};
  if (scheme == "interleaved_seq1f1b") {
    PIPELAB_ASSIGN_OR_RETURN(groups, SlicedGroups(params));
  } else if (scheme == "tawpipe") {
    groups = {WeightGroup(params)};
  } else if (scheme != "gis") {
    PIPELAB_ASSIGN_OR_RETURN(groups, MicroBatchGroups(params));
  }
  return FormulaValues{
      {'P', params.devices},
      {'M', params.micro_batches},
      {'V', params.virtual_stages},
      {'r', 0},
      {'g', *std::max_element(groups.begin(), groups.end())},
      {'f', params.replicas == 0 ? 1 : params.replicas / 2},
      {'s', params.slices == 0 ? kDefaultSlices : params.slices},
      {'u', params.update_interval == 0 ? params.devices : params.update_interval},
  };
}

const ClosedForm* FindClosedForm(absl::string_view scheme, const SchemeParams& params) {
  const absl::StatusOr<FormulaValues> values = ValuesOf(scheme, params);
  if (!values.ok() || params.stages.num_stages() > 0) return nullptr;
  if (!params.micro_batches_of_stage.empty() || !params.times.forward.empty()) return nullptr;
  if (scheme == "graph" && params.group_size > 1) return nullptr;
  for (const ClosedForm& form : kForms) {
    if (form.scheme != scheme || form.concatenation != params.concatenation) continue;
    const absl::StatusOr<double> holds = EvaluateFormula(form.holds, *values);
    CHECK(holds.ok()) << holds.status();
    if (*holds != 0) return &form;
  }
  return nullptr;
}

}  // namespace pipelab
