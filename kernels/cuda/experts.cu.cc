// Mixtures of experts: kernels/reference/experts.cc.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr int32_t kDropped = -1;  // kernels/expert_kernels.h

// The scores of one token: their softmax by its largest logit and sum, or sigmoids.
template <class T>
struct Scores {
  const T* logits;
  bool sigmoid;
  float most, sum;

  PIPELAB_DEVICE Scores(const RouterShape& s, const T* of)
      : logits(of), sigmoid(s.scores == RouterScores::kSigmoid), most(0.0f), sum(1.0f) {
    if (sigmoid) return;
    most = -INFINITY;
    for (int64_t e = 0; e < s.experts; ++e) most = fmaxf(most, static_cast<float>(of[e]));
    sum = 0.0f;
    for (int64_t e = 0; e < s.experts; ++e) sum += expf(static_cast<float>(of[e]) - most);
  }
  PIPELAB_DEVICE float Raw(int64_t e) const {
    const float logit = logits[e];
    return sigmoid ? 1.0f / (1.0f + expf(-logit)) : expf(logit - most);
  }
  PIPELAB_DEVICE float operator()(int64_t e) const { return Raw(e) / sum; }
};

PIPELAB_DEVICE inline bool IsAmong(const int32_t* experts, int64_t count, int64_t e) {
  for (int64_t j = 0; j < count; ++j) {
    if (experts[j] == e) return true;
  }
  return false;
}

// The nodes that a token's experts may lie on, a bit each, by the experts' scores.
template <class Score>
PIPELAB_DEVICE inline uint64_t OpenNodes(const RouterShape& s, const Score& score) {
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
        second = fminf(fmaxf(value, second), first);
        first = fmaxf(first, value);
      }
      if (best >= 0 && !(first + second > best_sum)) continue;
      best = n;
      best_sum = first + second;
    }
    open |= uint64_t{1} << best;
  }
  return open;
}

template <class T>
PIPELAB_DEVICE inline void Choose(const RouterShape& s, const T* logits, uint64_t open,
                                  int32_t* experts) {
  const int64_t size = s.experts_of_node();
  for (int64_t j = 0; j < s.chosen; ++j) {
    int64_t best = -1;
    float most = 0.0f;
    for (int64_t e = 0; e < s.experts; ++e) {
      const float logit = logits[e];
      if (best >= 0 && !(logit > most)) continue;  // most are, and it costs least
      if ((open >> e / size & 1) == 0 || IsAmong(experts, j, e)) continue;
      best = e;
      most = logit;
    }
    experts[j] = static_cast<int32_t>(best);
  }
  for (int64_t j = 0; j < s.shared; ++j) {
    experts[s.chosen + j] = static_cast<int32_t>(s.experts + j);
  }
}

// Choices of expert g in a sample.
PIPELAB_DEVICE inline int32_t CountOf(const RouterShape& s, const int32_t* experts, int64_t sample,
                                      int64_t g) {
  const int64_t of_sample = s.tokens * s.choices();
  int32_t count = 0;
  for (int64_t i = 0; i < of_sample; ++i) count += experts[sample * of_sample + i] == g;
  return count;
}

}  // namespace

template <class T>
void Route(Queue& queue, const RouterShape& s, const T* logits, float* weights, int32_t* experts,
           int32_t* places, int32_t* begins) {
  const int64_t k = s.choices(), groups = s.groups();
  int32_t* const counts = static_cast<int32_t*>(queue.Scratch(s.samples * groups * 4));
  if (counts == nullptr) return;
  ForEach(queue, "ChooseExperts", s.rows(), [=] PIPELAB_DEVICE(int64_t m) {
    int32_t* const chosen = experts + m * k;
    const Scores<T> scores(s, logits + m * s.experts);
    const uint64_t open = OpenNodes(s, [&](int64_t e) { return scores.Raw(e); });
    Choose(s, logits + m * s.experts, open, chosen);
    float sum = scores.sum;
    if (s.normalized) {
      sum = 0.0f;
      for (int64_t j = 0; j < s.chosen; ++j) sum += scores.Raw(chosen[j]);
    }
    for (int64_t j = 0; j < k; ++j) {
      weights[m * k + j] = j < s.chosen ? s.scale * (scores.Raw(chosen[j]) / sum) : 1.0f;
    }
  });
  ForEach(queue, "CountChoices", s.samples * groups, [=] PIPELAB_DEVICE(int64_t i) {
    const int32_t count = CountOf(s, experts, i / groups, i % groups);
    const bool limited = s.capacity > 0 && i % groups < s.experts && count > s.capacity;
    counts[i] = limited ? static_cast<int32_t>(s.capacity) : count;
  });
  ForEach(queue, "BeginsOfExperts", groups + 1, [=] PIPELAB_DEVICE(int64_t g) {
    int32_t sum = 0;
    for (int64_t i = 0; i < s.samples * groups; ++i) sum += i % groups < g ? counts[i] : 0;
    begins[g] = sum;
  });
  ForEach(queue, "PlaceChoices", s.samples * groups, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t sample = i / groups, g = i % groups, of_sample = s.tokens * k;
    int32_t row = begins[g];
    for (int64_t before = g; before < i; before += groups) row += counts[before];
    const int32_t end = row + counts[i];
    for (int64_t at = sample * of_sample; at < (sample + 1) * of_sample; ++at) {
      if (experts[at] == g) places[at] = row < end ? row++ : kDropped;
    }
  });
}

