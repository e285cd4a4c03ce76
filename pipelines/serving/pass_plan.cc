#include "pipelines/serving/pass_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status Check(const std::vector<Request>& requests, const ServingOptions& o) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"--devices", o.devices}, {"--groups", o.groups}, {"--slots", o.slots}};
  for (const auto& [flag, value] : sizes) {
    if (value >= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, "=", value, ": must be at least 1"));
  }
  if (o.chunk < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--chunk=", o.chunk, ": must be at least 0"));
  }
  for (size_t r = 0; r < requests.size(); ++r) {
    const Request& request = requests[r];
    if (request.prompt < 1 || request.output < 1) {
      return absl::InvalidArgumentError(absl::StrCat("request ", r, ": ", request.prompt,
                                                     " tokens and ", request.output,
                                                     " to generate; both must be at least 1"));
    }
    if (r > 0 && request.arrival < requests[r - 1].arrival) {
      return absl::InvalidArgumentError(
          absl::StrCat("request ", r, ": it arrives before the one in front of it"));
    }
    // The last token is not looked at again.
    const int64_t tokens = request.prompt + request.output - 1;
    if (tokens <= o.cache_tokens) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "request ", r, ": a prompt of ", request.prompt, " tokens and ", request.output,
        " to generate need a cache of ", tokens, "; --cache=", o.cache_tokens));
  }
  return absl::OkStatus();
}

class Planner {
 public:
  Planner(std::vector<Request> requests, const ServingOptions& options, const ServingTimes& times)
      : times_(times),
        groups_(options.groups),
        done_(requests.size(), 0),
        stage_free_(options.devices),
        link_free_(options.devices) {
    plan_.options = options;
    plan_.requests = std::move(requests);
    for (Group& group : groups_) group.slots.resize(options.slots, kFree);
    if (options.chunk > 0) longest_ = SlowestStage({{0, 0, options.chunk, true}});
  }

  PassPlan Make() && {
    for (int g = NextGroup(); g >= 0; g = NextGroup()) {
      Pass pass = MakePass(g);
      Run(&pass);
      groups_[g].newest = static_cast<int32_t>(plan_.passes.size());
      plan_.passes.push_back(std::move(pass));
      next_ = (g + 1) % static_cast<int>(groups_.size());
    }
    return std::move(plan_);
  }

 private:
  static constexpr int kFree = -1;

  struct Group {
    std::vector<int> slots;  // request, or kFree
    int32_t newest = -1;     // pass
    Nanoseconds tokens;      // when those of its newest pass are back at the first stage
  };

  const Request& At(int r) const { return plan_.requests[r]; }
  bool Decodes(int r) const { return done_[r] >= At(r).prompt; }

  static bool IsEmpty(const Group& group) {
    return std::all_of(group.slots.begin(), group.slots.end(), [](int r) { return r == kFree; });
  }

  // When a pass of the group could begin; -1: it has nothing to do.
  int64_t EarliestOf(const Group& group) const {
    bool active = false, decodes = false, room = false;  // room that a request may take
    for (const int r : group.slots) {
      active |= r != kFree;
      decodes |= r != kFree && Decodes(r);
      room |= r == kFree;
    }
    int64_t begin = stage_free_[0].value();
    if (decodes) return std::max(begin, group.tokens.value());
    if (active) return begin;
    if (!room || waiting_ == plan_.requests.size()) return -1;
    return std::max(begin, At(static_cast<int>(waiting_)).arrival.value());
  }

  // The group whose pass can begin first, of several the next in turn; -1: all is done.
  int NextGroup() const {
    int best = -1;
    int64_t earliest = 0;
    const int count = static_cast<int>(groups_.size());
    for (int i = 0; i < count; ++i) {
      const int g = (next_ + i) % count;
      const int64_t begin = EarliestOf(groups_[g]);
      if (begin < 0 || (best >= 0 && begin >= earliest)) continue;
      best = g;
      earliest = begin;
    }
    return best;
  }

