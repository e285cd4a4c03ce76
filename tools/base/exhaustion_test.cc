#include "tools/base/exhaustion.h"

#include <sys/resource.h>

#include <new>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

void Limit(int resource, rlim_t most) {
  const rlimit limit = {most, most};
  if (setrlimit(resource, &limit) != 0) _exit(3);
}

TEST(ExhaustionDeathTest, NewFailsInOneLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has its own limits";
#endif
  EXPECT_EXIT(
      {
        HandleExhaustion();
        Limit(RLIMIT_AS, rlim_t{1} << 30);
        std::vector<std::vector<char>> all;
        for (;;) all.emplace_back(rlim_t{64} << 20, 'x');
      },
      testing::ExitedWithCode(1), "^out of memory: the system gives no more; .* would do\n$");
}

// The C++ library throws here where nobody can catch it.
TEST(ExhaustionDeathTest, WhatIsThrownEndsInOneLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        HandleExhaustion();
        std::thread([] {
          throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
        }).join();
      },
      testing::ExitedWithCode(1), "^out of threads: the system starts no more; .*\n$");
  EXPECT_EXIT(
      {
        HandleExhaustion();
        std::thread([] { std::vector<char>().resize(static_cast<size_t>(-1)); }).join();
      },
      testing::ExitedWithCode(1), "^out of memory: a size is beyond any memory\n$");
  EXPECT_DEATH(
      {
        HandleExhaustion();
        std::thread([] { throw 1; }).join();
      },
      "");
}

TEST(ExhaustionDeathTest, OthersSayWhat) {
  EXPECT_EXIT(EndWithout("memory", "a block of 12 bytes"), testing::ExitedWithCode(1),
              "^out of memory: a block of 12 bytes\n$");
}

}  // namespace
}  // namespace pipelab
