#include "tests/support/hop_checker.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace pipelab {

bool HopChecker::HasWeights(const Place& place) const {
  return weights_.count(place) > 0 ||
         ShardOf(p_, {place.first, place.first, place.second}).index == 0;
}

std::string HopChecker::Run(int device, const Instruction& i) {
  if (!p_.schedule.weights_travel) return "";
  if (i.op == OpCode::kCompute) return Compute(device, i.action);
  if (i.op == OpCode::kStep) {
    stepped_.insert({device, i.action.stage});
    if (IsSettled(device, i.action.stage)) return "";
    return absl::StrCat("device ", device, " steps stage ", i.action.stage,
                        " before its gradients are there, or keeps what it does not own");
  }
  const bool message = i.op == OpCode::kSend || i.op == OpCode::kWait;
  if (i.op != OpCode::kRelease && (!message || !p_.messages[i.arg].is_hop())) return "";
  const Message& m = p_.messages[i.arg];
  const Place place(device, m.hop_of_stage);
  const auto error = [&](const char* what) {
    return absl::StrCat("device ", device, ", hop ", i.arg, " of stage ", m.hop_of_stage, ": ",
                        what);
  };
  if (m.gradient && stepped_.count(place) > 0) return error("comes behind the step");
  if (i.op == OpCode::kRelease) {
    const auto at = weights_.find(place);
    if (at == weights_.end() || at->second != i.arg || i.action.stage != m.hop_of_stage) {
      return error("releases what is not there");
    }
    weights_.erase(at);
  } else if (!m.gradient && i.op == OpCode::kSend) {
    if (!HasWeights(place)) return error("sends weights that are not there");
  } else if (!m.gradient) {
    if (HasWeights(place)) return error("brings weights that are there");
    weights_[place] = i.arg;
  } else if (i.op == OpCode::kSend) {
    if (sums_[place].empty()) return error("sends no gradients");
    under_way_[i.arg] = std::move(sums_[place]);
    sums_.erase(place);
  } else {
    std::vector<int> sum = std::move(under_way_[i.arg]);
    sum.insert(sum.end(), sums_[place].begin(), sums_[place].end());
    sums_[place] = std::move(sum);
  }
  return "";
}

std::string HopChecker::Compute(int device, const Action& a) {
  const Place place(device, a.stage);
  if (!HasWeights(place)) {
    return absl::StrCat("device ", device, ": ", ToString(a), " without its stage's weights");
  }
  if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight) {
    sums_[place].push_back(a.micro_batch);
  }
  return "";
}

// All gradients are with the owner, and weights too.
bool HopChecker::IsSettled(int device, int stage) {
  const Place place(device, stage);
  const bool owner = ShardOf(p_, {device, device, stage}).index == 0;
  std::vector<int> all(owner ? p_.schedule.num_micro_batches : 0);
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> added = sums_[place];
  std::sort(added.begin(), added.end());
  return weights_.count(place) == 0 && added == all;
}

std::string HopChecker::End() {
  if (!p_.schedule.weights_travel) return "";
  for (int d = 0; d < p_.schedule.num_devices(); ++d) {
    for (int stage = 0; stage < p_.schedule.num_stages(); ++stage) {
      if (IsSettled(d, stage)) continue;
      return absl::StrCat("device ", d, " ends without the gradients of stage ", stage,
                          ", or keeps what it does not own");
    }
  }
  return "";
}

}  // namespace pipelab
