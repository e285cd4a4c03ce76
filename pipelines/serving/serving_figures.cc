#include "pipelines/serving/serving_figures.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/analysis/analysis.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// [pass] Its span at a device; InvalidArgument unless each pass has one.
absl::StatusOr<std::vector<Span>> PassesAt(const DeviceSpans& device, size_t passes) {
  constexpr int64_t kLacking = -1;
  std::vector<Span> spans(passes, Span{kLacking});
  for (const ExecutedInstruction& s : device) {
    if (s.op != OpCode::kCompute) continue;
    const auto pass = static_cast<size_t>(s.action.micro_batch);
    if (pass < passes) spans[pass] = s;
  }
  const auto lacking = std::find_if(spans.begin(), spans.end(),
                                    [](const Span& s) { return s.begin_ns == kLacking; });
  if (lacking == spans.end()) return spans;
  return absl::InvalidArgumentError(
      absl::StrCat("the trace lacks pass ", lacking - spans.begin(), " of ", passes));
}

}  // namespace

absl::StatusOr<ServingFigures> FiguresOf(const PassPlan& plan, const Program& program,
                                         const Trace& trace) {
  ServingFigures figures;
  if (plan.passes.empty()) return figures;
  if (static_cast<int>(trace.devices.size()) != plan.options.devices) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a trace of ", trace.devices.size(), " devices: the plan has ", plan.options.devices));
  }
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis analysis, Analyze(program, trace));
  const size_t passes = plan.passes.size();
  PIPELAB_ASSIGN_OR_RETURN(const auto first, PassesAt(SpansOf(program, trace, 0), passes));
  PIPELAB_ASSIGN_OR_RETURN(const auto last,
                           PassesAt(SpansOf(program, trace, trace.devices.size() - 1), passes));
  std::vector<int64_t> token_ns(plan.requests.size(), -1);  // of the last token so far
  std::vector<Nanoseconds> first_token, between, latency, queueing;
  int64_t end = 0;
  for (size_t p = 0; p < passes; ++p) {
    const Pass& pass = plan.passes[p];
    for (size_t r = 0; r < pass.runs.size(); ++r) {
      const int32_t request = pass.requests[r];
      const int64_t arrival = plan.requests[request].arrival.value();
      if (pass.runs[r].first == 0) queueing.emplace_back(first[p].begin_ns - arrival);
      if (!pass.runs[r].predicts) continue;
      int64_t& before = token_ns[request];
      const int64_t now = last[p].end_ns;
      if (before < 0) {
        first_token.emplace_back(now - arrival);
      } else {
        between.emplace_back(now - before);
      }
      before = now;
      end = std::max(end, now);
      ++figures.tokens;
    }
  }
  for (size_t i = 0; i < token_ns.size(); ++i) {
    latency.push_back(Nanoseconds(token_ns[i]) - plan.requests[i].arrival);
  }
  const Nanoseconds whole = Nanoseconds(end) - plan.requests.front().arrival;
  figures.tokens_per_second = static_cast<double>(figures.tokens) / ToSeconds(whole);
  figures.first_token = SharesOf(std::move(first_token));
  figures.between_tokens = SharesOf(std::move(between));
  figures.latency = SharesOf(std::move(latency));
  figures.queueing = SharesOf(std::move(queueing));
  figures.device_use = 1 - analysis.overall.bubble;
  return figures;
}

}  // namespace pipelab
