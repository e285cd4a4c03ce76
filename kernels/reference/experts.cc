#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

// The scores of one token.
std::vector<double> ScoresOf(const RouterShape& s, In logits_E) {
  std::vector<double> scores(logits_E.begin(), logits_E.end());
  if (s.scores == RouterScores::kSigmoid) {
    for (double& v : scores) v = 1 / (1 + std::exp(-v));
    return scores;
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& v : scores) sum += v = std::exp(v - most);
  for (double& v : scores) v /= sum;
  return scores;
}

double SumOf(const RouterShape& s, const std::vector<double>& scores, Indices chosen) {
  if (!s.normalized) return 1;
  double sum = 0;
  for (int64_t j = 0; j < s.chosen; ++j) sum += scores[chosen[j]];
  return sum;
}

// Whether each expert lies on a node that is not among the token's.
std::vector<char> OnOtherNodes(const RouterShape& s, const std::vector<double>& scores) {
  std::vector<char> others(s.experts, s.nodes > 0);
  const int64_t size = s.experts_of_node();
  std::vector<double> sums;
  for (int64_t n = 0; n < s.nodes; ++n) {
    std::vector<double> of_node(scores.begin() + n * size, scores.begin() + (n + 1) * size);
    std::sort(of_node.rbegin(), of_node.rend());
    sums.push_back(of_node[0] + (size > 1 ? of_node[1] : 0));
  }
  for (int64_t i = 0; i < (s.nodes > 0 ? s.most_nodes : 0); ++i) {
    const auto best = std::max_element(sums.begin(), sums.end());
    *best = -1;
    std::fill_n(others.begin() + (best - sums.begin()) * size, size, false);
  }
  return others;
}

// `taken`: experts that cannot be chosen.
void Choose(const RouterShape& s, In logits_E, std::vector<char> taken,
            absl::Span<int32_t> experts_K) {
  for (int64_t j = 0; j < s.chosen; ++j) {
    int32_t best = -1;
    for (int32_t e = 0; e < s.experts; ++e) {
      if (!taken[e] && (best < 0 || logits_E[e] > logits_E[best])) best = e;
    }
    taken[best] = true;
    experts_K[j] = best;
  }
  for (int64_t j = 0; j < s.shared; ++j) {
    experts_K[s.chosen + j] = static_cast<int32_t>(s.experts + j);
  }
}

// Choices of each expert in a sample, over what it has of an even spread.
std::vector<double> LoadsOf(const RouterShape& s, Indices experts_MK, int64_t sample) {
  std::vector<double> loads(s.experts);
  for (int64_t t = sample * s.tokens; t < (sample + 1) * s.tokens; ++t) {
    for (int64_t j = 0; j < s.chosen; ++j) loads[experts_MK[t * s.choices() + j]] += 1;
  }
  for (double& v : loads)
    v *= static_cast<double>(s.experts) / static_cast<double>(s.chosen * s.tokens);
  return loads;
}

}  // namespace

void Route(const RouterShape& s, In logits_ME, Out weights_MK, const Places& to) {
  const int64_t k = s.choices();
  for (int64_t m = 0; m < s.rows(); ++m) {
    const In logits = logits_ME.subspan(m * s.experts, s.experts);
    const auto chosen = to.experts_MK.subspan(m * k, k);
    const std::vector<double> scores = ScoresOf(s, logits);
    Choose(s, logits, OnOtherNodes(s, scores), chosen);
    const double sum = SumOf(s, scores, chosen);
    for (int64_t j = 0; j < k; ++j) {
      weights_MK[m * k + j] = j < s.chosen ? double{s.scale} * scores[chosen[j]] / sum : 1;
    }
  }
  int32_t row = 0;
  for (int32_t g = 0; g < s.groups(); ++g) {
    to.begins_G1[g] = row;
    for (int64_t sample = 0; sample < s.samples; ++sample) {
      int64_t taken = 0;
      for (int64_t i = sample * s.tokens * k; i < (sample + 1) * s.tokens * k; ++i) {
        if (to.experts_MK[i] != g) continue;
        const bool room = s.capacity == 0 || g >= s.experts || taken++ < s.capacity;
        to.places_MK[i] = room ? row++ : kDropped;
      }
    }
  }
  to.begins_G1[s.groups()] = row;
}

// With scores s_e and S their sum over the chosen, or 1: a weight is c s_j / S, so ds_j = c (dw_j -
// sum_i dw_i s_i / S) / S, the last sum where they are normalized; then the scores' own gradient.
void RouteGradient(const RouterShape& s, In dweights_MK, In logits_ME, Indices experts_MK,
                   double balance, Out dlogits_ME) {
  const int64_t k = s.choices();
  std::vector<double> loads;
  for (int64_t m = 0; m < s.rows(); ++m) {
    if (m % s.tokens == 0) loads = LoadsOf(s, experts_MK, m / s.tokens);
    const Indices chosen = experts_MK.subspan(m * k, k);
    const std::vector<double> scores = ScoresOf(s, logits_ME.subspan(m * s.experts, s.experts));
    const double sum = SumOf(s, scores, chosen);
    double mean = 0;
    for (int64_t j = 0; j < s.chosen && s.normalized; ++j) {
      mean += dweights_MK[m * k + j] * scores[chosen[j]] / sum;
    }
    std::vector<double> dscores(s.experts);
    for (int64_t j = 0; j < s.chosen; ++j) {
      dscores[chosen[j]] = double{s.scale} * (dweights_MK[m * k + j] - mean) / sum;
    }
    double all = 0, load = 0;
    for (int64_t e = 0; e < s.experts; ++e) all += scores[e];
    for (int64_t e = 0; e < s.experts; ++e) load += loads[e] * scores[e] / all;
    for (int64_t e = 0; e < s.experts; ++e) dscores[e] += balance * (loads[e] - load) / all;
    double inner = 0;
    for (int64_t e = 0; e < s.experts; ++e) inner += dscores[e] * scores[e];
    for (int64_t e = 0; e < s.experts; ++e) {
      dlogits_ME[m * s.experts + e] = s.scores == RouterScores::kSigmoid
                                          ? dscores[e] * scores[e] * (1 - scores[e])
                                          : scores[e] * (dscores[e] - inner);
    }
  }
}

