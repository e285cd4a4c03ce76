#include "kernels/cpu/experts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/expert_kernels.h"
#include "kernels/simd.h"

namespace pipelab {
namespace cpu {
namespace {

// Scores before they are divided by anything; returns the sum of a softmax, else 1.
float RawScores(const RouterShape& s, const float* logits, float* scores) {
  if (s.scores == RouterScores::kSigmoid) {
    for (int64_t e = 0; e < s.experts; ++e) scores[e] = 1.0f / (1.0f + std::exp(-logits[e]));
    return 1.0f;
  }
  const float most = *std::max_element(logits, logits + s.experts);
  float sum = 0;
  for (int64_t e = 0; e < s.experts; ++e) sum += scores[e] = std::exp(logits[e] - most);
  return sum;
}

// The sum of the chosen ones, or `otherwise` where they are not normalized.
float SumOfChosen(const RouterShape& s, const float* scores, const int32_t* chosen,
                  float otherwise) {
  if (!s.normalized) return otherwise;
  float sum = 0;
  for (int64_t j = 0; j < s.chosen; ++j) sum += scores[chosen[j]];
  return sum;
}

// The nodes that a token's experts may lie on, a bit each, by the experts' scores.
template <class Score>
uint64_t OpenNodes(const RouterShape& s, const Score& score) {
  if (s.nodes == 0) return ~uint64_t{0};
  const int64_t size = s.experts_of_node();
  uint64_t open = 0;
  for (int64_t i = 0; i < s.most_nodes; ++i) {
    int64_t best = -1;
    float best_sum = 0.0f;
    for (int64_t n = 0; n < s.nodes; ++n) {
      if ((open >> n & 1) != 0) continue;
      float first = 0.0f, second = 0.0f;  // scores are not below 0
      for (int64_t e = n * size; e < (n + 1) * size; ++e) {
        const float value = score(e);
        second = std::min(std::max(value, second), first);
        first = std::max(first, value);
      }
      if (best >= 0 && !(first + second > best_sum)) continue;
      best = n;
      best_sum = first + second;
    }
    if (best < 0) break;  // all are open
    open |= uint64_t{1} << best;
  }
  return open;
}

// As the reference has it; where a NaN is, some expert all the same.
void Choose(const RouterShape& s, const float* logits, uint64_t open, std::vector<char>* taken,
            int32_t* experts) {
  const int64_t size = s.experts_of_node();
  for (int64_t j = 0; j < s.chosen; ++j) {
    int32_t best = -1;
    for (int32_t e = 0; e < s.experts; ++e) {
      if (best >= 0 && !(logits[e] > logits[best])) continue;  // most are, and it costs least
      if (!(*taken)[e] && (open >> e / size & 1) != 0) best = e;
    }
    (*taken)[best] = true;
    experts[j] = best;
  }
  for (int64_t j = 0; j < s.chosen; ++j) (*taken)[experts[j]] = false;
  for (int64_t j = 0; j < s.shared; ++j) {
    experts[s.chosen + j] = static_cast<int32_t>(s.experts + j);
  }
}

}  // namespace

void ChooseExperts(const RouterShape& s, const float* logits, float* weights, int32_t* experts) {
  std::vector<char> taken(s.experts);
  std::vector<float> scores(s.experts);
  const int64_t k = s.choices();
  for (int64_t m = 0; m < s.rows(); ++m, logits += s.experts, weights += k, experts += k) {
    const float all = RawScores(s, logits, scores.data());
    Choose(s, logits, OpenNodes(s, [&](int64_t e) { return scores[e]; }), &taken, experts);
    const float sum = SumOfChosen(s, scores.data(), experts, all);
    for (int64_t j = 0; j < s.chosen; ++j) weights[j] = s.scale * (scores[experts[j]] / sum);
    std::fill_n(weights + s.chosen, s.shared, 1.0f);
  }
}

void PlaceChoices(const RouterShape& s, const int32_t* experts, int32_t* places, int32_t* begins) {
  const int64_t choices = s.tokens * s.choices();  // of a sample
  const auto room = [&](int64_t g) {
    return s.capacity == 0 || g >= s.experts ? choices : s.capacity;
  };
  std::vector<int64_t> counts(s.samples * s.groups());
  for (int64_t i = 0; i < s.samples * choices; ++i) {
    int64_t& count = counts[i / choices * s.groups() + experts[i]];
    count = std::min(count + 1, room(experts[i]));
  }
  // Where the next row of each sample and expert is.
  std::vector<int64_t> next(counts.size());
  int64_t row = 0;
  for (int64_t g = 0; g < s.groups(); ++g) {
    begins[g] = static_cast<int32_t>(row);
    for (int64_t sample = 0; sample < s.samples; ++sample) {
      next[sample * s.groups() + g] = row;
      row += counts[sample * s.groups() + g];
    }
  }
  begins[s.groups()] = static_cast<int32_t>(row);
  for (int64_t i = 0; i < s.samples * choices; ++i) {
    const int64_t at = i / choices * s.groups() + experts[i];
    places[i] = counts[at]-- > 0 ? static_cast<int32_t>(next[at]++) : kDropped;
  }
}

void RouterBackward(const RouterShape& s, const float* dweights, const float* logits,
                    const int32_t* experts, float balance, float* dlogits) {
  const int64_t k = s.choices();
  const float even = static_cast<float>(s.experts) / static_cast<float>(s.chosen * s.tokens);
  std::vector<float> scores(s.experts), dscores(s.experts), loads(s.experts);
  for (int64_t m = 0; m < s.rows(); ++m, dweights += k, logits += s.experts, experts += k) {
    if (m % s.tokens == 0) {
      std::fill(loads.begin(), loads.end(), 0.0f);
      for (int64_t i = 0; i < s.tokens * k; ++i) {
        if (i % k < s.chosen) loads[experts[i]] += 1.0f;
      }
      for (float& v : loads) v *= even;
    }
    const float sum = RawScores(s, logits, scores.data());
    for (float& v : scores) v /= sum;
    const float part = SumOfChosen(s, scores.data(), experts, 1.0f);
    float mean = 0;
    for (int64_t j = 0; j < s.chosen && s.normalized; ++j) {
      mean += dweights[j] * (scores[experts[j]] / part);
    }
    std::fill(dscores.begin(), dscores.end(), 0.0f);
    for (int64_t j = 0; j < s.chosen; ++j) {
      dscores[experts[j]] = s.scale * (dweights[j] - mean) / part;
    }
    if (balance != 0) {
      float all = 0, load = 0;
      for (int64_t e = 0; e < s.experts; ++e) all += scores[e];
      for (int64_t e = 0; e < s.experts; ++e) load += loads[e] * scores[e] / all;
      for (int64_t e = 0; e < s.experts; ++e) dscores[e] += balance * (loads[e] - load) / all;
    }
    float inner = 0;
    for (int64_t e = 0; e < s.experts; ++e) inner += dscores[e] * scores[e];
    for (int64_t e = 0; e < s.experts; ++e, ++dlogits) {
      *dlogits = s.scores == RouterScores::kSigmoid ? dscores[e] * scores[e] * (1.0f - scores[e])
                                                    : scores[e] * (dscores[e] - inner);
    }
  }
}

PIPELAB_SIMD float DotOfVectors(const float* a, const float* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace cpu
}  // namespace pipelab
