#include "pipelines/runtime/fill_runner.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/runtime/clocks.h"

namespace pipelab {
namespace {

constexpr size_t kRemembered = 128;  // pieces of a class
constexpr size_t kFirst = 4;         // that tell what a class takes

int64_t Median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

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

// The first that is not over. One that cannot go on is ended here.
FillRunner::Job* FillRunner::NextJob() {
  for (const std::unique_ptr<Job>& job : jobs_) {
    if (job->work == nullptr) continue;
    const FillWork& work = *job->work;
    if (work.over()) continue;
    const Bytes needed = Held(*arena_) + work.next_bytes();
    if (options_.limit == Bytes(0) || needed <= options_.limit) return job.get();
    job->report.status = absl::ResourceExhaustedError(
        absl::StrCat("fill job ", work.name(), ": the next piece makes it ", needed.value(),
                     " bytes, more than the ", options_.limit.value(), " that it may hold"));
    job->work = nullptr;
  }
  return nullptr;
}

int64_t FillRunner::Foreseen(int place) const {
  const auto found = places_.find(place);
  return found == places_.end() ? 0 : found->second.foreseen;
}

bool FillRunner::Fits(Job* job, int64_t left, int64_t room) const {
  const std::deque<int64_t>& taken = job->taken[job->work->next_class()];
  if (taken.size() < kFirst) {
    if (room < longest_ - options_.slack.value()) return false;
    if (left == room || taken.empty()) return left > 0;
    return *std::min_element(taken.begin(), taken.end()) <= left;
  }
  return Percentile(taken) <= left;
}

void FillRunner::RunPiece(Job* job) {
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
  const Bytes held = arena_->peak_transient() + arena_->peak_state();
  if (status.ok() && options_.limit > Bytes(0) && held > options_.limit) {
    status = absl::ResourceExhaustedError(absl::StrCat("fill job ", job->report.name, ": held ",
                                                       held.value(), " bytes, more than the ",
                                                       options_.limit.value(), " that it may"));
  }
  const int64_t room = longest_ - options_.slack.value();
  if (status.ok() && taken.size() == kFirst && Percentile(taken) > room) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("fill job ", job->report.name, ": too large for every gap: a piece takes ",
                     ToString(Nanoseconds(Percentile(taken))), ", and the longest wait has ",
                     ToString(Nanoseconds(room))));
  }
  job->report.over = status.ok() && job->work->over();
  if (status.ok()) return;
  job->report.status = std::move(status);
  job->work = nullptr;
}

void FillRunner::Run(int place, absl::FunctionRef<bool()> arrived) {
  if (learning()) return;
  const int64_t foreseen = Foreseen(place);
  if (NextJob() != nullptr) foreseen_ += foreseen;
  if (foreseen <= options_.slack.value()) return;
  const auto now = [&] { return options_.now ? options_.now() : WallNs(); };
  const int64_t room = foreseen - options_.slack.value(), end = now() + room;
  for (int64_t left = room; !arrived(); left = end - now()) {
    Job* const job = NextJob();
    if (job == nullptr || !Fits(job, left, room)) return;
    RunPiece(job);
  }
}

void FillRunner::Waited(int place, int64_t ns) {
  if (!learning()) return;
  Place& p = places_[place];
  p.learned.push_back(ns);
  p.foreseen = Median(p.learned);
  longest_ = 0;
  for (const auto& [unused, other] : places_) longest_ = std::max(longest_, other.foreseen);
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
