#include "pipelines/planners/graph_labels.h"

#include <algorithm>

namespace pipelab {
namespace {

bool NotWorse(const GraphLabel& a, const GraphLabel& b) {
  if (a.value > b.value || a.longest > b.longest || a.devices > b.devices) return false;
  for (size_t i = 0; i < a.samples.size(); ++i) {
    if (a.samples[i] > b.samples[i] || a.paths[i] > b.paths[i]) return false;
  }
  return true;
}

}  // namespace

bool GraphLabelStore::Add(const GraphLabel& label, std::vector<GraphLabel*>* others) {
  for (const GraphLabel* other : *others) {
    if (NotWorse(*other, label)) return false;
  }
  const auto worse =
      std::stable_partition(others->begin(), others->end(),
                            [&](const GraphLabel* other) { return !NotWorse(label, *other); });
  unused_.insert(unused_.end(), worse, others->end());
  others->erase(worse, others->end());
  if (Merge(label, *others)) return true;
  if (unused_.empty()) {
    labels_.emplace_back();
    unused_.push_back(&labels_.back());
  }
  *unused_.back() = label;
  others->push_back(unused_.back());
  unused_.pop_back();
  return true;
}

// With one of as many devices, where there are as many as may be. Labels of an upset are extended
// after all of them are there.
bool GraphLabelStore::Merge(const GraphLabel& label, const std::vector<GraphLabel*>& others) const {
  size_t same = 0;
  GraphLabel* to = nullptr;
  for (GraphLabel* other : others) {
    if (other->devices != label.devices) continue;
    ++same;
    if (to == nullptr || other->merged || (!to->merged && other->Value() > to->Value())) to = other;
  }
  if (same < most_same_) return false;
  to->merged = true;
  to->value = std::min(to->value, label.value);
  to->longest = std::min(to->longest, label.longest);
  for (size_t i = 0; i < label.samples.size(); ++i) {
    to->samples[i] = std::min(to->samples[i], label.samples[i]);
    to->paths[i] = std::min(to->paths[i], label.paths[i]);
  }
  return true;
}

}  // namespace pipelab
