#include "pipelines/ir/atomic_pairs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "pipelines/ir/dependency.h"

namespace pipelab {
namespace {

// Runs the order with pairs as units.
class PairFinder {
 public:
  explicit PairFinder(const Schedule& s)
      : s_(s), index_(s), recomputed_(s.RecomputedStages()), members_done_(index_.size(), 0) {
    for (const std::vector<Action>& list : s.order) {
      std::vector<char>& begins = pairs_.emplace_back(list.size(), 0);
      for (size_t i = 0; i + 1 < list.size(); ++i) {
        begins[i] = list[i].kind == ActionKind::kForward &&
                    list[i + 1].kind == ActionKind::kBackward &&
                    list[i].micro_batch != list[i + 1].micro_batch;
      }
    }
    at_.resize(s.order.size(), 0);
  }

  std::vector<std::vector<char>> Find() && {
    do {
      while (Advance()) {
      }
    } while (Dissolve());
    return std::move(pairs_);
  }

 private:
  // A group's event is over when all members have run the action.
  bool Over(const Event& e) const {
    return members_done_[index_(e)] == s_.Group(e.stage, e.micro_batch).size();
  }

  bool Ready(const Action& a) const {
    bool ready = true;
    ForEachDependency(s_, recomputed_[a.stage], a, [&](const Event& e) { ready &= Over(e); });
    return ready;
  }

  // Every device as far as it gets; false when none gets anywhere.
  bool Advance() {
    bool moved = false;
    for (size_t d = 0; d < at_.size(); ++d) {
      const std::vector<Action>& list = s_.order[d];
      while (at_[d] < list.size()) {
        const size_t last = at_[d] + (pairs_[d][at_[d]] != 0 ? 1 : 0);
        bool ready = true;
        for (size_t i = at_[d]; i <= last; ++i) ready = ready && Ready(list[i]);
        if (!ready) break;
        for (; at_[d] <= last; ++at_[d]) {
          ForEachResult(list[at_[d]], [&](const Event& e) { ++members_done_[index_(e)]; });
        }
        moved = true;
      }
    }
    return moved;
  }

  // Takes apart the pairs that hold a forward back; false when there are none.
  bool Dissolve() {
    bool found = false;
    for (size_t d = 0; d < at_.size(); ++d) {
      if (at_[d] == s_.order[d].size() || pairs_[d][at_[d]] == 0) continue;
      if (!Ready(s_.order[d][at_[d]])) continue;
      pairs_[d][at_[d]] = 0;
      found = true;
    }
    return found;
  }

  const Schedule& s_;
  const EventIndex index_;
  const std::vector<bool> recomputed_;
  std::vector<uint16_t> members_done_;  // [event]
  std::vector<size_t> at_;              // [device]
  std::vector<std::vector<char>> pairs_;
};

// True where the instruction is the order's action at the position.
bool IsOfOrder(const Instruction& i, const std::vector<Action>& order, size_t position) {
  const bool action = i.op == OpCode::kCompute || i.op == OpCode::kStep ||
                      i.op == OpCode::kOffload || i.op == OpCode::kReload;
  return action && position < order.size() && i.action == order[position];
}

// A release, which may be of the forward's weights, or what puts weights together again after it.
bool IsOfReleased(const Instruction& i, const std::vector<Instruction>& after) {
  if (i.op == OpCode::kRelease) return true;
  return i.op == OpCode::kGather &&
         std::any_of(after.begin(), after.end(), [&](const Instruction& other) {
           return other.op == OpCode::kRelease && other.action.stage == i.action.stage &&
                  other.replica == i.replica;
         });
}

}  // namespace

std::vector<std::vector<char>> FindPairs(const Schedule& schedule) {
  return PairFinder(schedule).Find();
}

std::vector<std::vector<char>> FindMergedPasses(const Program& program) {
  const std::vector<std::vector<char>> pairs = FindPairs(program.schedule);
  std::vector<std::vector<char>> merged;
  for (size_t d = 0; d < pairs.size(); ++d) {
    const std::vector<Instruction>& list = program.instructions[d];
    std::vector<char>& passes = merged.emplace_back(list.size());
    size_t position = 0;  // in the order
    for (size_t at = 0; at < list.size(); ++at) {
      if (!IsOfOrder(list[at], program.schedule.order[d], position)) continue;
      passes[at] = pairs[d][position] != 0 || (position > 0 && pairs[d][position - 1] != 0);
      ++position;
    }
  }
  return merged;
}

void PairForwardBackward(Program* program) {
  const std::vector<std::vector<char>> pairs = FindPairs(program->schedule);
  for (size_t d = 0; d < program->instructions.size(); ++d) {
    std::vector<Instruction> before, compute, after, list;
    size_t position = 0;  // in the order
    for (const Instruction& i : program->instructions[d]) {
      const bool of_order = IsOfOrder(i, program->schedule.order[d], position);
      const bool begins = of_order && pairs[d][position] != 0;
      position += of_order ? 1 : 0;
      if (begins) {
        compute = {i};
        continue;
      }
      if (compute.empty()) {
        list.push_back(i);
        continue;
      }
      // Between the forward and the backward, and the backward itself.
      if (i.op == OpCode::kSend || IsOfReleased(i, after)) {
        after.push_back(i);
      } else if (!of_order) {
        before.push_back(i);
      } else {
        compute.push_back(i);
        for (std::vector<Instruction>* part : {&before, &compute, &after}) {
          list.insert(list.end(), part->begin(), part->end());
          part->clear();
        }
      }
    }
    program->instructions[d] = std::move(list);
  }
}

}  // namespace pipelab
