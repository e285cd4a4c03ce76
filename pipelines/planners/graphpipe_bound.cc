#include "pipelines/planners/graphpipe_bound.h"

#include <algorithm>
#include <numeric>

#include "absl/time/clock.h"

namespace pipelab {

BoundedPlans::BoundedPlans(const GraphRegions& regions, const OperatorSets* sets)
    : regions_(regions), sets_(*sets) {}

bool BoundedPlans::Find(double bound, absl::Time deadline, std::vector<PlanStage>* stages) {
  bound_ = bound;
  deadline_ = deadline;
  stopped_ = false;
  tables_.clear();
  branches_.clear();
  steps_.clear();
  stages->clear();
  const Region& all = regions_.region(regions_.root());
  const Frontier& found = TableOf(all.type, all.size(), 0).at[0];
  if (stopped_) return false;
  if (found.empty()) return true;
  std::vector<int> meant(all.operators.size());
  std::iota(meant.begin(), meant.end(), 0);
  Collect(found.back().step, meant, stages);
  return true;
}

bool BoundedPlans::Stopped() {
  if (!stopped_ && (++ticks_ & 1023) == 0) stopped_ = absl::Now() > deadline_;
  return stopped_;
}

bool BoundedPlans::Dominated(const Frontier& frontier, int64_t devices, int64_t samples) {
  for (const Label& label : frontier) {
    if (label.devices > devices) return false;
    if (label.samples <= samples) return true;
  }
  return false;
}

void BoundedPlans::Insert(Frontier* frontier, Label label) {
  const auto at =
      std::lower_bound(frontier->begin(), frontier->end(), label,
                       [](const Label& a, const Label& b) { return a.devices < b.devices; });
  auto end = at;
  while (end != frontier->end() && end->samples >= label.samples) ++end;
  frontier->insert(frontier->erase(at, end), label);
}

const BoundedPlans::Step* BoundedPlans::Keep(Step step) {
  steps_.push_back(std::move(step));
  return &steps_.back();
}

// `part` is cut at element `cut` (-1: no branch in part), and `whole` others are taken.
BoundedPlans::Taken BoundedPlans::TakenOf(const Region& region, int element, int part, int cut,
                                          int whole, bool tail) const {
  const std::vector<int>& branches = region.elements[element].branches;
  Taken taken;
  taken.several = whole > 0;
  for (int b = 0; b < static_cast<int>(branches.size()); ++b) {
    const Region& branch = regions_.region(branches[b]);
    int split = tail ? branch.size() : 0;  // nothing is taken
    if (b == part) {
      split = cut;
    } else if (whole > 0) {
      --whole;
      split = tail ? 0 : branch.size();
    }
    taken.first.push_back(tail ? 0 : split);
    taken.last.push_back(tail ? split : branch.size());
    const std::vector<int> operators =
        tail ? branch.Operators(split, branch.size()) : branch.Operators(0, split);
    taken.operators.insert(taken.operators.end(), operators.begin(), operators.end());
  }
  return taken;
}

const BoundedPlans::Sides& BoundedPlans::SidesOf(int type, int element) {
  const auto [it, added] = sides_.try_emplace({type, element});
  Sides& sides = it->second;
  if (!added) return sides;
  const Region& region = regions_.OfType(type);
  const std::vector<int>& branches = region.elements[element].branches;
  const int count = static_cast<int>(branches.size());
  sides.tails.push_back(TakenOf(region, element, -1, 0, 0, true));
  sides.heads.push_back(TakenOf(region, element, -1, 0, 0, false));
  for (int b = 0; b < count; ++b) {
    const Region& branch = regions_.region(branches[b]);
    // Of equal branches the last stands for all.
    bool last = true;
    for (int c = b + 1; c < count; ++c) last &= regions_.region(branches[c]).type != branch.type;
    if (!last) continue;
    for (int whole = 0; whole + 1 < count || whole == 0; ++whole) {
      for (int cut = 0; cut < branch.size(); ++cut) {
        if (whole + 1 == count && cut == 0) continue;  // all of them
        sides.tails.push_back(TakenOf(region, element, b, cut, whole, true));
        sides.heads.push_back(TakenOf(region, element, b, branch.size() - cut, whole, false));
      }
    }
    if (count == 1) continue;
    // All others whole, this one in part.
    for (int cut = 1; cut < branch.size(); ++cut) {
      sides.tails.push_back(TakenOf(region, element, b, cut, count - 1, true));
      sides.heads.push_back(TakenOf(region, element, b, branch.size() - cut, count - 1, false));
    }
  }
  return sides;
}

OperatorSet* BoundedPlans::RunSet(int type, int first, int last, int tail, int head) {
  std::unique_ptr<OperatorSet>& set = run_sets_[{type, first, last, tail, head}];
  if (set == nullptr) {
    std::vector<int> operators = regions_.OfType(type).Operators(first, last);
    if (tail > 0) {
      const std::vector<int>& more = SidesOf(type, first - 1).tails[tail].operators;
      operators.insert(operators.end(), more.begin(), more.end());
    }
    if (head > 0) {
      const std::vector<int>& more = SidesOf(type, last).heads[head].operators;
      operators.insert(operators.end(), more.begin(), more.end());
    }
    set = std::make_unique<OperatorSet>(sets_.Make(std::move(operators)));
  }
  return set.get();
}

const BoundedPlans::Table& BoundedPlans::TableOf(int type, int last, int64_t samples) {
  const std::vector<int64_t> key = {type, last, samples};
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second;
  const Region& region = regions_.OfType(type);
  Table table;
  table.at.resize(last + 1);
  table.at[last] = {{0, samples, nullptr}};
  for (int p = last; p > 0 && !Stopped(); --p) {
    AddStages(type, p, 0, table.at[p], &table);
    if (region.elements[p - 1].op >= 0) continue;
    AddBranches(type, p - 1, &table);
    const int heads = static_cast<int>(SidesOf(type, p - 1).heads.size());
    for (int head = 1; head < heads; ++head) {
      const auto from = table.head.find({p - 1, head});
      if (from != table.head.end()) AddStages(type, p - 1, head, from->second, &table);
    }
  }
  return tables_.emplace(key, std::move(table)).first->second;
}

void BoundedPlans::AddStages(int type, int last, int head, const Frontier& from, Table* table) {
  if (from.empty()) return;
  const Region& region = regions_.OfType(type);
  for (int first = last - 1; first >= 0 && !Stopped(); --first) {
    if (!AddStage(RunSet(type, first, last, 0, head), from, &table->at[first])) return;
    if (first == 0 || region.elements[first - 1].op >= 0) continue;
    const Sides& sides = SidesOf(type, first - 1);
    const bool one = head == 0 || !SidesOf(type, last).heads[head].several;
    for (int tail = 1; tail < static_cast<int>(sides.tails.size()) && one; ++tail) {
      if (head > 0 && sides.tails[tail].several) continue;
      Frontier to;
      AddStage(RunSet(type, first, last, tail, head), from, &to);
      Frontier& all = table->tail[{first - 1, tail}];
      for (const Label& label : to) {
        if (!Dominated(all, label.devices, label.samples)) Insert(&all, label);
      }
    }
  }
}

// False: no stage with this set's operators meets the bound.
bool BoundedPlans::AddStage(OperatorSet* set, const Frontier& from, Frontier* to) {
  if (sets_.LeastTime(*set) > bound_) return false;
  const int64_t devices = sets_.problem().devices;
  for (StageShape shape; shape.size < sets_.num_sizes(); ++shape.size) {
    for (const Label& label : from) {
      if (Stopped()) return true;
      // More copies than needed take more devices and leave more in flight.
      for (shape.data = 1; label.devices + shape.data <= devices; shape.data *= 2) {
        if (!sets_.Allows(shape) || sets_.TimeBound(*set, shape) > bound_) continue;
        const int64_t own = sets_.SamplesOf(shape), samples = label.samples + own;
        if (Dominated(*to, label.devices + shape.data, samples)) break;
        const int64_t in_flight = (samples + own - 1) / own;
        if (sets_.Time(set, shape, in_flight) > bound_) continue;
        Step step;
        step.parts = {{-1, nullptr, set, shape, in_flight}};
        step.next = label.step;
        Insert(to, {label.devices + shape.data, samples, Keep(std::move(step))});
        break;
      }
    }
  }
  return true;
}

void BoundedPlans::AddBranches(int type, int element, Table* table) {
  const Sides& sides = SidesOf(type, element);
  const int64_t devices = sets_.problem().devices;
  for (int tail = 0; tail < static_cast<int>(sides.tails.size()); ++tail) {
    Frontier after;
    if (tail == 0) {
      after = table->at[element + 1];
    } else {
      const auto it = table->tail.find({element, tail});
      if (it != table->tail.end()) after = it->second;
    }
    if (after.empty()) continue;
    // Heads are taken by a stage with an element before.
    const int heads = element == 0 ? 1 : static_cast<int>(sides.heads.size());
    for (int head = 0; head < heads && !Stopped(); ++head) {
      Frontier* to = head == 0 ? &table->at[element] : nullptr;
      for (const Label& label : after) {
        for (const Label& side : BranchesOf(type, element, tail, head, label.samples)) {
          const int64_t total = label.devices + side.devices;
          if (total > devices) break;
          if (to == nullptr) to = &table->head[{element, head}];
          if (Dominated(*to, total, side.samples)) continue;
          Step step;
          for (const Step* s = side.step; s != nullptr; s = s->next) {
            step.parts.insert(step.parts.end(), s->parts.begin(), s->parts.end());
          }
          step.next = label.step;
          Insert(to, {total, side.samples, Keep(std::move(step))});
        }
      }
    }
  }
}

// What is left of the branches, in their order, in groups of neighbours: a group of one is planned
// as a region, a larger one is a stage.
const BoundedPlans::Frontier& BoundedPlans::BranchesOf(int type, int element, int tail, int head,
                                                       int64_t samples) {
  const std::vector<int64_t> key = {type, element, tail, head, samples};
  const auto found = branches_.find(key);
  if (found != branches_.end()) return found->second;
  const Sides& sides = SidesOf(type, element);
  const Taken &t = sides.tails[tail], &h = sides.heads[head];
  Branches left = {&regions_.OfType(type).elements[element].branches, &t, &h, {}, {}};
  left.key = {type, element, tail, head};
  bool conflict = false;
  for (int b = 0; b < static_cast<int>(t.first.size()); ++b) {
    conflict |= h.first[b] > t.last[b];
    if (h.first[b] < t.last[b]) left.places.push_back(b);
  }
  if (conflict) return branches_[key];
  std::vector<Frontier> done(left.places.size() + 1);
  done[0] = {{0, samples, nullptr}};
  for (size_t begin = 0; begin < left.places.size(); ++begin) {
    for (size_t end = begin + 1; end <= left.places.size() && !done[begin].empty(); ++end) {
      const Frontier group = end == begin + 1 ? BranchAlone(left, begin, samples)
                                              : BranchesTogether(left, begin, end, samples);
      AddBeside(group, done[begin], &done[end]);
    }
  }
  return branches_.emplace(key, std::move(done.back())).first->second;
}

BoundedPlans::Frontier BoundedPlans::BranchAlone(const Branches& left, size_t place,
                                                 int64_t samples) {
  const int b = left.places[place], region = (*left.regions)[b];
  const Table& table = TableOf(regions_.region(region).type, left.tail->last[b], samples);
  Frontier alone;
  if (stopped_) return alone;
  for (const Label& label : table.at[left.head->first[b]]) {
    Step step;
    step.parts = {{region, label.step, nullptr, StageShape(), 0}};
    alone.push_back({label.devices, label.samples, Keep(std::move(step))});
  }
  return alone;
}

BoundedPlans::Frontier BoundedPlans::BranchesTogether(const Branches& left, size_t begin,
                                                      size_t end, int64_t samples) {
  std::vector<int> key = left.key;
  for (size_t i = begin; i < end; ++i) key.push_back(left.places[i]);
  std::unique_ptr<OperatorSet>& set = group_sets_[key];
  if (set == nullptr) {
    std::vector<int> operators;
    for (size_t i = begin; i < end; ++i) {
      const int b = left.places[i];
      const std::vector<int> more =
          regions_.region((*left.regions)[b]).Operators(left.head->first[b], left.tail->last[b]);
      operators.insert(operators.end(), more.begin(), more.end());
    }
    set = std::make_unique<OperatorSet>(sets_.Make(std::move(operators)));
  }
  Frontier together;
  AddStage(set.get(), {{0, samples, nullptr}}, &together);
  return together;
}

void BoundedPlans::AddBeside(const Frontier& group, const Frontier& from, Frontier* to) {
  for (const Label& before : from) {
    for (const Label& label : group) {
      const int64_t total = before.devices + label.devices;
      const int64_t most = std::max(before.samples, label.samples);
      if (total > sets_.problem().devices || Dominated(*to, total, most)) continue;
      Step step;
      step.parts = label.step->parts;
      step.next = before.step;
      Insert(to, {total, most, Keep(std::move(step))});
    }
  }
}

// [operator of the type's region] -> the operator that is meant.
void BoundedPlans::Collect(const Step* step, const std::vector<int>& meant,
                           std::vector<PlanStage>* stages) const {
  for (; step != nullptr; step = step->next) {
    for (const Part& part : step->parts) {
      if (part.set != nullptr) {
        stages->push_back(StageOf(part, meant));
        continue;
      }
      const Region& region = regions_.region(part.region);
      const Region& planned = regions_.OfType(region.type);
      std::vector<int> inside = meant;
      for (size_t i = 0; i < region.operators.size(); ++i) {
        inside[planned.operators[i]] = meant[region.operators[i]];
      }
      Collect(part.step, inside, stages);
    }
  }
}

PlanStage BoundedPlans::StageOf(const Part& part, const std::vector<int>& meant) const {
  PlanStage stage;
  stage.data = part.shape.data;
  stage.micro_batch_size = sets_.SamplesOf(part.shape);
  const StageChoice choice = sets_.Choose(*part.set, part.shape, part.in_flight);
  std::vector<std::pair<int, int>> variants;
  for (size_t i = 0; i < part.set->operators.size(); ++i) {
    variants.emplace_back(meant[part.set->operators[i]], choice.variants[i]);
  }
  std::sort(variants.begin(), variants.end());
  for (const auto& [op, variant] : variants) {
    stage.layers.push_back(op);
    stage.variants.push_back(variant);
  }
  return stage;
}

}  // namespace pipelab
