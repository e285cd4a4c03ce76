#include "models/specs/expert_costs.h"

#include <algorithm>

#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

// Memory of a pass above its start, step by step.
struct Level {
  Bytes now, peak;
  Level& Take(Bytes b) {
    now += b;
    peak = std::max(peak, now);
    return *this;
  }
  Level& Drop(Bytes b) {
    now -= b;
    return *this;
  }
};

struct ExpertBytes {
  ExpertBytes(const ExpertWork& work, const ExpertSizes& s, NumberWidth width)
      : w(work),
        own(width(w.own * s.c)),
        all(width(w.all * s.c)),
        mc(width(w.m * s.c)),
        rc(width(w.routed * s.c)),
        nc(width(w.came * s.c)),
        nf(width(w.came * w.routed_f)),
        sf(width(w.all * w.shared_f)),
        statistics(FloatBytes(s.statistics * w.own)),
        logits(width(w.m * s.experts)),
        begins(FloatBytes(s.experts + 1)),
        counts(FloatBytes(w.away ? s.experts : 0)),
        exchange(FloatBytes(w.away ? w.came + w.experts + 1 : 0)),
        weights(FloatBytes(w.routed)),
        came_weights(FloatBytes(w.came)),
        dropout(s.dropout),
        shared(s.shared > 0) {}

  bool gathers() const { return w.all != w.own && !w.routes_own; }
  Bytes Kept() const {
    return statistics + logits + weights * 2 + came_weights + begins + counts + nf * 2 + sf * 2 +
           (w.away ? nc : none);
  }
  // Rows of the branch's gradient for the weight part, where experts do not have them.
  Bytes KeptBranch() const { return shared ? all : w.away ? none : mc; }
  Bytes KeptGradients() const {
    return nf * 2 + sf * 2 + (w.away ? nc : none) + KeptBranch() + own;
  }

  Bytes Forward() const {
    Level l;
    l.Take(statistics).Take(own);
    if (gathers()) l.Take(all).Drop(own);
    if (shared) {
      if (w.routes_own) l.Take(all);
      l.Take(sf * 2);
      if (w.routes_own) l.Drop(all);
      l.Take(sf).Take(all).Drop(sf);
      if (w.routes_own) l.Take(own).Drop(all);
    }
    l.Take(logits).Take(weights * 3 + begins).Take(counts * 2).Drop(counts);
    l.Take(rc).Drop(mc);  // of the norm's output
    if (w.away) {
      l.Take(exchange).Take(weights).Take(came_weights).Drop(weights * 2);
      l.Take(nc).Drop(rc).Take(nc).Drop(nc);
    }
    l.Take(nf * 2);
    if (!w.away) l.Drop(rc);
    l.Take(nf).Take(nc).Drop(nf);
    if (w.away) l.Take(nc).Drop(nc).Take(rc).Drop(nc);
    l.Take(mc);
    l.Drop(rc);
    if (shared) l.Drop(mc);
    if (gathers()) l.Take(own);
    return l.peak;
  }

  Bytes BackwardInput() const {
    Level l;
    const Bytes branch = dropout ? own : none;  // else dy itself
    l.Take(branch);
    if (gathers()) l.Take(all).Drop(branch);
    l.Take(exchange);
    if (!w.away) l.Take(weights);
    l.Take(rc);
    if (w.away) {
      if (!shared) l.Drop(gathers() ? all : branch);
      l.Take(nc).Drop(rc).Take(nc).Drop(nc);
    }
    l.Take(nf);
    if (!w.away) l.Drop(rc);
    l.Take(w.away ? came_weights : none).Take(nf).Drop(nf);
    if (w.away) l.Take(weights).Drop(came_weights).Take(weights).Drop(weights);
    l.Take(nf * 2).Drop(nf).Take(nc);
    if (w.away) l.Take(nc).Drop(nc).Take(rc).Drop(nc);
    l.Take(mc).Drop(rc).Drop(weights).Take(mc).Drop(mc);
    if (shared) {
      if (w.routes_own) l.Take(all).Drop(branch);
      l.Take(sf).Take(sf * 2).Drop(sf).Take(all);
      if (w.routes_own) l.Take(own).Drop(all);
      l.Drop(w.routes_own ? own : all);
    }
    if (gathers()) l.Take(own).Drop(all);
    l.Take(own);
    return l.peak;
  }

  Bytes BackwardWeight() const {
    Level l;
    l.Take(exchange).Take(nf).Drop(nf * 2);
    l.Take(w.away ? none : rc).Drop(w.away ? nc : rc).Drop(nf);
    if (shared) l.Take(sf).Drop(sf * 2).Drop(sf);
    l.Drop(KeptBranch()).Drop(own).Take(own);
    if (gathers()) l.Take(all).Drop(own);
    if (!w.away) l.Take(rc).Drop(rc);
    l.Drop(nf * 2).Drop(w.away ? nc : none);
    if (shared && w.routes_own) l.Take(all);
    return l.peak;
  }

  const ExpertWork w;
  const Bytes none;
  const Bytes own, all, mc, rc, nc;  // rows of the hidden width
  const Bytes nf, sf;                // of the inner columns
  const Bytes statistics, logits, begins, counts, exchange, weights, came_weights;
  const bool dropout, shared;
};

}  // namespace

LayerCosts ExpertCosts(const ExpertWork& w, const ExpertSizes& s, NumberWidth width) {
  const ExpertBytes bytes(w, s, width);
  LayerCosts costs;
  costs.forward = MatmulFlops(w.m, s.experts, s.c) + 3 * MatmulFlops(w.routed, w.routed_f, s.c) +
                  3 * MatmulFlops(w.all, w.shared_f, s.c);
  costs.backward_input = costs.forward;
  costs.backward_weight = costs.forward;
  costs.output = bytes.own;
  costs.kept = bytes.Kept();
  costs.kept_for_weight = costs.kept + bytes.KeptGradients();
  costs.forward_peak = bytes.Forward();
  costs.backward_input_peak = bytes.BackwardInput();
  costs.backward_weight_peak = bytes.BackwardWeight();
  costs.backward_peak =
      std::max(costs.backward_input_peak, bytes.KeptGradients() + costs.backward_weight_peak);
  return costs;
}

}  // namespace pipelab