  Nanoseconds SlowestStage(const std::vector<TokenRun>& runs) const {
    Nanoseconds slowest;
    for (int s = 0; s < plan_.options.devices; ++s) {
      slowest = std::max(slowest, times_.compute(s, runs));
    }
    return slowest;
  }

  // The longest next chunk of a prompt with which the pass takes no longer than one that begins a
  // prompt; 0: not even one token fits behind what the pass has.
  int64_t ChunkOf(int r, TokenRun run, std::vector<TokenRun> runs) const {
    const int64_t left = At(r).prompt - done_[r];
    if (plan_.options.chunk == 0) return left;
    const auto fits = [&](int64_t count) {
      run.count = count;
      runs.push_back(run);
      const bool within = SlowestStage(runs) <= longest_;
      runs.pop_back();
      return within;
    };
    int64_t most = std::min(left, plan_.options.chunk), least = 0;
    while (least < most) {
      const int64_t middle = (least + most + 1) / 2;
      fits(middle) ? least = middle : most = middle - 1;
    }
    return least == 0 && runs.empty() ? 1 : least;
  }

  Pass MakePass(int g) {
    Group& group = groups_[g];
    Pass pass;
    pass.group = g;
    const Nanoseconds begin(EarliestOf(group));
    const bool admits = plan_.options.continuous || IsEmpty(group);
    for (size_t slot = 0; slot < group.slots.size(); ++slot) {
      int& r = group.slots[slot];
      if (r == kFree && admits && waiting_ < plan_.requests.size() &&
          At(static_cast<int>(waiting_)).arrival <= begin) {
        r = static_cast<int>(waiting_++);
        pass.release = std::max(pass.release, At(r).arrival);
      }
      if (r != kFree && Decodes(r)) pass.source = group.newest;
    }
    // Who waits for a token does so in every pass; prompts share what is left.
    for (const bool prompts : {false, true}) {
      for (size_t slot = 0; slot < group.slots.size(); ++slot) {
        const int r = group.slots[slot];
        if (r == kFree || Decodes(r) == prompts) continue;
        TokenRun run = {static_cast<int32_t>(slot), done_[r], 1, true};
        if (prompts) run.count = ChunkOf(r, run, pass.runs);
        if (run.count == 0) continue;
        run.predicts = run.end() >= At(r).prompt;
        pass.runs.push_back(run);
        pass.requests.push_back(r);
      }
    }
    for (size_t i = 0; i < pass.runs.size(); ++i) {
      const int r = pass.requests[i];
      done_[r] = pass.runs[i].end();
      if (done_[r] == At(r).prompt + At(r).output - 1) group.slots[pass.runs[i].slot] = kFree;
    }
    return pass;
  }

  // Through all stages; a link carries one message at a time.
  void Run(Pass* pass) {
    const int devices = plan_.options.devices;
    Nanoseconds there = pass->release;
    if (pass->source >= 0) there = std::max(there, groups_[pass->group].tokens);
    for (int s = 0; s < devices; ++s) {
      const Nanoseconds begin = std::max(stage_free_[s], there);
      if (s == 0) pass->begin = begin;
      stage_free_[s] = pass->end = there = begin + times_.compute(s, pass->runs);
      if (devices == 1) break;
      link_free_[s] = std::max(stage_free_[s], link_free_[s]) + times_.transfer(s, pass->runs);
      there = link_free_[s] + times_.latency;
    }
    groups_[pass->group].tokens = there;
  }

  const ServingTimes& times_;
  PassPlan plan_;
  std::vector<Group> groups_;
  std::vector<int64_t> done_;                        // [request] tokens in the cache
  size_t waiting_ = 0;                               // the first request that has had no slot
  int next_ = 0;                                     // group
  Nanoseconds longest_;                              // a pass with chunks
  std::vector<Nanoseconds> stage_free_, link_free_;  // [stage]
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
  PIPELAB_RETURN_IF_ERROR(Check(requests, options));
  return Planner(std::move(requests), options, times).Make();
}

}  // namespace pipelab
