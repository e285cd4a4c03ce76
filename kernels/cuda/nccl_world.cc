#include "kernels/cuda/nccl_world.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace pipelab {

absl::StatusOr<std::string> NcclWorld::NewNames() const {
  std::string names;
  for (int other = 0; other < size_; ++other) {
    for (const bool needed : {other != rank_, other > rank_}) {
      if (!needed) continue;
      PIPELAB_ASSIGN_OR_RETURN(const std::string id, NcclLink::NewId());
      names += id;
    }
  }
  return names;
}

absl::Status NcclWorld::Connect(const std::vector<std::string>& names, absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string any, NcclLink::NewId());
  const size_t length = any.size();
  // The place of (from, to)'s name in from's list, and whether it is that of collectives.
  const auto name = [&](int from, int to, bool collective) {
    size_t place = 0;
    for (int other = 0; other < to; ++other) place += (other != from) + (other > from);
    return names[from].substr((place + (collective ? 1 : 0)) * length, length);
  };
  std::vector<NcclLink*> links;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    const int low = std::min(rank_, other), high = std::max(rank_, other);
    for (auto& [link, id, end] :
         {std::make_tuple(&out_[other], name(rank_, other, false), 0),
          std::make_tuple(&in_[other], name(other, rank_, false), 1),
          std::make_tuple(&beside_[other], name(low, high, true), rank_ == low ? 0 : 1)}) {
      *link = std::make_unique<NcclLink>([run = run_] { return run->Check(); });
      PIPELAB_RETURN_IF_ERROR((*link)->Begin(id, end));
      links.push_back(link->get());
    }
  }
  PIPELAB_RETURN_IF_ERROR(AwaitLinks(links, limit));
  const NcclBytes bytes(device_.get(), 2 * static_cast<int64_t>(links.size()) + 1);
  PIPELAB_RETURN_IF_ERROR(device_->Finish());
  for (size_t i = 0; i < links.size(); ++i) {
    PIPELAB_RETURN_IF_ERROR(links[i]->BeginConnect(bytes.data() + 2 * i));
  }
  PIPELAB_RETURN_IF_ERROR(AwaitLinks(links, limit));
  for (NcclLink* link : links) {
    PIPELAB_ASSIGN_OR_RETURN(const auto done, link->Send(nullptr, 0));
    PIPELAB_RETURN_IF_ERROR(Await([&] { return done->Ready(); }, limit,
                                  [] { return std::string("NCCL's first bytes did not arrive"); }));
  }
  return absl::OkStatus();
}

absl::Status NcclWorld::AwaitLinks(const std::vector<NcclLink*>& links, absl::Duration limit) {
  const auto all_ready = [&]() -> absl::StatusOr<bool> {
    for (NcclLink* link : links) {
      PIPELAB_ASSIGN_OR_RETURN(const bool ready, link->Ready());
      if (!ready) return false;
    }
    return true;
  };
  return Await(all_ready, limit, [&] {
    return absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(limit),
                        " for NCCL to join the ranks");
  });
}

absl::Status NcclWorld::OrFail(absl::Status status) {
  if (status.ok()) return status;
  if (run_->ended()) return CheckRun();
  status = run_->Fail(std::move(status));
  AbortLinks();
  return status;
}

void NcclWorld::AbortLinks() {
  for (auto* links : {&out_, &in_, &beside_}) {
    for (const std::unique_ptr<NcclLink>& link : *links) {
      if (link != nullptr) link->Abort();
    }
  }
}

void NcclWorld::Close(bool abort) {
  if (run_->ended() || abort) AbortLinks();
  beside_.clear();
  in_.clear();
  out_.clear();
}

}  // namespace pipelab
