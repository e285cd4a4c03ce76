#include "kernels/comm/transport.h"

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

class InProcessTransport final : public Transport {
 public:
  explicit InProcessTransport(const InProcessOptions& options) : options_(options) {}
  absl::string_view name() const override { return "in-process"; }
  ProcessGroup* processes() const override { return nullptr; }
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(int devices) override {
    return MakeInProcessCommunicators(devices, options_);
  }

 private:
  const InProcessOptions options_;
};

}  // namespace

std::unique_ptr<Transport> MakeInProcessTransport(const InProcessOptions& options) {
  return std::make_unique<InProcessTransport>(options);
}

absl::Status CheckDevicesOfProcesses(int devices, int processes) {
  if (devices % processes == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      processes, " processes cannot share ", devices,
      " devices equally; start as many processes as there are devices, or a divisor of that"));
}

}  // namespace pipelab
