// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. Plans and configurations as users write them: a plan that is read can be checked and
// written, a configuration and a layout are written and read again.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/planners/plan_json.h"
#include "pipelines/planners/plan_problem.h"
#include "pipelines/step/step_config.h"

namespace {

pipelab::PlanProblem MakeProblem() {
  pipelab::PlanProblem p;
  for (int v = 0; v < 4; ++v) {
    pipelab::PlanOperator o;
    o.id = std::to_string(v);
    for (const int degree : {1, 2}) {
      pipelab::PlanVariant plain, again;
      plain.name = "vanilla";
      plain.time = 3.0 / degree;
      plain.forward_time = 1.0 / degree;
      plain.parameter_bytes = 5;
      plain.in_flight_bytes = 2;
      again = plain;
      again.name = "recompute";
      again.recompute = true;
      again.time = 4.0 / degree;
      o.variants[degree] = {plain, again};
    }
    p.operators.push_back(o);
  }
  p.edges = {{0, 1, 8}, {0, 2, 8}, {1, 3, 8}, {2, 3, 8}};
  p.integer_ids = true;
  p.devices = 8;
  p.micro_batches = 16;
  p.bandwidth = 4;
  CHECK_EQ(pipelab::FinishProblem(&p, "fuzz").message(), "");
  return p;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const problem = new pipelab::PlanProblem(MakeProblem());
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = pipelab::ParsePlan(text, "fuzz", *problem);
  if (plan.ok() && !plan->stages.empty()) {
    if (pipelab::CheckPlan(*problem, *plan).ok()) (void)pipelab::PlanToJson(*plan, *problem);
  }
  const auto config = pipelab::ParseStepConfig("--fuzz", text);
  if (config.ok()) {
    const std::string written = config->ToString();
    const auto again = pipelab::ParseStepConfig("--fuzz", written);
    if (!again.ok() || again->ToString() != written) __builtin_trap();
  }
  constexpr int kLayers = 12;
  const auto first = pipelab::ParseLayout(text, kLayers);
  if (first.ok() && (first->empty() || first->front() != 0 || first->back() >= kLayers)) {
    __builtin_trap();
  }
  const auto stages = pipelab::ParseStages(text, kLayers);
  if (!stages.ok()) return 0;
  if (stages->size() != kLayers) __builtin_trap();
  for (const int stage : *stages) {
    if (stage < 0 || stage >= kLayers) __builtin_trap();
  }
  return 0;
}
