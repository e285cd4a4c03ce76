#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

// f(edge, source, target) for every edge in order.
template <class F>
void ForEachEdge(const GraphEdges& edges, const F& f) {
  for (int64_t t = 0; t + 1 < static_cast<int64_t>(edges.offsets_T1.size()); ++t) {
    for (int64_t e = edges.offsets_T1[t]; e < edges.offsets_T1[t + 1]; ++e) {
      f(e, int64_t{edges.sources_E[e]}, t);
    }
  }
}

double FactorOf(const GraphEdges& edges, AggregateMode mode, int64_t t) {
  const int32_t degree = edges.offsets_T1[t + 1] - edges.offsets_T1[t];
  return mode == AggregateMode::kMean && degree > 0 ? 1.0 / degree : 1.0;
}

double Leaky(double x, double slope) { return x > 0 ? x : slope * x; }

}  // namespace

void DropRows(Indices ids_M, const DropoutMask& mask, int64_t c, In x_MC, Out y_MC) {
  for (size_t i = 0; i < ids_M.size(); ++i) {
    DropoutMask of_row = mask;
    of_row.offset += static_cast<uint64_t>(ids_M[i]) * c;
    Dropout(x_MC.subspan(i * c, c), of_row, y_MC.subspan(i * c, c));
  }
}

void Aggregate(const GraphEdges& edges, AggregateMode mode, int64_t c, In x_SC, Out y_TC) {
  const bool self = mode == AggregateMode::kSelfAndSum;
  for (size_t i = 0; i < y_TC.size(); ++i) y_TC[i] = self ? x_SC[i] : 0;
  ForEachEdge(edges, [&](int64_t, int64_t s, int64_t t) {
    const double factor = FactorOf(edges, mode, t);
    for (int64_t k = 0; k < c; ++k) y_TC[t * c + k] += factor * x_SC[s * c + k];
  });
}

void AggregateGradient(const GraphEdges& edges, AggregateMode mode, int64_t c, In dy_TC,
                       Out dx_SC) {
  std::fill(dx_SC.begin(), dx_SC.end(), 0.0);
  if (mode == AggregateMode::kSelfAndSum) std::copy(dy_TC.begin(), dy_TC.end(), dx_SC.begin());
  ForEachEdge(edges, [&](int64_t, int64_t s, int64_t t) {
    const double factor = FactorOf(edges, mode, t);
    for (int64_t k = 0; k < c; ++k) dx_SC[s * c + k] += factor * dy_TC[t * c + k];
  });
}

void HeadProducts(int64_t c, int64_t heads, In x_MC, In w_C, Out y_MH) {
  const int64_t size = c / heads;
  std::fill(y_MH.begin(), y_MH.end(), 0.0);
  for (size_t i = 0; i < x_MC.size(); ++i) y_MH[i / size] += x_MC[i] * w_C[i % c];
}

void HeadProductsInputGradient(int64_t c, int64_t heads, In dy_MH, In w_C, Out dx_MC) {
  for (size_t i = 0; i < dx_MC.size(); ++i) dx_MC[i] += dy_MH[i / (c / heads)] * w_C[i % c];
}

void HeadProductsWeightGradient(int64_t c, int64_t heads, In x_MC, In dy_MH, Out dw_C) {
  for (size_t i = 0; i < x_MC.size(); ++i) dw_C[i % c] += dy_MH[i / (c / heads)] * x_MC[i];
}

void EdgeSoftmax(const GraphEdges& edges, double slope, int64_t heads, In source_SH, In target_TH,
                 Out a_EH) {
  for (int64_t h = 0; h < heads; ++h) {
    std::vector<double> most(target_TH.size() / heads, -INFINITY), sum(most.size());
    const auto score = [&](int64_t s, int64_t t) {
      return Leaky(source_SH[s * heads + h] + target_TH[t * heads + h], slope);
    };
    ForEachEdge(edges,
                [&](int64_t, int64_t s, int64_t t) { most[t] = std::max(most[t], score(s, t)); });
    ForEachEdge(edges, [&](int64_t e, int64_t s, int64_t t) {
      sum[t] += a_EH[e * heads + h] = std::exp(score(s, t) - most[t]);
    });
    ForEachEdge(edges, [&](int64_t e, int64_t, int64_t t) { a_EH[e * heads + h] /= sum[t]; });
  }
}

void EdgeSoftmaxGradient(const GraphEdges& edges, double slope, int64_t heads, In source_SH,
                         In target_TH, In a_EH, Out da_EH, Out dsource_SH, Out dtarget_TH) {
  std::fill(dsource_SH.begin(), dsource_SH.end(), 0.0);
  std::fill(dtarget_TH.begin(), dtarget_TH.end(), 0.0);
  for (int64_t h = 0; h < heads; ++h) {
    std::vector<double> inner(dtarget_TH.size() / heads);
    ForEachEdge(edges, [&](int64_t e, int64_t, int64_t t) {
      inner[t] += a_EH[e * heads + h] * da_EH[e * heads + h];
    });
    ForEachEdge(edges, [&](int64_t e, int64_t s, int64_t t) {
      const double sum = source_SH[s * heads + h] + target_TH[t * heads + h];
      double& d = da_EH[e * heads + h];
      d = a_EH[e * heads + h] * (d - inner[t]) * (sum > 0 ? 1 : slope);
      dsource_SH[s * heads + h] += d;
      dtarget_TH[t * heads + h] += d;
    });
  }
}

void Weighed(const GraphEdges& edges, int64_t c, int64_t heads, In a_EH, In x_SC, Out y_TC) {
  std::fill(y_TC.begin(), y_TC.end(), 0.0);
  ForEachEdge(edges, [&](int64_t e, int64_t s, int64_t t) {
    for (int64_t k = 0; k < c; ++k) {
      y_TC[t * c + k] += a_EH[e * heads + k / (c / heads)] * x_SC[s * c + k];
    }
  });
}

void WeighedGradient(const GraphEdges& edges, int64_t c, int64_t heads, In a_EH, In x_SC, In dy_TC,
                     Out da_EH, Out dx_SC) {
  std::fill(da_EH.begin(), da_EH.end(), 0.0);
  std::fill(dx_SC.begin(), dx_SC.end(), 0.0);
  ForEachEdge(edges, [&](int64_t e, int64_t s, int64_t t) {
    for (int64_t k = 0; k < c; ++k) {
      const int64_t at = e * heads + k / (c / heads);
      da_EH[at] += dy_TC[t * c + k] * x_SC[s * c + k];
      dx_SC[s * c + k] += a_EH[at] * dy_TC[t * c + k];
    }
  });
}

}  // namespace reference
}  // namespace pipelab