template <class T>
void RouteGradient(Queue& queue, const RouterShape& s, const float* dweights, const T* logits,
                   const int32_t* experts, float balance, T* dlogits) {
  const int64_t k = s.choices();
  float* const loads = static_cast<float*>(queue.Scratch(s.samples * s.experts * 4));
  if (loads == nullptr) return;
  const float even = static_cast<float>(s.experts) / static_cast<float>(s.chosen * s.tokens);
  if (balance != 0.0f) {
    ForEach(queue, "LoadsOfExperts", s.samples * s.experts, [=] PIPELAB_DEVICE(int64_t i) {
      loads[i] = even * static_cast<float>(CountOf(s, experts, i / s.experts, i % s.experts));
    });
  }
  ForEach(queue, "RouteGradient", s.rows(), [=] PIPELAB_DEVICE(int64_t m) {
    const Scores<T> scores(s, logits + m * s.experts);
    const int32_t* const chosen = experts + m * k;
    const float* const d = dweights + m * k;
    const float* const loads_E = loads + m / s.tokens * s.experts;
    float part = 1.0f, mean = 0.0f;
    if (s.normalized) {
      part = 0.0f;
      for (int64_t j = 0; j < s.chosen; ++j) part += scores(chosen[j]);
      for (int64_t j = 0; j < s.chosen; ++j) mean += d[j] * (scores(chosen[j]) / part);
    }
    float all = 0.0f, load = 0.0f;
    if (balance != 0.0f) {
      for (int64_t e = 0; e < s.experts; ++e) all += scores(e);
      for (int64_t e = 0; e < s.experts; ++e) load += loads_E[e] * scores(e) / all;
    }
    const auto slope = [&](int64_t e) {
      float of = 0.0f;
      for (int64_t j = 0; j < s.chosen; ++j) {
        if (chosen[j] == e) of = s.scale * (d[j] - mean) / part;
      }
      return balance != 0.0f ? of + balance * (loads_E[e] - load) / all : of;
    };
    float inner = 0.0f;
    for (int64_t e = 0; e < s.experts && !scores.sigmoid; ++e) inner += slope(e) * scores(e);
    for (int64_t e = 0; e < s.experts; ++e) {
      const float score = scores(e);
      dlogits[m * s.experts + e] =
          scores.sigmoid ? slope(e) * score * (1.0f - score) : score * (slope(e) - inner);
    }
  });
}

template <class T>
void GatherRows(Queue& queue, const ExpertRows& r, const T* x, T* all) {
  const int64_t c = r.columns;
  ForEach(queue, "GatherRows", r.tokens * r.choices * c, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t choice = i / c, place = r.places[choice];
    if (place != kDropped) all[place * c + i % c] = x[choice / r.choices * c + i % c];
  });
}

template <class T>
void SumOfChoices(Queue& queue, const ExpertRows& r, const T* all, T* y) {
  const int64_t c = r.columns;
  ForEach(queue, "SumOfChoices", r.tokens * c, [=] PIPELAB_DEVICE(int64_t i) {
    float sum = 0.0f;
    for (int64_t j = 0; j < r.choices; ++j) {
      const int64_t place = r.places[i / c * r.choices + j];
      if (place != kDropped) sum += static_cast<float>(all[place * c + i % c]);
    }
    y[i] = sum;
  });
}

