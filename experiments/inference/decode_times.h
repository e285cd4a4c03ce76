// Decoding for real: a GPT over one, two and four devices of this machine, tokens beside those of
// serial decoding.
//
//   PIPELAB_ASSIGN_OR_RETURN(const DecodeRuns runs, MeasureDecoding(size));
//   report.AddTable(DecodeTable(runs));
#ifndef PIPELAB_EXPERIMENTS_INFERENCE_DECODE_TIMES_H_
#define PIPELAB_EXPERIMENTS_INFERENCE_DECODE_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct DecodeSize {
  int64_t layers = 8, hidden = 512;  // of the GPT
  int64_t prompt = 32, output = 64;  // of each request
  int requests = 16, slots = 4;      // slots of a group
  int rounds = 5;                    // of which the median counts; 0: measure nothing
};

struct DecodeRun {
  int devices = 1, groups = 1, slots = 1;
  bool same_tokens = false;  // as one request after the other on one device
  double tokens_per_second = 0;
  double over_one_device = 0;  // median of the rounds' ratios to one device with as many groups
};

// One device, two and four, a group each at least; each round runs all of them.
absl::StatusOr<std::vector<DecodeRun>> MeasureDecoding(const DecodeSize& size);
Table DecodeTable(const DecodeSize& size, const std::vector<DecodeRun>& runs);
// Not made where there are no runs, with `why_not`.
std::vector<Claim> DecodeClaims(const std::vector<DecodeRun>& runs, const std::string& why_not);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_INFERENCE_DECODE_TIMES_H_
