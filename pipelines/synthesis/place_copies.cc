#include "pipelines/synthesis/place_copies.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pipelines/synthesis/evaluate.h"

namespace pipelab {
namespace {

class DeviceCopies {
 public:
  // `begins`: of the passes, where nothing is short.
  DeviceCopies(const SynthesisProblem& p, int device, const std::vector<Symbol>& passes,
               const std::vector<int64_t>& begins, double lead)
      : p_(p), device_(device), passes_(passes), begins_(begins), lead_(lead) {
    std::vector<std::vector<int>> forwards(p.stages());
    std::vector<int> inputs(p.stages(), 0);
    trip_.assign(passes.size(), -1);
    for (size_t i = 0; i < passes.size(); ++i) {
      const int s = StageOf(passes[i]);
      if (!p.MayOffload(s)) continue;
      if (KindOf(passes[i]) == kPassF) {
        forwards[s].push_back(static_cast<int>(i));
      } else if (KindOf(passes[i]) == kPassI) {
        const int n = inputs[s]++, mate = p.MateOf(n);
        const int forward = forwards[s][mate], last = n - n % p.slices + p.slices - 1;
        trip_[forward] = trip_[i] = static_cast<int>(trips_.size());
        trips_.push_back({s, mate % p.slices, forward, static_cast<int>(i), forwards[s][last]});
      }
    }
  }

  // Empty: what is at the host does not make room enough.
  std::vector<Symbol> Run() {
    for (size_t round = 0; round <= trips_.size(); ++round) {
      FindLatest();
      const int stuck = Go();
      if (stuck < 0) return std::move(word_);
      if (!Send(stuck)) break;
    }
    return {};
  }

 private:
  // A micro-batch of a stage, or a slice of one.
  struct Trip {
    int stage, slice;
    int forward, input, last_forward;  // passes; the last is of the micro-batch
    bool sent = false;
    int64_t latest = 0;  // its copy back begins
    bool out = false;
  };

  // From the last I on, each copy back in front of the one behind it.
  void FindLatest() {
    int64_t behind = kNoMakespan;
    for (size_t i = passes_.size(); i-- > 0;) {
      if (KindOf(passes_[i]) != kPassI || trip_[i] < 0) continue;
      Trip& trip = trips_[trip_[i]];
      trip.out = false;
      if (!trip.sent) continue;
      const int64_t copy = CopyOf(trip);
      behind = std::min(begins_[i], behind) - copy;
      trip.latest = behind - static_cast<int64_t>(lead_ * static_cast<double>(copy));
    }
  }

  // -1, or the pass that does not fit; word_ then is what is in front of it.
  int Go() {
    word_.clear();
    now_ = link_ = out_end_ = 0;
    level_ = leaving_ = Bytes(0);
    std::vector<int> outs, backs;  // trips that wait for their copies, in order
    std::vector<int> done(p_.symbols(), 0);
    size_t next_out = 0, next_back = 0;
    for (size_t i = 0; i < passes_.size(); ++i) {
      if (KindOf(passes_[i]) == kPassI && trip_[i] >= 0 && trips_[trip_[i]].sent) {
        backs.push_back(trip_[i]);
      }
    }
    for (size_t i = 0; i < passes_.size(); ++i) {
      const Symbol symbol = passes_[i];
      const int slice = p_.SliceOf(symbol, done[symbol]++);
      const OrderLimits::Use use = p_.Use(symbol, slice);
      const Bytes need = std::max(use.peak, use.change);
      now_ = std::max(now_, begins_[i]);
      const int64_t end = now_ + p_.Length(symbol, slice);
      const bool sent = trip_[i] >= 0 && trips_[trip_[i]].sent;
      const bool comes_back = sent && KindOf(symbol) == kPassI;
      while (next_out < outs.size() && (leaving_ == Bytes(0) || out_end_ <= now_ || !Fits(need) ||
                                        (comes_back && !trips_[trip_[i]].out))) {
        Copy(outs[next_out++], kCopyO);
      }
      while (next_back < backs.size() && trips_[backs[next_back]].out) {
        const Trip& trip = trips_[backs[next_back]];
        const bool now = trip.input == static_cast<int>(i);
        const Bytes change = p_.Moved(trip.stage, trip.slice);
        if (trip.last_forward >= static_cast<int>(i)) break;
        if (!now && (trip.latest >= end || !Fits(need + change - leaving_))) break;
        if (!Fits(change - leaving_)) return static_cast<int>(i);
        Copy(backs[next_back++], kCopyL);
      }
      if (!Fits(need)) return static_cast<int>(i);
      now_ = std::max(now_, begins_[i]) + p_.Length(symbol, slice);
      level_ += use.change;
      word_.push_back(symbol);
      if (!sent || KindOf(symbol) != kPassF) continue;
      word_.back() = SymbolOf(StageOf(symbol), kSentF);
      outs.push_back(trip_[i]);
    }
    return -1;
  }

  int64_t CopyOf(const Trip& trip) const {
    return p_.host_copy[trip.stage * p_.slices + trip.slice];
  }
  bool Fits(Bytes bytes) const { return level_ + bytes <= p_.limits.free[device_]; }

  void Copy(int trip, int kind) {
    const Bytes bytes = p_.Moved(trips_[trip].stage, trips_[trip].slice);
    if (leaving_ != Bytes(0)) now_ = std::max(now_, out_end_);
    level_ = level_ - leaving_;
    link_ = std::max(now_, link_) + CopyOf(trips_[trip]);
    leaving_ = kind == kCopyO ? bytes : Bytes(0);
    if (kind == kCopyO) {
      out_end_ = link_;
      trips_[trip].out = true;
    } else {
      level_ += bytes;
    }
    word_.push_back(SymbolOf(trips_[trip].stage, kind));
  }

  // Another one that is held when the pass begins.
  bool Send(int stuck) {
    int best = -1;
    bool best_out = false;
    for (size_t i = 0; i < trips_.size(); ++i) {
      const Trip& trip = trips_[i];
      if (trip.sent || trip.forward >= stuck || trip.input <= stuck) continue;
      const int64_t end = begins_[trip.forward] + p_.Length(passes_[trip.forward], trip.slice);
      const bool out = end + CopyOf(trip) <= begins_[stuck];
      if (best >= 0 && (best_out && !out)) continue;
      if (best >= 0 && best_out == out && trip.input <= trips_[best].input) continue;
      best = static_cast<int>(i);
      best_out = out;
    }
    if (best < 0) return false;
    trips_[best].sent = true;
    return true;
  }

  const SynthesisProblem& p_;
  const int device_;
  const std::vector<Symbol>& passes_;
  const std::vector<int64_t>& begins_;
  const double lead_;
  std::vector<Trip> trips_;
  std::vector<int> trip_;  // [pass] of an F or I; -1: none
  std::vector<Symbol> word_;
  int64_t now_ = 0, link_ = 0, out_end_ = 0;
  Bytes level_, leaving_;
};

}  // namespace

OrderWords CopiesAsNeeded(const SynthesisProblem& p, const OrderWords& passes, double lead) {
  if (p.limits.free.empty()) return passes;
  WordEvaluator evaluator(p);
  if (evaluator.Makespan(passes) == kNoMakespan) return {};
  OrderWords words(p.devices);
  for (int d = 0; d < p.devices; ++d) {
    words[d] = DeviceCopies(p, d, passes[d], evaluator.Begins(d), lead).Run();
    if (words[d].empty() || !IsWordOf(p, d, words[d])) return {};
  }
  return words;
}

}  // namespace pipelab
