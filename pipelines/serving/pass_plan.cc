#include "pipelines/serving/pass_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/schedules/token_passes.h"
#include "pipelines/serving/pass_clock.h"
#include "pipelines/serving/request_group.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr Nanoseconds kNever(std::numeric_limits<int64_t>::max());

absl::Status CheckOptions(const ServingOptions& options) {
  const std::pair<const char*, int64_t> least_one[] = {
      {"--devices", options.devices}, {"--groups", options.groups}, {"--slots", options.slots}};
  for (const auto& [flag, value] : least_one) {
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(flag, "=", value, ": must be at least 1"));
    }
  }
  if (options.chunk >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--chunk=", options.chunk, ": must be at least 0, which is whole prompts"));
}

absl::Status CheckRequests(const std::vector<Request>& requests, const ServingOptions& options) {
  const auto wrong = [](size_t i, const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("request ", i, ": ", what...));
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& r = requests[i];
    if (r.prompt < 1 || r.output < 1) {
      return wrong(i, "a prompt of ", r.prompt, " and an output of ", r.output,
                   " tokens: both must be at least 1");
    }
    if (r.arrival < (i == 0 ? Nanoseconds(0) : requests[i - 1].arrival)) {
      return wrong(i, "arrives at ", r.arrival.value(),
                   " ns: must not be before 0 or the request before");
    }
    const int64_t needed = r.prompt + r.output - 1;
    if (options.context > 0 && r.prompt > options.context) {
      return wrong(i, "a prompt of ", r.prompt, " tokens: the model's context has ",
                   options.context);
    }
    if (options.context > 0 && needed > options.context) {
      return wrong(i, "a prompt of ", r.prompt, " and an output of ", r.output, " tokens need ",
                   needed, " of context: the model's has ", options.context);
    }
    if (needed > options.cache_tokens) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--cache=", options.cache_tokens, ": request ", i, " needs ", needed, " (a prompt of ",
          r.prompt, ", an output of ", r.output, " less its last token)"));
    }
  }
  return absl::OkStatus();
}

class Planner {
 public:
  Planner(PassPlan* plan, const ServingTimes* times)
      : plan_(*plan),
        clock_(plan->options.devices, times),
        chunks_(plan->options, times),
        groups_(plan->options.groups, RequestGroup(&plan->requests, plan->options)) {}

  void Run() {
    for (;;) {
      Nanoseconds at;
      int next = NextGroup(&at);
      while (Admit(at)) next = NextGroup(&at);
      if (next < 0) return;
      Issue(next, at);
    }
  }

 private:
  // The group that can begin first, and when; -1: none has work.
  int NextGroup(Nanoseconds* at) const {
    const int count = static_cast<int>(groups_.size());
    int best = -1;
    *at = kNever;
    for (int i = 1; i <= count; ++i) {
      const int g = (last_ + i) % count;
      if (groups_[g].empty()) continue;
      const Nanoseconds begin = std::max(clock_.free(), groups_[g].Ready());
      if (begin >= *at) continue;
      *at = begin;
      best = g;
    }
    return best;
  }

  // The next request, if it is there before a pass begins at that time and finds a slot: in the
  // group with the fewest, of several in the one whose turn comes first.
  bool Admit(Nanoseconds at) {
    if (arrived_ == plan_.requests.size() || plan_.requests[arrived_].arrival > at) return false;
    const int count = static_cast<int>(groups_.size());
    RequestGroup* fewest = nullptr;
    for (int i = 1; i <= count; ++i) {
      RequestGroup* group = &groups_[(last_ + i) % count];
      if (group->open() && (fewest == nullptr || group->size() < fewest->size())) fewest = group;
    }
    if (fewest == nullptr) return false;
    fewest->Admit(static_cast<int32_t>(arrived_++));
    return true;
  }

  void Issue(int g, Nanoseconds at) {
    Pass pass;
    pass.group = g;
    const bool taken = groups_[g].MakePass(chunks_, &pass);
    groups_[g].Issued(static_cast<int32_t>(plan_.passes.size()), clock_.Add(at, taken, &pass));
    plan_.passes.push_back(std::move(pass));
    last_ = g;
  }

  PassPlan& plan_;
  PassClock clock_;
  const PromptChunks chunks_;
  std::vector<RequestGroup> groups_;
  size_t arrived_ = 0;  // requests with a slot, or done
  int last_ = -1;       // group of the last pass
};

}  // namespace

ServingTimes ServingTimes::Unit() {
  ServingTimes times;
  times.compute = [](int, const std::vector<TokenRun>&) { return Nanoseconds(1); };
  times.transfer = [](int, const std::vector<TokenRun>&) { return Nanoseconds(0); };
  return times;
}

absl::StatusOr<PassPlan> PlanPasses(std::vector<Request> requests, const ServingOptions& options,
                                    const ServingTimes& times) {
  PIPELAB_RETURN_IF_ERROR(CheckOptions(options));
  PIPELAB_RETURN_IF_ERROR(CheckRequests(requests, options));
  PassPlan plan;
  plan.options = options;
  plan.requests = std::move(requests);
  Planner(&plan, &times).Run();
  return plan;
}

Schedule PassSchedule(const PassPlan& plan) {
  std::vector<int32_t> carried;
  for (const Pass& pass : plan.passes) carried.push_back(pass.source);
  Schedule schedule = TokenPasses(plan.options.devices, std::move(carried));
  schedule.name = plan.options.chunk > 0 ? "prefill_decode" : "decode";  // schedules/decode.cc
  return schedule;
}

}  // namespace pipelab
