// tools/bazel run //experiments:int4_inference
//
// Products with weights in 4 bits: MARLIN's published speed-ups (arXiv 2408.11743) beside the law
// that the cost model prices, and the same law on a core here, where our kernels are held to it.
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/inference/int4_law.h"
#include "experiments/inference/int4_times.h"
#include "experiments/report/report.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace int4_inference_study {

STUDY_FLAG(int64_t, rows, 8192, "rows of the measured matrix (K); 0: measure nothing");
STUDY_FLAG(int64_t, columns, 10240, "its columns (N)");
STUDY_FLAG(int64_t, group, 128, "rows with one scale: 32, 64, 128 or all");

absl::Status CheckFlags() {
  const int64_t rows = absl::GetFlag(FLAGS_rows), columns = absl::GetFlag(FLAGS_columns);
  const int64_t group = absl::GetFlag(FLAGS_group);
  if (rows < 0)
    return absl::InvalidArgumentError(absl::StrCat("--rows=", rows, ": must be at least 0"));
  if (columns < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--columns=", columns, ": must be at least 1"));
  }
  if (rows > 0 && group != 32 && group != 64 && group != 128 && group != rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("--group=", group, ": must be 32, 64, 128 or all ", rows, " rows"));
  }
  return absl::OkStatus();
}

absl::Status Run(StudyRun* study) {
  PIPELAB_RETURN_IF_ERROR(CheckFlags());
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  PIPELAB_ASSIGN_OR_RETURN(const Int4Charts charts, PublishedInt4Charts());
  std::vector<Claim> claims = Int4LawClaims(charts);
  for (Table& table : Int4LawTables(charts)) report.AddTable(std::move(table));
  std::vector<Int4Time> times;
  const Int4Shape shape{absl::GetFlag(FLAGS_rows), absl::GetFlag(FLAGS_columns),
                        absl::GetFlag(FLAGS_group)};
  if (shape.k > 0) times = MeasureInt4(shape, {1, 2, 4, 8, 16, 32, 64, 128});
  const char* why_not = "";
  if (!times.empty()) {
    report.AddTable(Int4TimeTable(shape, times));
  } else if (shape.k == 0) {
    why_not = "--rows=8192 makes it";
  } else {
    why_not = "the processor has neither AVX-512 nor AVX2";
  }
  Int4Curves curves = Int4LawCurves(charts);
  AddInt4TimeCurves(times, &curves);
  report.AddCurves("Roofline of products with weights in 4 bits", "batch", "share of the peak [%]",
                   std::move(curves.shares), /*doubling=*/true);
  report.AddCurves("Speed-up over whole weights", "batch", "over fp16 (A10), float32 (here) [x]",
                   std::move(curves.speed_ups), /*doubling=*/true);
  for (Claim& claim : Int4TimeClaims(times, why_not)) claims.push_back(std::move(claim));
  for (Claim& claim : claims) report.AddClaim(std::move(claim));
  report.AddNote(
      "What 4 bits cost in quality is judged where a network is trained: //experiments:gpt_train, "
      "claim gpt_train.int4_perplexity.");
  return absl::OkStatus();
}

}  // namespace int4_inference_study

int RunInt4InferenceStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "int4_inference";
  info.title = "Weights in 4 bits";
  info.summary =
      "Products with 4-bit weights: published speed-ups beside the law of bytes and flops, and our "
      "kernels beside their limit on one core.";
  info.quick = {{"rows", "0"}};
  info.quick_leaves_out = "all that is measured";
  return RunStudyMain(argc, argv, info, int4_inference_study::Run);
}

}  // namespace pipelab
