#include "models/mining/threshold.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/container/flat_hash_map.h"

namespace pipelab {
namespace {

constexpr int kCalibrationParts = 5;
constexpr int kStrata = 6;
constexpr double kLeastPairs = 10, kLeastShare = 10;  // one pair in so many sentences
constexpr float kNone = -std::numeric_limits<float>::infinity();

double WilsonUpper(double count, double of, double errors) {
  const double share = count / of, z = errors, z2 = z * z;
  return (share + z2 / 2 / of + z * std::sqrt((share * (1 - share) + z2 / 4 / of) / of)) /
         (1 + z2 / of);
}

struct Stratum {
  double mined = 0, orphans = 0, others = 0;  // others: sentences of x that no pair has
};

// Neighbouring strata together until the share of orphans rises from each to the next (pool
// adjacent violators).
std::vector<Stratum> Rising(const std::array<Stratum, kStrata>& strata) {
  std::vector<Stratum> rising;
  for (const Stratum& s : strata) {
    rising.push_back(s);
    while (rising.size() > 1) {
      const Stratum last = rising.back();
      Stratum& before = rising[rising.size() - 2];
      if (before.mined > 0 && last.mined > 0 &&
          before.orphans * last.mined <= last.orphans * before.mined) {
        break;
      }
      before.mined += last.mined;
      before.orphans += last.orphans;
      before.others += last.others;
      rising.pop_back();
    }
  }
  return rising;
}

// What the wrong pairs are by strata, where `others` sentences are in no pair.
double WrongPairs(const std::array<Stratum, kStrata>& strata, double others, double errors) {
  Stratum all;
  for (const Stratum& s : strata) {
    all.mined += s.mined;
    all.orphans += s.orphans;
    all.others += s.others;
  }
  if (all.others == 0) return 0;
  const double upper = WilsonUpper(all.orphans, all.mined, errors);
  // Half an orphan more, spread over all pairs: a share that is 0 everywhere is alike everywhere.
  const double more = 0.5 / all.mined, mean = all.orphans / all.mined + more;
  double wrong = 0;
  for (const Stratum& s : Rising(strata)) {
    const double share = upper * (s.orphans / s.mined + more) / mean;
    if (share >= 1) return std::numeric_limits<double>::infinity();
    wrong += share / (1 - share) * s.others * others / all.others;
  }
  return wrong;
}

// The stratum of a sentence by what it is near to, of those of equal size.
class Strata {
 public:
  explicit Strata(std::vector<float> nearness) {
    std::sort(nearness.begin(), nearness.end());
    for (size_t s = 1; s < kStrata && !nearness.empty(); ++s) {
      cuts_.push_back(nearness[nearness.size() * s / kStrata]);
    }
  }
  int Of(float nearness) const {
    return static_cast<int>(std::upper_bound(cuts_.begin(), cuts_.end(), nearness) - cuts_.begin());
  }

 private:
  std::vector<float> cuts_;
};

}  // namespace

std::vector<float> OrphanMargins(const Neighbours& near, const std::vector<MinedPair>& pairs,
                                 MarginKind kind, int k) {
  std::vector<float> margins(pairs.size(), kNone);
  for (int part = 0; part < kCalibrationParts; ++part) {
    std::vector<bool> hidden(near.of_y.rows(), false);
    absl::flat_hash_map<int32_t, size_t> pair_of;  // by its x
    for (size_t p = part; p < pairs.size(); p += kCalibrationParts) {
      hidden[pairs[p].y] = true;
      pair_of[pairs[p].x] = p;
    }
    for (const MinedPair& orphan : MutualPairs(near, kind, k, hidden)) {
      const auto own = pair_of.find(orphan.x);
      if (own == pair_of.end()) continue;
      margins[own->second] = std::min(pairs[own->second].margin, orphan.margin);
    }
  }
  return margins;
}

std::vector<Threshold> EstimatePrecision(const Neighbours& near,
                                         const std::vector<MinedPair>& pairs, MarginKind kind,
                                         int k, double errors) {
  const std::vector<float> orphans = OrphanMargins(near, pairs, kind, k);
  // For x's sentences: near to what, with the partner of `pairs` and without.
  std::vector<float> whole, without;
  for (int64_t x = 0; x < near.of_x.rows(); ++x) {
    whole.push_back(MeanOfOthers(near.of_x.Of(x), /*index=*/-1, k));
  }
  without = whole;
  for (const MinedPair& p : pairs) without[p.x] = MeanOfOthers(near.of_x.Of(p.x), p.y, k);
  const Strata by(without);
  std::array<Stratum, kStrata> strata = {};
  for (const float nearness : whole) ++strata[by.Of(nearness)].others;

  const auto highest_first = [&](const auto& margin_of) {
    std::vector<size_t> order(pairs.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return margin_of(a) > margin_of(b); });
    return order;
  };
  const std::vector<size_t> best = highest_first([&](size_t p) { return pairs[p].margin; });
  const std::vector<size_t> best_orphans = highest_first([&](size_t p) { return orphans[p]; });
  const auto sentences = static_cast<double>(std::min(near.of_x.rows(), near.of_y.rows()));
  const auto least = static_cast<size_t>(std::max(kLeastPairs, sentences / kLeastShare));
  std::vector<Threshold> estimates;
  size_t next = 0;  // of best_orphans
  for (const size_t p : best) {
    const MinedPair& pair = pairs[p];
    --strata[by.Of(whole[pair.x])].others;
    ++strata[by.Of(without[pair.x])].mined;
    for (; next < pairs.size() && orphans[best_orphans[next]] >= pair.margin; ++next) {
      ++strata[by.Of(without[pairs[best_orphans[next]].x])].orphans;
    }
    const size_t count = estimates.size() + 1;
    const auto mined = static_cast<double>(count);
    const double wrong = WrongPairs(strata, sentences - mined, errors);
    estimates.push_back({count >= least, pair.margin, std::max(0.0, 1 - wrong / mined),
                         static_cast<int64_t>(count)});
  }
  return estimates;
}

Threshold ChooseThreshold(const std::vector<Threshold>& estimates, double precision) {
  Threshold last;
  for (const Threshold& t : estimates) {
    if (t.found && t.precision >= precision) last = t;
  }
  return last;
}

double BestPrecision(const std::vector<Threshold>& estimates) {
  double best = 0;
  for (const Threshold& t : estimates) {
    if (t.found) best = std::max(best, t.precision);
  }
  return best;
}

}  // namespace pipelab
