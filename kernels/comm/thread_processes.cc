#include "kernels/comm/thread_processes.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/comm/communicator.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

using Communicators = std::vector<std::unique_ptr<Communicator>>;

// The worlds that the processes share, by the number of their Connect.
struct SharedWorlds {
  std::mutex mutex;
  std::map<int, Communicators> worlds;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::unique_ptr<ProcessGroup> group, SharedWorlds* shared)
      : group_(std::move(group)), shared_(shared) {}

  absl::string_view name() const override { return "threads"; }
  ProcessGroup* processes() const override { return group_.get(); }

  absl::StatusOr<Communicators> Connect(int devices) override {
    PIPELAB_RETURN_IF_ERROR(CheckDevicesOfProcesses(devices, group_->size()));
    std::lock_guard<std::mutex> lock(shared_->mutex);
    Communicators& all = shared_->worlds[connected_++];
    if (all.empty()) all = MakeInProcessCommunicators(devices, {});
    const size_t share = static_cast<size_t>(devices / group_->size());
    Communicators own;
    for (size_t i = 0; i < share; ++i) own.push_back(std::move(all[group_->rank() * share + i]));
    return own;
  }

 private:
  const std::unique_ptr<ProcessGroup> group_;
  SharedWorlds* const shared_;
  int connected_ = 0;
};

}  // namespace

void RunAsProcesses(int size, const std::function<void(Transport& transport)>& body) {
  static std::atomic<int> count{0};
  const std::string path = absl::StrCat(testing::TempDir(), "/processes", getpid(), ".", count++);
  SharedWorlds shared;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = ProcessGroup::Create(rank, size, FileRendezvous(path, kLong), {});
      ASSERT_TRUE(group.ok()) << group.status();
      ThreadTransport transport(*std::move(group), &shared);
      body(transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace pipelab
