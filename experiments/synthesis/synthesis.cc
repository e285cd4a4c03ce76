// tools/bazel run //experiments:synthesis
//
// Synthesized schedules against the catalogue, their bounds, and on four devices here.
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "experiments/flags/option_checks.h"
#include "experiments/report/report.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "experiments/synthesis/idle_time.h"
#include "experiments/synthesis/real_order.h"
#include "experiments/synthesis/synthesis_study.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(int, most_devices, 16, "of the grid of equal times");
STUDY_FLAG(int, cases, 20, "unequal cases, at most 20");
STUDY_FLAG(int, rounds, 6, "of beams, for each problem");
STUDY_FLAG(int, widest, 256, "beam");
STUDY_FLAG(int64_t, exact_nodes, 1 << 21, "of an exact search");
STUDY_FLAG(int, case_limit_s, 60, "seconds for an unequal case");
STUDY_FLAG(int, idle_devices, 16, "of the grid of idle times: 4, 8 or 16");
STUDY_FLAG(int, idle_rounds, 12, "of beams, for each problem of that grid");
STUDY_FLAG(int, idle_limit_s, 60, "seconds for a problem of that grid");
STUDY_FLAG(bool, large, true, "P = 32, M = 128, too");

absl::Status Run(StudyRun* study) {
  SynthesisStudySize size;
  size.most_devices = absl::GetFlag(FLAGS_most_devices);
  size.cases = absl::GetFlag(FLAGS_cases);
  size.rounds = absl::GetFlag(FLAGS_rounds);
  size.widest = absl::GetFlag(FLAGS_widest);
  size.exact_nodes = absl::GetFlag(FLAGS_exact_nodes);
  size.unequal_limit_s = absl::GetFlag(FLAGS_case_limit_s);
  size.idle_devices = absl::GetFlag(FLAGS_idle_devices);
  size.idle_rounds = absl::GetFlag(FLAGS_idle_rounds);
  size.idle_limit_s = absl::GetFlag(FLAGS_idle_limit_s);
  size.large = absl::GetFlag(FLAGS_large);
  PIPELAB_RETURN_IF_ERROR(CheckRange("--most_devices", size.most_devices, 2, 64));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--cases", size.cases, 1, 20));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--rounds", size.rounds, 0, 10000));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--exact_nodes", size.exact_nodes, 0, 1 << 26));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--case_limit_s", absl::GetFlag(FLAGS_case_limit_s), 1, 3600));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--idle_devices", size.idle_devices, 4, 16));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--idle_rounds", size.idle_rounds, 0, 10000));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--idle_limit_s", absl::GetFlag(FLAGS_idle_limit_s), 1, 3600));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--widest", size.widest, 1, 100000));
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  PIPELAB_ASSIGN_OR_RETURN(const SynthesisStudy found, RunSynthesisStudy(size));
  for (Table& table : SynthesisTables(found)) study->report().AddTable(std::move(table));
  for (Claim& claim : SynthesisClaims(found)) study->report().AddClaim(std::move(claim));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<IdleRow> idle, RunIdleTimes(size));
  study->report().AddTable(IdleTable(idle));
  for (Claim& claim : IdleClaims(idle)) study->report().AddClaim(std::move(claim));
  PIPELAB_ASSIGN_OR_RETURN(const RealOrder real, RunRealOrder(/*steps=*/12));
  study->report().AddTable(RealOrderTable(real));
  study->report().AddClaim(RealOrderClaim(real));
  return absl::OkStatus();
}

}  // namespace

int RunSynthesisStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "synthesis";
  info.title = "Synthesized schedules";
  info.summary =
      "The best order for given times and memory: against the catalogue, against lower bounds, for "
      "models with unequal stages or devices, in idle time at the same memory, and run on four "
      "devices here.";
  info.quick = {{"rounds", "1"},
                {"widest", "8"},
                {"case_limit_s", "15"},
                {"exact_nodes", "100000"},
                {"idle_rounds", "4"}};
  info.quick_leaves_out = "wide beams and long exact searches";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
