#include "tools/base/progress.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

std::atomic<bool> g_silent{false}, g_shown{false};

void WriteToStandardError(absl::string_view text) {
  if (g_silent.load()) return;
  g_shown.store(true);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// "7 s", "3 min 05 s", "2 h 04 min": what a reader who waits wants to know.
std::string RoughTime(absl::Duration d) {
  const int64_t s = absl::ToInt64Seconds(absl::Ceil(d, absl::Seconds(1)));
  if (s < 60) return absl::StrFormat("%d s", s);
  if (s < 3600) return absl::StrFormat("%d min %02d s", s / 60, s % 60);
  return absl::StrFormat("%d h %02d min", s / 3600, s / 60 % 60);
}

std::string Rate(int64_t done, absl::Duration elapsed, absl::string_view unit) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  if (done <= 0 || seconds <= 0) return "";
  return absl::StrFormat("%.3g %s/s", done / seconds, unit);
}

}  // namespace

Progress::Progress(absl::string_view label, int64_t total, absl::string_view unit,
                   ProgressOptions options)
    : label_(label), unit_(unit), total_(total), options_(std::move(options)) {
  if (!options_.write) {
    options_.terminal = isatty(STDERR_FILENO) != 0;
    options_.write = WriteToStandardError;
  }
  if (!options_.now) options_.now = [] { return absl::Now(); };
  start_ = options_.now();
  // The first line of a log comes after one interval: short work shows its result only.
  last_shown_ = options_.terminal ? absl::InfinitePast() : start_;
}

bool Progress::Shown() { return g_shown.load(); }

void Progress::SilenceAll() { g_silent.store(true); }

Progress::~Progress() {
  if (!finished_ && shown_width_ > 0) options_.write("\n");
}

std::string Progress::Line(absl::Time now) const {
  std::string line = absl::StrCat(label_, ": ", done_);
  if (total_ > 0) absl::StrAppend(&line, "/", total_);
  absl::StrAppend(&line, " ", unit_, "s");
  if (total_ > 0) {
    absl::StrAppendFormat(&line, " %3.0f%%", 100.0 * static_cast<double>(done_) / total_);
  }
  const absl::Duration elapsed = now - start_;
  const std::string rate = Rate(done_, elapsed, unit_);
  if (!rate.empty()) absl::StrAppend(&line, ", ", rate);
  if (!rate.empty() && done_ < total_) {
    const double left = static_cast<double>(total_ - done_) / static_cast<double>(done_);
    absl::StrAppend(&line, ", ", RoughTime(elapsed * left), " left");
  }
  if (!note_.empty()) absl::StrAppend(&line, ", ", note_);
  return line;
}

// On a terminal, overwrites the line before, with blanks where that was longer.
void Progress::Show(absl::string_view line) {
  if (!options_.terminal) return options_.write(absl::StrCat(line, "\n"));
  const size_t blanks = shown_width_ > line.size() ? shown_width_ - line.size() : 0;
  options_.write(absl::StrCat("\r", line, std::string(blanks, ' ')));
  shown_width_ = line.size();
}

void Progress::Advance(int64_t done, absl::string_view note) {
  done_ = done;
  if (!note.empty()) note_ = std::string(note);
  if (finished_) return;
  const absl::Time now = options_.now();
  if (now - last_shown_ <
      (options_.terminal ? options_.terminal_interval : options_.log_interval)) {
    return;
  }
  last_shown_ = now;
  Show(Line(now));
}

void Progress::Update(int64_t done, absl::string_view note) {
  std::lock_guard<std::mutex> lock(mutex_);
  Advance(done, note);
}

void Progress::Add(int64_t n, absl::string_view note) {
  std::lock_guard<std::mutex> lock(mutex_);
  Advance(done_ + n, note);
}

void Progress::Finish() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (finished_) return;
  finished_ = true;
  const absl::Duration elapsed = options_.now() - start_;
  const std::string rate = Rate(done_, elapsed, unit_);
  Show(absl::StrCat(label_, ": ", done_, " ", unit_, done_ == 1 ? "" : "s", " in ",
                    ToString(Nanoseconds(absl::ToInt64Nanoseconds(elapsed))),
                    rate.empty() ? "" : absl::StrCat(" (", rate, ")"), note_.empty() ? "" : ", ",
                    note_));
  if (options_.terminal) options_.write("\n");
}

}  // namespace pipelab
