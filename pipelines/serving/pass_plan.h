// Which tokens of which requests each pass of a pipeline computes: continuous batching (Yu et al.,
// "Orca", OSDI 2022) with prompts in chunks (Agrawal et al., "Sarathi-Serve", OSDI 2024).
//
//   ServingOptions options;  options.devices = 4;  options.groups = 4;  options.slots = 8;
//   PIPELAB_ASSIGN_OR_RETURN(PassPlan plan, PlanPasses(requests, options, times));
//   plan.passes[7].runs                // one for each request of the pass
//   PassSchedule(plan)                 // the same as a schedule: a pass is a micro-batch
//
// Requests share `groups` groups of `slots` cache slots. A request gets a free slot in the order of
// arrival, keeps it until its last token, and the next one takes its place in the next pass of the
// group: nobody waits for the longest of a batch. A pass has, of each request in its group, a chunk
// of the prompt or the last token; the last stage's tokens go to the first stage, to the group's
// next pass. With as many groups as stages every stage always has a pass to work on.
//
// The plan is by time, and times are the recurrence of stages in order: a pass begins at stage 0
// when the stage is free, its tokens are there and its requests have arrived, and at stage s when
// the stage is free and the message is there. That is what Simulate makes of PassSchedule, to the
// nanosecond, where no two links share a resource. The next pass is of the group that can begin
// first; of several, round robin. A request that waits goes to the group with the fewest, as soon
// as one has a free slot. Passes of prompts alone take no tokens and follow one another at once.
// O(passes x slots) and, with chunks, some trial passes for each that has a prompt.
#ifndef PIPELAB_PIPELINES_SERVING_PASS_PLAN_H_
#define PIPELAB_PIPELINES_SERVING_PASS_PLAN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/token_run.h"
#include "pipelines/ir/schedule.h"
#include "tools/base/units.h"

namespace pipelab {

struct Request {
  Nanoseconds arrival;
  int64_t prompt = 1;  // tokens
  int64_t output = 1;  // tokens that it asks for
};

struct ServingOptions {
  int devices = 1;  // stages
  int groups = 1;
  int slots = 1;             // of a group
  int64_t cache_tokens = 0;  // of a slot: a request's prompt and output, less its last token
  int64_t context = 0;       // tokens that the model takes of a prompt and its output; 0: any
  // Tokens of prompts that a pass takes at most; 0: whole prompts. Chunks shrink as what comes
  // before them grows, so that a pass takes no longer than one whose chunk begins a prompt.
  int64_t chunk = 0;
  // A free slot takes the next request at once. Else, once a group's passes have begun, it takes
  // none until all of its are done (static batching).
  bool continuous = true;
};

struct Pass {
  int group = 0;
  // The pass before of the group, whose tokens this one begins with; -1: it takes none.
  int32_t source = -1;
  Nanoseconds release;                    // no earlier: a request of it arrives then
  std::vector<TokenRun> runs;             // slots are the group's
  std::vector<int32_t> requests;          // [run] Whose tokens these are
  std::vector<Nanoseconds> begins, ends;  // [stage]
};

struct PassPlan {
  ServingOptions options;
  std::vector<Request> requests;
  std::vector<Pass> passes;  // in the order in which each stage computes them
};

// What a stage takes for a pass: not less for more tokens. And for how long its message to the next
// stage (the last stage's tokens to the first) has the link between the two, which then takes the
// latency more.
struct ServingTimes {
  std::function<Nanoseconds(int stage, const std::vector<TokenRun>& runs)> compute;
  std::function<Nanoseconds(int stage, const std::vector<TokenRun>& runs)> transfer;
  Nanoseconds latency;

  // Every pass takes 1 ns at a stage: where all requests are there at the start, times decide
  // nothing.
  static ServingTimes Unit();
};

// InvalidArgument names the request that the cache or the model's context has no room for, and
// options below 1. `requests` in the order of arrival.
absl::StatusOr<PassPlan> PlanPasses(std::vector<Request> requests, const ServingOptions& options,
                                    const ServingTimes& times);

// A pass is a micro-batch of forwards alone; the edge from the last stage to the first carries
// tokens (Schedule::carried).
Schedule PassSchedule(const PassPlan& plan);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_PASS_PLAN_H_
