#include "pipelines/ir/flow.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

// A pass, or none where it is negative.
PassRange OneOrNone(int pass) { return pass < 0 ? PassRange() : PassRange{pass, 1}; }

// The passes of a stage that runs `theirs` which share samples with pass `pass` of `ours`.
PassRange Sharing(int pass, int ours, int theirs) {
  if (ours >= theirs) return {pass / (ours / theirs), 1};
  return {pass * (theirs / ours), theirs / ours};
}

}  // namespace

PassList::PassList(std::vector<int32_t> sources) : sources_(std::move(sources)) {
  readers_.resize(sources_.size(), -1);
  for (size_t pass = 0; pass < sources_.size(); ++pass) Set(pass, sources_[pass]);
}

PassList::PassList(std::initializer_list<int32_t> sources)
    : PassList(std::vector<int32_t>(sources)) {}

// A list may be wrong until the validator has seen it, so that only what is in range has a reader.
void PassList::Set(size_t pass, int32_t source) {
  DCHECK_LE(pass, sources_.size());
  if (pass == sources_.size()) {
    sources_.push_back(-1);
    readers_.push_back(-1);
  }
  const auto in_range = [this](int32_t made) {
    return made >= 0 && made < static_cast<int32_t>(readers_.size());
  };
  const int32_t before = std::exchange(sources_[pass], source);
  if (in_range(before) && readers_[before] == static_cast<int32_t>(pass)) readers_[before] = -1;
  if (in_range(source)) readers_[source] = static_cast<int32_t>(pass);
}

PassRange PassMap::OtherSources(int pass) const {
  switch (reads_.kind) {
    case Reads::Kind::kSame:
      return Sharing(pass, taken_, made_);
    case Reads::Kind::kNone:
    case Reads::Kind::kLate:
      break;  // Sources has answered
    case Reads::Kind::kList:
      return OneOrNone((*list_)[pass]);
    case Reads::Kind::kReplay:
      return OneOrNone(ReplaySource(pass));
  }
  return {};
}

PassRange PassMap::OtherReaders(int made) const {
  switch (reads_.kind) {
    case Reads::Kind::kSame:
      return Sharing(made, made_, taken_);
    case Reads::Kind::kNone:
      return {};
    case Reads::Kind::kLate:
      return OneOrNone(made + reads_.number < taken_ ? made + reads_.number : -1);
    case Reads::Kind::kList:
      return OneOrNone(list_->Reader(made));
    case Reads::Kind::kReplay:
      return OneOrNone(FirstReaderOfNewest(made));
  }
  return {};
}

int PassMap::FirstReaderOfNewest(int made) const {
  const int64_t first = (int64_t{made} * taken_ + made_ - 1) / made_;
  return first < taken_ && Newest(first) == made ? static_cast<int>(first) : -1;
}

int PassMap::ReplaySource(int pass) const {
  const int newest = Newest(pass);
  const bool first = pass == 0 || newest > Newest(pass - 1);
  if (reads_.number <= 1 || first) return newest;
  const CounterRng rng(static_cast<uint64_t>(reader_), "replay");
  const auto kept = static_cast<uint64_t>(std::min(reads_.number, newest + 1));
  return newest - static_cast<int>(rng.Below(static_cast<uint64_t>(pass), kept));
}

bool PassMap::IsLastRead(int pass) const {
  if (!reads_.replay()) return true;
  const int source = ReplaySource(pass);
  for (int m = pass + 1; m < taken_ && Newest(m) < source + reads_.number; ++m) {
    if (ReplaySource(m) == source) return false;
  }
  return true;
}

}  // namespace pipelab
