#include "pipelines/planners/memory_modes.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "gtest/gtest.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

TEST(FastestFit, IsBruteForce) {
  int fits = 0, waits = 0;
  for (int seed = 0; seed < 3000; ++seed) {
    const CounterRng rng(seed, "modes");
    uint64_t next = 0;
    const auto number = [&](uint64_t most) {
      const auto whole = static_cast<double>(rng.Below(next++, most));
      return seed % 2 == 0 ? whole : whole + rng.Uniform(next++);
    };
    std::vector<std::vector<MemoryMode>> operators(1 + rng.Below(next++, 7));
    for (auto& modes : operators) {
      modes.resize(1 + rng.Below(next++, 3));
      for (MemoryMode& mode : modes) mode = {number(8), number(20)};
    }
    const double room = number(60), most = seed % 3 == 0 ? number(30) : 1e9;
    double best = std::numeric_limits<double>::infinity();
    const std::function<void(size_t, double, double)> choose = [&](size_t i, double time,
                                                                   double bytes) {
      if (i == operators.size()) {
        if (bytes <= room && time <= most) best = std::min(best, time);
        return;
      }
      for (const MemoryMode& mode : operators[i]) {
        choose(i + 1, time + mode.time, bytes + mode.bytes);
      }
    };
    choose(0, 0, 0);
    const MemoryChoice choice = FastestFit(operators, room, most);
    ASSERT_TRUE(choice.exact);
    if (!std::isfinite(best)) {
      EXPECT_FALSE(std::isfinite(choice.time)) << seed;
      continue;
    }
    ASSERT_NEAR(choice.time, best, 1e-9) << seed;
    double time = 0, bytes = 0, fastest = 0;
    for (size_t i = 0; i < operators.size(); ++i) {
      time += operators[i][choice.modes[i]].time;
      bytes += operators[i][choice.modes[i]].bytes;
      double least = 1e9;
      for (const MemoryMode& mode : operators[i]) least = std::min(least, mode.time);
      fastest += least;
    }
    EXPECT_NEAR(time, best, 1e-9);
    EXPECT_LE(bytes, room + 1e-9);
    ++(time > fastest ? waits : fits);
  }
  EXPECT_GT(fits, 300);
  EXPECT_GT(waits, 300);
}

TEST(LeastTimeOfClasses, IsBruteForce) {
  for (int seed = 0; seed < 3000; ++seed) {
    const CounterRng rng(seed, "classes");
    uint64_t next = 0;
    std::vector<ClassOfModes> classes(1 + rng.Below(next++, 4));
    double all = 0, all_time = 0;
    for (ClassOfModes& c : classes) {
      const double whole = 1.0 + static_cast<double>(rng.Below(next++, 9));
      c = {whole + rng.Uniform(next++), static_cast<double>(rng.Below(next++, 9)),
           1 + static_cast<int>(rng.Below(next++, 4))};
      all += c.bytes * c.count;
      all_time += c.time * c.count;
    }
    std::sort(classes.begin(), classes.end(), [](const ClassOfModes& a, const ClassOfModes& b) {
      return a.time * b.bytes < b.time * a.bytes;
    });
    const double missing = all * rng.Uniform(next++);
    double best = all_time;
    const std::function<void(size_t, double, double)> choose = [&](size_t i, double left,
                                                                   double time) {
      if (i == classes.size()) {
        if (left <= 0) best = std::min(best, time);
        return;
      }
      for (int n = 0; n <= classes[i].count; ++n) {
        choose(i + 1, left - n * classes[i].bytes, time + n * classes[i].time);
      }
    };
    choose(0, missing, 0);
    bool exact = false;
    EXPECT_NEAR(LeastTimeOfClasses(classes, missing, all_time, &exact), best, 1e-9) << seed;
    EXPECT_TRUE(exact);
  }
}

}  // namespace
}  // namespace pipelab
