// The part of SwarmCoordinator that ends a step: averages, then the commit.
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "pipelines/swarm/coordinator.h"

namespace pipelab {

// By peer.
std::map<int, std::vector<int>> SwarmCoordinator::SharesOf(int stage) const {
  std::map<int, std::vector<int>> of_peer;
  for (int m = 0; m < options_.job.micro_batches(); ++m) {
    of_peer[books_.at(step_).counted[stage][m]].push_back(m);
  }
  return of_peer;
}

bool SwarmCoordinator::AskAll(const std::map<int, swarm::Request>& requests, const char* what) {
  struct Asked {
    std::string address;
    absl::Status status;
    swarm::Reply reply;
  };
  std::map<int, Asked> asked;
  int64_t epoch = 0;
  {
    absl::MutexLock lock(&mutex_);
    epoch = epoch_;
    for (const auto& [peer, request] : requests) {
      const auto it = members_.find(peer);
      if (it == members_.end()) return false;  // meanwhile
      asked[peer].address = it->second.address;
    }
  }
  std::vector<std::thread> threads;
  for (const auto& [peer, request] : requests) {
    threads.emplace_back([this, epoch, request = request, to = &asked.at(peer)]() mutable {
      request.set_epoch(epoch);
      to->status = link_.Call(to->address, request, WaitLimit(options_.job), &to->reply);
    });
  }
  for (std::thread& t : threads) t.join();
  absl::MutexLock lock(&mutex_);
  bool all = true;
  for (const auto& [peer, a] : asked) {
    all &= a.status.ok() && a.reply.reduce().faults_size() == 0;
    if (!a.status.ok()) Drop(peer, absl::StrCat(what, ": ", a.status.message()));
    for (const swarm::Fault& fault : a.reply.reduce().faults()) {
      Drop(fault.peer(), absl::StrCat(what, ": ", fault.what()));
    }
  }
  return all;
}

bool SwarmCoordinator::Average() {
  std::map<int, swarm::Request> requests;
  {
    absl::MutexLock lock(&mutex_);
    if (!ledger_->MayAverage()) return false;
    for (int stage = 0; stage < options_.job.stages(); ++stage) {
      swarm::Reduce reduce;
      reduce.set_step(step_);
      reduce.set_attempt(attempt_);
      for (const auto& [peer, micro_batches] : SharesOf(stage)) {
        swarm::Share* share = reduce.add_shares();
        share->set_peer(peer);
        share->set_address(members_.at(peer).address);
        for (int m : micro_batches) share->add_micro_batches(m);
      }
      for (const auto& [peer, m] : members_) {
        if (m.stage != stage || !IsReady(m)) continue;
        swarm::Share* part = reduce.add_parts();
        part->set_peer(peer);
        part->set_address(m.address);
      }
      for (int part = 0; part < reduce.parts_size(); ++part) {
        reduce.set_part(part);
        *requests[reduce.parts(part).peer()].mutable_reduce() = reduce;
      }
    }
  }
  if (!AskAll(requests, "sums")) return false;
  for (auto& [peer, request] : requests) request.mutable_reduce()->set_gather(true);
  return AskAll(requests, "averages");
}

// Every living peer has the average. A peer that cannot be reached now is dropped and loses nothing
// but itself.
bool SwarmCoordinator::Commit(absl::Time begin) {
  std::map<int, swarm::Request> requests;
  SwarmStep done;
  {
    absl::MutexLock lock(&mutex_);
    // Who was dropped meanwhile, for another reason, counts no more.
    if (!ledger_->MayAverage()) return false;
    for (int stage = 0; stage < options_.job.stages(); ++stage) {
      Log("commit step=", step_, " stage=", stage,
          " shares=", absl::StrJoin(SharesOf(stage), ";", [](std::string* out, const auto& share) {
            absl::StrAppend(out, share.first, ":", absl::StrJoin(share.second, ","));
          }));
    }
    ledger_->BeginAverage();
    for (double loss : books_.at(step_).losses) done.loss += loss;
    books_.erase(step_);  // nothing of it is lost from here on
    for (const auto& [peer, m] : members_) {
      if (IsReady(m)) requests[peer].mutable_commit()->set_step(step_);
    }
    const swarm::Job& job = options_.job;
    done.step = step_;
    done.loss /= static_cast<double>(int64_t{job.micro_batches()} * job.micro_batch_size() *
                                     job.model().tokens());
  }
  AskAll(requests, "commit");
  {
    absl::MutexLock lock(&mutex_);
    done.time = absl::Now() - begin;
    Log("step step=", step_, absl::StrFormat(" loss=%a", done.loss),
        " ms=", absl::ToInt64Milliseconds(done.time));
    losses_[step_] = done.loss;
    ledger_->EndAverage();
    for (auto& [peer, m] : members_) {
      if (IsReady(m) && requests.count(peer) > 0) m.ready = step_ + 1;
    }
    ++step_;
    averaging_ = false;
    progress_ = absl::Now();
    Changed();
  }
  if (options_.on_step) options_.on_step(done);
  return true;
}

}  // namespace pipelab
