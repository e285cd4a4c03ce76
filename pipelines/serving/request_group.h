// The requests that share the passes of a group, and what the next pass has of each.
//
//   RequestGroup group(&requests, options);
//   group.Admit(3);
//   const bool taken = group.MakePass(PromptChunks(options, &times), &pass);
//   group.Issued(/*pass=*/7, tokens_at);
#ifndef PIPELAB_PIPELINES_SERVING_REQUEST_GROUP_H_
#define PIPELAB_PIPELINES_SERVING_REQUEST_GROUP_H_

#include <cstdint>
#include <vector>

#include "models/graph/token_run.h"
#include "pipelines/serving/pass_plan.h"
#include "tools/base/units.h"

namespace pipelab {

// How many tokens of a prompt a pass takes: the most with which no stage takes longer than for a
// chunk that begins a prompt. `times` outlives it.
class PromptChunks {
 public:
  PromptChunks(const ServingOptions& options, const ServingTimes* times);

  // Tokens of prompts that a pass takes at most.
  int64_t most() const { return most_; }
  // At most `count` of the run's, whose prompt has `prompt` tokens, behind the others of its pass.
  // 0: not one has room.
  int64_t Largest(std::vector<TokenRun> others, TokenRun run, int64_t prompt, int64_t count) const;

 private:
  bool Fits(const std::vector<TokenRun>& runs) const;

  const ServingTimes* times_;
  int64_t most_;
  std::vector<Nanoseconds> limits_;  // [stage]; empty: none
};

class RequestGroup {
 public:
  // `requests` outlives it.
  RequestGroup(const std::vector<Request>* requests, const ServingOptions& options);

  bool empty() const { return members_.empty(); }
  size_t size() const { return members_.size(); }
  // Whether it takes one more request.
  bool open() const { return !free_slots_.empty() && (continuous_ || !started_); }
  // When all is there that its next pass needs. Not empty.
  Nanoseconds Ready() const;
  void Admit(int32_t request);
  // The last token of those whose prompts are through, and chunks of prompts in the order of
  // arrival. Who has all of its tokens then leaves. Whether the group's next pass takes tokens.
  bool MakePass(const PromptChunks& chunks, Pass* pass);
  void Issued(int32_t pass, Nanoseconds tokens_at) {
    last_pass_ = pass;
    tokens_at_ = tokens_at;
  }

 private:
  struct Member {
    int32_t request = 0, slot = 0;
    int64_t computed = 0;  // tokens that passes have
    bool predicted = false;
  };
  const Request& RequestOf(const Member& m) const { return (*requests_)[m.request]; }
  void AddPrompts(const PromptChunks& chunks, Pass* pass);
  void Add(Member* member, int64_t count, Pass* pass);
  bool RemoveFinished();

  const std::vector<Request>* requests_;
  std::vector<Member> members_;      // in the order of arrival
  std::vector<int32_t> free_slots_;  // the lowest last
  bool continuous_, started_ = false;
  int32_t last_pass_ = -1;
  Nanoseconds tokens_at_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_REQUEST_GROUP_H_
