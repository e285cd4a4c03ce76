#include "pipelines/fill/fill_runner.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/clocks.h"

namespace pipelab {
namespace {

constexpr size_t kRemembered = 128;  // pieces of a class
constexpr size_t kFirst = 4;         // that tell what a class takes

// The 99th percentile: of a hundred and more, one that is out of line does not count.
int64_t Percentile(const std::deque<int64_t>& values) {
  std::vector<int64_t> sorted(values.begin(), values.end());
  const auto at = sorted.begin() + static_cast<int64_t>((sorted.size() - 1) * 99 / 100);
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}

Bytes Held(const Arena& arena) {
  Bytes held;
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    held += arena.current(static_cast<MemoryKind>(kind));
  }
  return held;
}

}  // namespace

struct FillRunner::Job {
  std::unique_ptr<FillWork> work;
  std::map<int, std::deque<int64_t>> taken;  // [class] the last pieces' times
  FillJobReport report;
};

FillRunner::FillRunner(Arena* arena, FillWorks works, FillRunnerOptions options)
    : arena_(arena), options_(std::move(options)) {
  for (std::unique_ptr<FillWork>& work : works) {
    jobs_.push_back(std::make_unique<Job>());
    jobs_.back()->report.name = work->name();
    jobs_.back()->work = std::move(work);
  }
}

FillRunner::~FillRunner() = default;

void FillRunner::BeginStep(const std::vector<Instruction>& list, const std::vector<Fill>& fills) {
  longest_ = Nanoseconds(0);
  for (const Instruction& i : list) {
    if (i.op != OpCode::kFill) continue;
    const Fill& fill = fills[i.arg];
    longest_ = std::max(longest_, fill.time);
    if (RoomOf(fill.time) > 0) roomiest_ = std::max(roomiest_, fill.bytes);
  }
}

Bytes FillRunner::Needed(const Job& job) const { return Held(*arena_) + job.work->next_bytes(); }

// The first that is not over. One that no fill has the memory for is ended here.
FillRunner::Job* FillRunner::NextJob() {
  for (const std::unique_ptr<Job>& job : jobs_) {
    if (job->work == nullptr || job->work->over()) continue;
    const Bytes needed = Needed(*job);
    if (needed <= roomiest_) return job.get();
    job->report.status = absl::ResourceExhaustedError(absl::StrCat(
        "fill job ", job->report.name, ": too large for every gap: the next piece makes it ",
        needed.value(), " bytes, and the emptiest has ", roomiest_.value(), " free"));
    job->work = nullptr;
  }
  return nullptr;
}

bool FillRunner::Fits(Job* job, const Fill& fill, int64_t left) const {
  if (Needed(*job) > fill.bytes) return false;
  const std::deque<int64_t>& taken = job->taken[job->work->next_class()];
  if (taken.size() < kFirst) {
    if (fill.time < longest_) return false;
    if (left == RoomOf(fill.time) || taken.empty()) return left > 0;
    return *std::min_element(taken.begin(), taken.end()) <= left;
  }
  return Percentile(taken) <= left;
}

void FillRunner::RunPiece(Job* job, const Fill& fill) {
  const auto now = [&] { return options_.now ? options_.now() : WallNs(); };
  std::deque<int64_t>& taken = job->taken[job->work->next_class()];
  arena_->ResetPeaks();
  const int64_t begin = now();
  absl::Status status = job->work->RunNext();
  const int64_t time = now() - begin;
  taken.push_back(time);
  if (taken.size() > kRemembered) taken.pop_front();
  filled_ += time;
  ++job->report.pieces;
  job->report.time += Nanoseconds(time);
  if (status.ok()) status = Judge(*job, fill);
  const int64_t room = RoomOf(longest_);
  if (status.ok() && taken.size() == kFirst && Percentile(taken) > room) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("fill job ", job->report.name, ": too large for every gap: a piece takes ",
                     ToString(Nanoseconds(Percentile(taken))), ", and the longest has ",
                     ToString(Nanoseconds(room))));
  }
  job->report.over = status.ok() && job->work->over();
  if (status.ok()) return;
  job->report.status = std::move(status);
  job->work = nullptr;
}

absl::Status FillRunner::Judge(const Job& job, const Fill& fill) const {
  const Bytes most = arena_->peak_transient() + arena_->peak_state(), kept = Held(*arena_);
  const auto holds = [&](Bytes bytes, const char* when, Bytes may) {
    return absl::ResourceExhaustedError(
        absl::StrCat("fill job ", job.report.name, ": held ", bytes.value(), " bytes ", when,
                     ", more than the ", may.value(), " that it may"));
  };
  if (most > fill.bytes) return holds(most, "in a piece", fill.bytes);
  if (options_.limit.has_value() && kept > *options_.limit) {
    return holds(kept, "between two pieces", *options_.limit);
  }
  return absl::OkStatus();
}

void FillRunner::Run(const Fill& fill, absl::FunctionRef<bool()> arrived) {
  const int64_t room = RoomOf(fill.time);
  if (room <= 0) return;
  if (NextJob() != nullptr) foreseen_ += fill.time.value();
  const auto now = [&] { return options_.now ? options_.now() : WallNs(); };
  const int64_t end = now() + room;
  for (int64_t left = room; !arrived(); left = end - now()) {
    Job* const job = NextJob();
    if (job == nullptr || !Fits(job, fill, left)) return;
    RunPiece(job, fill);
  }
}

FillReport FillRunner::Report() const {
  FillReport report;
  report.foreseen = Nanoseconds(foreseen_);
  report.filled = Nanoseconds(filled_);
  for (const std::unique_ptr<Job>& job : jobs_) {
    report.jobs.push_back(job->report);
    if (job->work != nullptr) report.jobs.back().over = job->work->over();
  }
  return report;
}

}  // namespace pipelab
