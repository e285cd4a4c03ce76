#include "pipelines/planners/select_variants.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pipelab {
namespace {

constexpr size_t kMostMixes = size_t{1} << 14;

// How many of a group of operators have each variant.
struct Mix {
  VariantCost total;
  std::vector<int> counts;  // [variant]
  size_t before = 0;        // in the list of the group before
};

// Operators that have the same variants.
struct Group {
  std::vector<size_t> members;
  std::vector<std::vector<int>> places;  // [member][variant]
};
using Figures = std::vector<std::pair<double, double>>;  // of variants: time, bytes

// In ascending time and descending bytes.
void KeepUndominated(std::vector<Mix>* mixes) {
  std::sort(mixes->begin(), mixes->end(), [](const Mix& a, const Mix& b) {
    if (a.total.time != b.total.time) return a.total.time < b.total.time;
    return a.total.bytes < b.total.bytes;
  });
  size_t kept = 0;
  for (size_t i = 0; i < mixes->size(); ++i) {
    if (kept > 0 && (*mixes)[i].total.bytes >= (*mixes)[kept - 1].total.bytes) continue;
    if (kept != i) (*mixes)[kept] = std::move((*mixes)[i]);
    ++kept;
  }
  mixes->resize(kept);
  if (kept <= kMostMixes) return;
  std::vector<Mix> some;
  for (size_t i = 0; i < kMostMixes; ++i) {
    some.push_back(std::move((*mixes)[i * (kept - 1) / (kMostMixes - 1)]));
  }
  *mixes = std::move(some);
}

// Every way to share `left` operators between the variants from `variant` on.
void AddMixes(const Figures& variants, size_t variant, int left, Mix mix, std::vector<Mix>* mixes) {
  const bool last = variant + 1 == variants.size();
  for (int count = last ? left : 0; count <= left; ++count) {
    Mix next = mix;
    next.counts.push_back(count);
    next.total.time += count * variants[variant].first;
    next.total.bytes += count * variants[variant].second;
    if (last) {
      mixes->push_back(std::move(next));
    } else {
      AddMixes(variants, variant + 1, left - count, std::move(next), mixes);
    }
  }
}

std::map<Figures, Group> GroupsOf(const std::vector<std::vector<VariantCost>>& variants) {
  std::map<Figures, Group> groups;
  for (size_t i = 0; i < variants.size(); ++i) {
    std::vector<Mix> own;
    for (size_t w = 0; w < variants[i].size(); ++w) {
      own.push_back({variants[i][w], {static_cast<int>(w)}, 0});
    }
    KeepUndominated(&own);
    Figures figures;
    std::vector<int> places;
    for (const Mix& variant : own) {
      figures.emplace_back(variant.total.time, variant.total.bytes);
      places.push_back(variant.counts[0]);
    }
    Group& group = groups[figures];
    group.members.push_back(i);
    group.places.push_back(std::move(places));
  }
  return groups;
}

}  // namespace

std::vector<int> SelectVariants(const std::vector<std::vector<VariantCost>>& variants,
                                double most_bytes) {
  const std::map<Figures, Group> groups = GroupsOf(variants);
  std::vector<std::vector<Mix>> steps = {{Mix()}};
  for (const auto& [figures, group] : groups) {
    std::vector<Mix> own, next;
    AddMixes(figures, 0, static_cast<int>(group.members.size()), Mix(), &own);
    KeepUndominated(&own);
    for (size_t i = 0; i < steps.back().size(); ++i) {
      const VariantCost before = steps.back()[i].total;
      for (const Mix& mix : own) {
        next.push_back(
            {{before.time + mix.total.time, before.bytes + mix.total.bytes}, mix.counts, i});
      }
    }
    KeepUndominated(&next);
    steps.push_back(std::move(next));
  }
  size_t at = 0;
  while (at < steps.back().size() && steps.back()[at].total.bytes > most_bytes) ++at;
  if (at == steps.back().size()) return {};
  std::vector<int> chosen(variants.size());
  auto group = groups.rbegin();
  for (size_t step = steps.size() - 1; step > 0; --step, ++group) {
    const Mix& mix = steps[step][at];
    size_t member = 0;
    for (size_t variant = 0; variant < mix.counts.size(); ++variant) {
      for (int n = 0; n < mix.counts[variant]; ++n, ++member) {
        chosen[group->second.members[member]] = group->second.places[member][variant];
      }
    }
    at = mix.before;
  }
  return chosen;
}

}  // namespace pipelab
