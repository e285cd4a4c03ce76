#include "pipelines/ir/flow.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {

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
      if (taken_ >= made_) return {pass / (taken_ / made_), 1};
      return {pass * (made_ / taken_), made_ / taken_};
    case Reads::Kind::kNone:
    case Reads::Kind::kLate:
      break;  // Sources has answered
    case Reads::Kind::kList: {
      const int32_t source = (*list_)[pass];
      return source < 0 ? PassRange() : PassRange{source, 1};
    }
    case Reads::Kind::kReplay: {
      const int source = ReplaySource(pass);
      return {source, 1};
    }
  }
  return {};
}

PassRange PassMap::OtherReaders(int made) const {
  switch (reads_.kind) {
    case Reads::Kind::kSame:
      if (made_ >= taken_) return {made / (made_ / taken_), 1};
      return {made * (taken_ / made_), taken_ / made_};
    case Reads::Kind::kNone:
      return {};
    case Reads::Kind::kLate:
      if (made + reads_.number >= taken_) return {};
      return {made + reads_.number, 1};
    case Reads::Kind::kList: {
      const int32_t reader = list_->Reader(made);
      return reader < 0 ? PassRange() : PassRange{reader, 1};
    }
    case Reads::Kind::kReplay: {
      const int reader = FirstReaderOfNewest(made);
      return reader < 0 ? PassRange() : PassRange{reader, 1};
    }
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
