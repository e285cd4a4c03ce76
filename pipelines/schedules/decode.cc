// Token-by-token decoding over P stages, of R groups of requests that take turns. A micro-batch is
// a pass: the last token of each request of a group, of which the last stage makes the next one.
// The next pass of the group begins with these, so an edge carries them from the last stage to the
// first. With unit passes and R >= P every stage works from its first pass to its last: M passes
// take M + P - 1. With fewer groups a pass waits for its tokens: the first stage begins a round of
// R passes every P.
//
// prefill_decode begins with the prompts, each group's in chunks that follow one another at once
// (Agrawal et al., "Sarathi-Serve", OSDI 2024): only a prompt's last chunk makes a token. The
// chunks' lengths are no part of a schedule (pipelines/serving makes them).
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/schedules/token_passes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

int Groups(const SchemeParams& params) {
  return params.group_size > 0 ? params.group_size : params.devices;
}

// Chunks of a prompt; by default no more than there is room for.
int Chunks(const SchemeParams& params) {
  return params.slices > 0 ? params.slices : std::min(kDefaultSlices, params.micro_batches);
}

int GroupsWithPrompts(const SchemeParams& params) {
  if (params.group_size > 0) return params.group_size;
  return std::max(1, std::min(params.devices, params.micro_batches / Chunks(params)));
}

absl::Status CheckForwards(const SchemeParams& params) {
  if (params.recompute) {
    return absl::InvalidArgumentError("--recompute=full: there are no backwards to recompute for");
  }
  if (params.data_parallel > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data_parallel=", params.data_parallel,
                     ": a group's tokens come from one device; use --data_parallel=1"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDecode(const SchemeParams& params) { return CheckForwards(params); }

absl::StatusOr<Schedule> MakeDecode(const SchemeParams& params) {
  std::vector<int32_t> carried;
  const int groups = Groups(params);
  for (int m = 0; m < params.micro_batches; ++m) carried.push_back(m < groups ? -1 : m - groups);
  return TokenPasses(params.devices, std::move(carried));
}

absl::Status CheckPrefillDecode(const SchemeParams& params) {
  PIPELAB_RETURN_IF_ERROR(CheckForwards(params));
  const int64_t prompts = int64_t{GroupsWithPrompts(params)} * Chunks(params);
  if (params.micro_batches >= prompts) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--micro_batches=", params.micro_batches, ": the prompts of ", GroupsWithPrompts(params),
      " groups alone are ", prompts, " passes (--slices=", Chunks(params), ")"));
}

absl::StatusOr<Schedule> MakePrefillDecode(const SchemeParams& params) {
  std::vector<int32_t> carried;
  const int groups = GroupsWithPrompts(params), chunks = Chunks(params);
  for (int m = 0; m < params.micro_batches; ++m) {
    const int token = m - groups * chunks;  // in turn, of group token % groups
    const int last_chunk = (token + 1) * chunks - 1;
    carried.push_back(token < 0 ? -1 : token < groups ? last_chunk : m - groups);
  }
  return TokenPasses(params.devices, std::move(carried));
}

}  // namespace pipelab
