// Which passes of one stage read what the passes of another stage make: the one relation that the
// validator, Lower, the simulator, the runtime and the checkers ask, in both directions.
//
//   const PassMap outputs = schedule.Outputs(edge);      // forwards of edge.to read edge.from's
//   const PassMap gradients = schedule.Gradients(edge);  // backwards of edge.from read edge.to's
//   for (int m : outputs.Sources(p)) ...   // the passes whose values pass p of the reader reads
//   for (int p : outputs.Readers(m)) ...   // the passes that are first to read the value of pass m
//
// A schedule says `Reads` of an edge, once for its outputs and once for its gradients. The numbers
// of passes at the two ends decide the rest: where they differ under kSame, one end has fewer and
// larger micro-batches.
#ifndef PIPELAB_PIPELINES_IR_FLOW_H_
#define PIPELAB_PIPELINES_IR_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace pipelab {

// How a pass finds the value that it reads along an edge.
struct Reads {
  enum class Kind : uint8_t {
    kSame,  // The value has the pass's own samples.
    kNone,  // Nothing is read: stages learn locally (PPLL, arXiv 2411.12780), or only prepare data.
    // The value of `number` passes before; the first `number` passes have zeros, and the last
    // `number` values are dropped (PARTIME, arXiv 2210.09147).
    kLate,
    kList,  // Schedule::carried names the earlier pass, or none; so such an edge may lead back.
    // One of the last `number` values: the newest one if no pass has read it yet, else one that is
    // drawn with a number that depends on stage and pass alone. With passes spread evenly over the
    // step, the newest value for pass p is that of pass floor(p * made / taken). So every value is
    // read by a slower stage's followers, and equal numbers of passes read each other's in order
    // (Belilovsky et al., "Decoupled greedy learning", ICML 2020).
    kReplay,
  };
  Kind kind = Kind::kSame;
  int number = 0;

  static constexpr Reads None() { return {Kind::kNone, 0}; }
  static constexpr Reads Late(int passes) {
    return passes == 0 ? Reads() : Reads{Kind::kLate, passes};
  }
  static constexpr Reads List() { return {Kind::kList, 0}; }
  static constexpr Reads Replay(int window) { return {Kind::kReplay, window}; }

  bool same() const { return kind == Kind::kSame; }
  bool none() const { return kind == Kind::kNone; }
  bool late() const { return kind == Kind::kLate; }
  bool list() const { return kind == Kind::kList; }
  bool replay() const { return kind == Kind::kReplay; }
  friend bool operator==(const Reads& a, const Reads& b) {
    return a.kind == b.kind && a.number == b.number;
  }
  friend bool operator!=(const Reads& a, const Reads& b) { return !(a == b); }
};

// So many passes that follow one another.
struct PassRange {
  int first = 0, count = 0;

  class Iterator {
   public:
    explicit Iterator(int pass) : pass_(pass) {}
    int operator*() const { return pass_; }
    Iterator& operator++() {
      ++pass_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return pass_ != other.pass_; }

   private:
    int pass_;
  };
  Iterator begin() const { return Iterator(first); }
  Iterator end() const { return Iterator(first + count); }
  bool empty() const { return count == 0; }
};

// [pass] The earlier pass whose value it reads, -1: none; and the other way round. A list is sound
// where each source is an earlier pass and none is named twice, which the validator checks.
class PassList {
 public:
  PassList() = default;
  PassList(std::vector<int32_t> sources);            // NOLINT(google-explicit-constructor)
  PassList(std::initializer_list<int32_t> sources);  // NOLINT(google-explicit-constructor)

  void push_back(int32_t source) { Set(sources_.size(), source); }
  // `pass` is one of the list, or the next one.
  void Set(size_t pass, int32_t source);

  bool empty() const { return sources_.empty(); }
  size_t size() const { return sources_.size(); }
  int32_t operator[](size_t pass) const { return sources_[pass]; }
  const std::vector<int32_t>& sources() const { return sources_; }
  // The pass that reads the value of `made`, -1: none.
  int32_t Reader(size_t made) const { return made < readers_.size() ? readers_[made] : -1; }
  friend bool operator==(const PassList& a, const PassList& b) { return a.sources_ == b.sources_; }

 private:
  std::vector<int32_t> sources_, readers_;
};

// One direction of an edge.
class PassMap {
 public:
  // `reader` is the stage that reads, `made` and `taken` are the passes of the two ends. `list`
  // outlives the map.
  PassMap(Reads reads, int reader, int made, int taken, const PassList* list)
      : reads_(reads), reader_(reader), made_(made), taken_(taken), list_(list) {}

  const Reads& reads() const { return reads_; }
  // The passes whose values pass `pass` of the reader reads: several where its own samples are
  // several passes of the maker.
  PassRange Sources(int pass) const {
    if (reads_.same() && made_ == taken_) return {pass, 1};
    if (reads_.none()) return {};
    if (reads_.late())
      return pass < reads_.number ? PassRange() : PassRange{pass - reads_.number, 1};
    return OtherSources(pass);
  }
  // The passes that are first to read the value of the maker's pass `made`. With kReplay later ones
  // may read it, too.
  PassRange Readers(int made) const {
    if (reads_.same() && made_ == taken_) return {made, 1};
    return OtherReaders(made);
  }
  // Under which of its own numbers the reader's pass has the samples that it reads: where both ends
  // have equal passes, the maker's pass. The pass must read something.
  int SamplePass(int pass) const { return reads_.same() ? pass : Sources(pass).first; }
  // The first pass that reads what has this number; -1: none does.
  int FirstReader(int sample_pass) const {
    if (reads_.same()) return sample_pass;
    const PassRange readers = OtherReaders(sample_pass);
    return readers.empty() ? -1 : readers.first;
  }
  // Whether the pass reads something, as the first one, and whether no later one reads it.
  bool IsFirstRead(int pass) const {
    return !Sources(pass).empty() && FirstReader(SamplePass(pass)) == pass;
  }
  bool IsLastRead(int pass) const;
  // Whether some value is read in several passes, or in none.
  bool HasUnequalPasses() const { return reads_.replay() && made_ != taken_; }

 private:
  PassRange OtherSources(int pass) const;
  PassRange OtherReaders(int made) const;
  int Newest(int64_t pass) const { return static_cast<int>(pass * made_ / taken_); }
  int FirstReaderOfNewest(int made) const;
  int ReplaySource(int pass) const;

  Reads reads_;
  int reader_, made_, taken_;
  const PassList* list_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_FLOW_H_