template <class T>
void Weigh(Queue& queue, const ExpertRows& r, const float* weights, T* x) {
  const int64_t c = r.columns;
  ForEach(queue, "Weigh", r.tokens * r.choices * c, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t place = r.places[i / c];
    if (place == kDropped) return;
    const float value = x[place * c + i % c];
    x[place * c + i % c] = value * weights[i / c];
  });
}

template <class T>
void WeighGradient(Queue& queue, const ExpertRows& r, const float* weights, const T* x, T* dy,
                   float* dweights) {
  const int64_t c = r.columns;
  ForEachBlock(queue, "WeighGradient", r.tokens * r.choices, 0,
               [=] PIPELAB_DEVICE(Block & block, int64_t choice) {
                 const int64_t place = r.places[choice];
                 const float sum = block.Sum(place == kDropped ? 0 : c, [&](int64_t j) {
                   return static_cast<float>(dy[place * c + j]) *
                          static_cast<float>(x[place * c + j]);
                 });
                 block.ForEach(place == kDropped ? 0 : c, [&](int64_t j) {
                   const float value = dy[place * c + j];
                   dy[place * c + j] = value * weights[choice];
                 });
                 block.ForEach(1, [&](int64_t) { dweights[choice] = sum; });
               });
}

namespace {

// Whose row it is; call.groups where it is nobody's.
PIPELAB_DEVICE inline int64_t ExpertOf(const ExpertProducts& call, int64_t row) {
  int64_t low = 0, high = call.groups;  // the first one that ends behind the row
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (call.begins[middle + 1] > row) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

template <class T>
void ExpertProduct(Queue& queue, const ExpertProducts& call, const T* x, const T* w, T* y) {
  const int64_t k = call.k, n = call.n;
  ForEach(queue, "ExpertProduct", call.rows * n, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t row = i / n, j = i % n, g = ExpertOf(call, row);
    if (g == call.groups) return;
    float sum = 0.0f;
    for (int64_t l = 0; l < k; ++l) {
      sum += static_cast<float>(x[row * k + l]) * static_cast<float>(w[(g * k + l) * n + j]);
    }
    y[i] = sum;
  });
}

template <class T>
void ExpertProductInputGradient(Queue& queue, const ExpertProducts& call, const T* dy, const T* w,
                                T* dx) {
  const int64_t k = call.k, n = call.n;
  ForEach(queue, "ExpertProductInputGradient", call.rows * k, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t row = i / k, l = i % k, g = ExpertOf(call, row);
    if (g == call.groups) return;
    float sum = 0.0f;
    for (int64_t j = 0; j < n; ++j) {
      sum += static_cast<float>(dy[row * n + j]) * static_cast<float>(w[(g * k + l) * n + j]);
    }
    dx[i] = sum;
  });
}

template <class T>
void ExpertProductWeightGradient(Queue& queue, const ExpertProducts& call, const T* x, const T* dy,
                                 float* dw) {
  const int64_t k = call.k, n = call.n;
  ForEach(queue, "ExpertProductWeightGradient", call.groups * k * n, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t g = i / (k * n), l = i / n % k, j = i % n;
    float sum = 0.0f;
    for (int64_t row = call.begins[g]; row < call.begins[g + 1]; ++row) {
      sum += static_cast<float>(x[row * k + l]) * static_cast<float>(dy[row * n + j]);
    }
    dw[i] += sum;
  });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                            \
  template void Route(Queue&, const RouterShape&, const T*, float*, int32_t*, int32_t*, int32_t*); \
  template void RouteGradient(Queue&, const RouterShape&, const float*, const T*, const int32_t*,  \
                              float, T*);                                                          \
  template void GatherRows(Queue&, const ExpertRows&, const T*, T*);                               \
  template void SumOfChoices(Queue&, const ExpertRows&, const T*, T*);                             \
  template void Weigh(Queue&, const ExpertRows&, const float*, T*);                                \
  template void WeighGradient(Queue&, const ExpertRows&, const float*, const T*, T*, float*);      \
  template void ExpertProduct(Queue&, const ExpertProducts&, const T*, const T*, T*);              \
  template void ExpertProductInputGradient(Queue&, const ExpertProducts&, const T*, const T*, T*); \
  template void ExpertProductWeightGradient(Queue&, const ExpertProducts&, const T*, const T*,     \
                                            float*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE

}  // namespace gpu
}  // namespace pipelab
