#include "kernels/comm/mpi_test_main.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/comm/mpi.h"

namespace pipelab {
namespace {

Transport* g_transport = nullptr;

class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_,
                 result.file_name() == nullptr ? "?" : result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  const int rank_;
};

}  // namespace

Transport& TestTransport() { return *g_transport; }

}  // namespace pipelab

int main(int argc, char** argv) {
  using pipelab::g_transport;
  auto transport = pipelab::JoinMpi({});
  if (!transport.ok()) {
    std::fprintf(stderr, "%s\n", transport.status().ToString().c_str());
    return 1;
  }
  g_transport = transport->get();
  pipelab::ProcessGroup& group = *g_transport->processes();
  if (group.rank() != 0) {  // the results' files are process 0's
    testing::GTEST_FLAG(output) = "";
    unsetenv("TEST_PREMATURE_EXIT_FILE");
  }
  testing::InitGoogleTest(&argc, argv);
  if (group.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new pipelab::FailurePrinter(group.rank()));
  }
  const bool passed = RUN_ALL_TESTS() == 0;
  const auto all = group.ToAll(passed ? "" : "failed", absl::Minutes(2));
  bool all_passed = all.ok();
  for (int r = 0; all.ok() && r < group.size(); ++r) all_passed &= (*all)[r].empty();
  if (!all_passed) {
    std::fflush(nullptr);
    _exit(1);  // not through MPI_Finalize, which waits for what failed
  }
  return 0;
}
