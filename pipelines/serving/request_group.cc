#include "pipelines/serving/request_group.h"

#include <algorithm>
#include <limits>

namespace pipelab {

PromptChunks::PromptChunks(const ServingOptions& options, const ServingTimes* times)
    : times_(times), most_(options.chunk) {
  if (options.chunk == 0) {
    most_ = std::numeric_limits<int64_t>::max();
    return;
  }
  const std::vector<TokenRun> first = {{/*slot=*/0, /*first=*/0, options.chunk, true}};
  for (int s = 0; s < options.devices; ++s) limits_.push_back(times->compute(s, first));
}

bool PromptChunks::Fits(const std::vector<TokenRun>& runs) const {
  for (size_t s = 0; s < limits_.size(); ++s) {
    if (times_->compute(static_cast<int>(s), runs) > limits_[s]) return false;
  }
  return true;
}

int64_t PromptChunks::Largest(std::vector<TokenRun> others, TokenRun run, int64_t prompt,
                              int64_t count) const {
  others.push_back(run);
  const auto fits = [&](int64_t tokens) {
    others.back().count = tokens;
    others.back().predicts = others.back().end() == prompt;
    return Fits(others);
  };
  if (fits(count)) return count;
  int64_t good = 0, bad = count;
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

RequestGroup::RequestGroup(const std::vector<Request>* requests, const ServingOptions& options)
    : requests_(requests), continuous_(options.continuous) {
  for (int slot = options.slots - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

Nanoseconds RequestGroup::Ready() const {
  for (const Member& m : members_) {
    if (m.predicted) return tokens_at_;
  }
  return RequestOf(members_.front()).arrival;
}

void RequestGroup::Admit(int32_t request) {
  members_.push_back({request, free_slots_.back()});
  free_slots_.pop_back();
}

bool RequestGroup::MakePass(const PromptChunks& chunks, Pass* pass) {
  started_ = true;
  for (Member& m : members_) {
    if (!m.predicted) continue;
    pass->source = last_pass_;
    Add(&m, 1, pass);
  }
  AddPrompts(chunks, pass);
  return RemoveFinished();
}

// A pass has a token of a prompt at least, if one waits: else those that decode could keep it out
// for ever.
void RequestGroup::AddPrompts(const PromptChunks& chunks, Pass* pass) {
  int64_t left = chunks.most();
  bool some = false;
  for (Member& m : members_) {
    const int64_t prompt = RequestOf(m).prompt;
    if (m.computed >= prompt) continue;
    const int64_t wanted = std::min(left, prompt - m.computed);
    const TokenRun run{m.slot, m.computed, wanted, false};
    int64_t count = chunks.Largest(pass->runs, run, prompt, wanted);
    if (count == 0 && !some) count = 1;
    if (count == 0) return;
    some = true;
    if (m.computed == 0) pass->release = std::max(pass->release, RequestOf(m).arrival);
    Add(&m, count, pass);
    left -= count;
    if (left == 0 || count < wanted) return;
  }
}

void RequestGroup::Add(Member* member, int64_t count, Pass* pass) {
  const bool predicts = member->computed + count >= RequestOf(*member).prompt;
  pass->runs.push_back({member->slot, member->computed, count, predicts});
  pass->requests.push_back(member->request);
  member->computed += count;
  member->predicted = predicts;
}

bool RequestGroup::RemoveFinished() {
  const auto finished = [&](const Member& m) {
    return m.computed == RequestOf(m).prompt + RequestOf(m).output - 1;
  };
  for (const Member& m : members_) {
    if (finished(m)) free_slots_.push_back(m.slot);
  }
  std::sort(free_slots_.rbegin(), free_slots_.rend());
  members_.erase(std::remove_if(members_.begin(), members_.end(), finished), members_.end());
  if (members_.empty()) started_ = false;
  return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.predicted; });
}

}  // namespace pipelab