double BalancingLoss(const RouterShape& s, In logits_ME, Indices experts_MK) {
  double loss = 0;
  for (int64_t m = 0; m < s.rows(); ++m) {
    const std::vector<double> loads = LoadsOf(s, experts_MK, m / s.tokens);
    const std::vector<double> scores = ScoresOf(s, logits_ME.subspan(m * s.experts, s.experts));
    double all = 0, load = 0;
    for (int64_t e = 0; e < s.experts; ++e) all += scores[e];
    for (int64_t e = 0; e < s.experts; ++e) load += loads[e] * scores[e] / all;
    loss += load;
  }
  return loss;
}

void Gather(Indices places_MK, int64_t choices, int64_t columns, In x_MC, Out all_RC) {
  for (size_t i = 0; i < places_MK.size(); ++i) {
    if (places_MK[i] == kDropped) continue;
    const In row = x_MC.subspan(static_cast<int64_t>(i) / choices * columns, columns);
    std::copy(row.begin(), row.end(), all_RC.begin() + places_MK[i] * columns);
  }
}

void SumOfChoices(Indices places_MK, int64_t choices, int64_t columns, In all_RC, Out y_MC) {
  std::fill(y_MC.begin(), y_MC.end(), 0);
  for (size_t i = 0; i < places_MK.size(); ++i) {
    if (places_MK[i] == kDropped) continue;
    for (int64_t c = 0; c < columns; ++c) {
      y_MC[static_cast<int64_t>(i) / choices * columns + c] += all_RC[places_MK[i] * columns + c];
    }
  }
}

void Weigh(Indices places_MK, int64_t columns, In weights_MK, Out x_RF) {
  for (size_t i = 0; i < places_MK.size(); ++i) {
    if (places_MK[i] == kDropped) continue;
    for (double& v : x_RF.subspan(places_MK[i] * columns, columns)) v *= weights_MK[i];
  }
}

void WeighGradient(Indices places_MK, int64_t columns, In weights_MK, In x_RF, Out dy_RF,
                   Out dweights_MK) {
  for (size_t i = 0; i < places_MK.size(); ++i) {
    dweights_MK[i] = 0;
    if (places_MK[i] == kDropped) continue;
    for (int64_t f = 0; f < columns; ++f) {
      double& dy = dy_RF[places_MK[i] * columns + f];
      dweights_MK[i] += dy * x_RF[places_MK[i] * columns + f];
      dy *= weights_MK[i];
    }
  }
}

namespace {

// The product of one expert after the other: its number, its first row, and their number.
template <class F>
void ForEachExpert(Indices begins_G1, const F& f) {
  for (size_t g = 0; g + 1 < begins_G1.size(); ++g) {
    f(static_cast<int64_t>(g), begins_G1[g], begins_G1[g + 1] - begins_G1[g]);
  }
}

}  // namespace

void ExpertProduct(Indices begins_G1, const MatmulSize& size, In x_RK, In w_GKN, Out y_RN) {
  const int64_t k = size.k, n = size.n;
  ForEachExpert(begins_G1, [&](int64_t g, int64_t begin, int64_t rows) {
    Linear({rows, k, n}, x_RK.subspan(begin * k, rows * k), w_GKN.subspan(g * k * n, k * n), {},
           y_RN.subspan(begin * n, rows * n));
  });
}

void ExpertProductInputGradient(Indices begins_G1, const MatmulSize& size, In dy_RN, In w_GKN,
                                Out dx_RK) {
  const int64_t k = size.k, n = size.n;
  ForEachExpert(begins_G1, [&](int64_t g, int64_t begin, int64_t rows) {
    LinearInputGradient({rows, k, n}, dy_RN.subspan(begin * n, rows * n),
                        w_GKN.subspan(g * k * n, k * n), dx_RK.subspan(begin * k, rows * k));
  });
}

void ExpertProductWeightGradient(Indices begins_G1, const MatmulSize& size, In x_RK, In dy_RN,
                                 Out dw_GKN) {
  const int64_t k = size.k, n = size.n;
  ForEachExpert(begins_G1, [&](int64_t g, int64_t begin, int64_t rows) {
    LinearWeightGradient({rows, k, n}, x_RK.subspan(begin * k, rows * k),
                         dy_RN.subspan(begin * n, rows * n), dw_GKN.subspan(g * k * n, k * n), {});
  });
}

}  // namespace reference
}  // namespace pipelab
