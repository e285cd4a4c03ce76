// Fuzzes the readers of schedules (text, CSV, JSON) from the catalogue's schedules: mutated texts
// must keep the promises of tests/support/reader_checks.h. As a test a fixed number of runs; for
// longer, best under a sanitizer:
//
//   bazel run --config=asan //tests:schedule_fuzz -- --seconds=600 --seed=2
//
// Texts of valid schedules become seeds too. The input of a failure is written to
// --failure_file before the process ends.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "glog/logging.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/ir/text.h"
#include "pipelines/schedules/catalog.h"
#include "tests/fuzz_mutations.h"
#include "tests/support/reader_checks.h"
#include "tools/base/rng.h"

ABSL_FLAG(int64_t, runs, 5000, "texts to try; 0: as many as --seconds allows");
ABSL_FLAG(int64_t, seconds, 0, "time to fuzz for, instead of --runs; 0: no limit");
ABSL_FLAG(int64_t, seed, 1, "of the mutations");
ABSL_FLAG(std::string, failure_file, "fuzz_failure.txt",
          "where the input of a failure goes; relative to TEST_UNDECLARED_OUTPUTS_DIR, or to the "
          "shell's folder");
ABSL_FLAG(std::string, seeds_out, "", "an existing folder to write the seeds to, and nothing else");

// In programs built with a sanitizer: called before it ends the process.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace pipelab {
namespace {

constexpr size_t kMaxSeeds = 4000, kMaxText = 20000;

std::string current_input;  // for the handlers below
std::string failure_path;

void SaveInput() {
  std::FILE* file = std::fopen(failure_path.c_str(), "wb");
  if (file == nullptr) return;
  std::fwrite(current_input.data(), 1, current_input.size(), file);
  std::fclose(file);
  std::fprintf(stderr, "the input is in %s\n", failure_path.c_str());
}

void SaveInputOnSignal(int signal) {
  SaveInput();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void SaveInputOfFailures() {
  const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  if (folder == nullptr) folder = std::getenv("BUILD_WORKING_DIRECTORY");
  failure_path = absl::GetFlag(FLAGS_failure_file);
  if (folder != nullptr && failure_path[0] != '/') {
    failure_path = std::string(folder) + "/" + failure_path;
  }
  std::signal(SIGABRT, SaveInputOnSignal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(&SaveInput);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const Scheme& scheme : Catalog()) {
    for (const SchemeParams& sizes : {SchemeParams{2, 2}, SchemeParams{2, 4}, SchemeParams{4, 4}}) {
      const absl::StatusOr<Schedule> s = MakeSchedule(scheme.name, sizes);
      if (!s.ok()) continue;
      seeds.push_back(ToText(*s));
      seeds.push_back(ToJson(*s));
      if (const absl::StatusOr<std::string> csv = ToCsv(*s); csv.ok()) seeds.push_back(*csv);
    }
  }
  // Two branches and a join, with devices and micro-batches of each stage.
  SchemeParams graph{4, 4};
  graph.stages = StageGraph::FromEdges(3, {{0, 2}, {1, 2}});
  graph.devices_of_stage = {{0}, {1, 2}, {3}};
  graph.micro_batches_of_stage = {4, 2, 1};
  const absl::StatusOr<Schedule> s = MakeSchedule("graph", graph);
  CHECK(s.ok()) << s.status();
  seeds.push_back(ToText(*s));
  seeds.push_back(ToJson(*s));
  // Stages with passes of their own numbers.
  SchemeParams replay{3, 4};
  replay.micro_batches_of_stage = {4, 2, 3};
  const absl::StatusOr<Schedule> paced = MakeSchedule("local_replay", replay);
  CHECK(paced.ok()) << paced.status();
  seeds.push_back(ToText(*paced));
  seeds.push_back(ToJson(*paced));
  return seeds;
}

int WriteSeeds(const std::string& folder) {
  int i = 0;
  for (const std::string& seed : Seeds()) {
    const std::string path = folder + "/seed" + std::to_string(i++);
    std::FILE* file = std::fopen(path.c_str(), "wb");
    CHECK(file != nullptr) << "--seeds_out=" << folder << ": cannot write " << path;
    std::fwrite(seed.data(), 1, seed.size(), file);
    CHECK_EQ(std::fclose(file), 0) << path;
  }
  std::printf("%d seeds\n", i);
  return 0;
}

int Fuzz() {
  const int64_t seconds = absl::GetFlag(FLAGS_seconds);
  const int64_t runs = seconds > 0 ? INT64_MAX : absl::GetFlag(FLAGS_runs);
  const absl::Time end =
      seconds > 0 ? absl::Now() + absl::Seconds(seconds) : absl::InfiniteFuture();
  const CounterRng rng(static_cast<uint64_t>(absl::GetFlag(FLAGS_seed)), "schedule fuzz");
  std::vector<std::string> seeds = Seeds();
  const size_t first_seeds = seeds.size();
  uint64_t n = 0;
  int64_t done = 0, read = 0, valid = 0;
  for (; done < runs && (done % 256 != 0 || absl::Now() < end); ++done) {
    // Half of them from the catalogue: the others have moved away from what is valid.
    const size_t from = rng.Below(n++, 2) == 0 ? first_seeds : seeds.size();
    const std::string& a = seeds[rng.Below(n++, from)];
    const std::string& b = seeds[rng.Below(n++, seeds.size())];
    current_input = MutateText(a, b, rng, &n);
    const Readings readings = CheckReaders(current_input);
    read += readings.read;
    valid += readings.valid;
    if (readings.valid == 0 || current_input.size() > kMaxText) continue;
    if (seeds.size() < kMaxSeeds) {
      seeds.push_back(current_input);
    } else {
      // The catalogue's stay.
      seeds[first_seeds + rng.Below(n++, seeds.size() - first_seeds)] = current_input;
    }
  }
  std::printf("%lld texts, %lld read as a schedule, %lld of them valid; no promise broken\n",
              static_cast<long long>(done), static_cast<long long>(read),
              static_cast<long long>(valid));
  // Else the mutations do not reach what is behind the readers.
  CHECK_GT(20 * read, done);
  CHECK_GT(100 * valid, done);
  return 0;
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const std::string folder = absl::GetFlag(FLAGS_seeds_out);
  if (!folder.empty()) return pipelab::WriteSeeds(folder);
  pipelab::SaveInputOfFailures();
  return pipelab::Fuzz();
}
