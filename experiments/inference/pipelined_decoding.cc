// tools/bazel run //experiments:pipelined_decoding
//
// Pipelines that serve: token by token over stages, with caches, continuous batching and prompts in
// chunks. Simulated for a large model on a cluster's devices, and decoded for real on the devices
// here, with the tokens of serial decoding.
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "experiments/flags/option_checks.h"
#include "experiments/inference/decode_times.h"
#include "experiments/inference/serving_study.h"
#include "experiments/report/report.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "pipelines/serving/request_file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace pipelined_decoding_study {

STUDY_FLAG(int, requests, 256, "requests that are served, on paper");
STUDY_FLAG(std::string, requests_file, "",
           "requests that arrive, a CSV file with columns arrival,prompt,output (docs/serving.md); "
           "empty: at random");
STUDY_FLAG(int, rounds, 5, "rounds of decoding here, of which the median counts; 0: none");

absl::Status Run(StudyRun* study) {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--requests", absl::GetFlag(FLAGS_requests), 1, 1'000'000));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--rounds", absl::GetFlag(FLAGS_rounds), 0, 1000));
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  ServingSize serving;
  serving.requests = absl::GetFlag(FLAGS_requests);
  if (const std::string file = absl::GetFlag(FLAGS_requests_file); !file.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(serving.given, ReadRequests("--requests_file", file));
  }
  PIPELAB_ASSIGN_OR_RETURN(const ServingStudy served, SimulateServing(serving));
  DecodeSize decoding;
  decoding.rounds = absl::GetFlag(FLAGS_rounds);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<DecodeRun> runs, MeasureDecoding(decoding));
  Report& report = study->report();
  for (Table& table : ServingTables(served)) report.AddTable(std::move(table));
  if (!runs.empty()) report.AddTable(DecodeTable(decoding, runs));
  for (Claim& claim : ServingClaims(served)) report.AddClaim(std::move(claim));
  for (Claim& claim : DecodeClaims(runs, "--rounds=5 makes it")) report.AddClaim(std::move(claim));
  report.AddNote(
      "MARLIN's authors report up to about 2.8 times the tokens a second in vLLM with 4-bit "
      "weights (arXiv 2408.11743, recalled), on GPUs whose memory is slower for their flops.");
  return absl::OkStatus();
}

}  // namespace pipelined_decoding_study

int RunPipelinedDecodingStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "pipelined_decoding";
  info.title = "Pipelines that decode";
  info.summary =
      "Token-by-token decoding over stages: device use, latencies, continuous batching, prompts in "
      "chunks and 4-bit weights on paper, and a GPT decoded here over one, two and four devices.";
  info.quick = {{"rounds", "0"}, {"requests", "64"}};
  info.quick_leaves_out = "all that is measured";
  return RunStudyMain(argc, argv, info, pipelined_decoding_study::Run);
}

}  // namespace pipelab
