#include "pipelines/swarm/swarm_log.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMost = int64_t{1} << 62;
constexpr absl::string_view kTorn = "torn";  // the last word of a line that had no end

class Checker {
 public:
  absl::Status Line(absl::string_view line) {
    // Without the reason, which others have written.
    const size_t why = std::min(line.find(" why=\""), line.size());
    const std::string own =
        absl::StrCat(line.substr(0, why), line.substr(std::max(why, line.rfind('"') + 1)));
    const std::vector<absl::string_view> words = absl::StrSplit(own, ' ');
    const absl::string_view event = words[0];
    if (words.back() == kTorn) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const int64_t epoch, Number(words, "epoch"));
    if (epoch < epoch_) {
      ++proof_.late;
      if (event != "save") return absl::OkStatus();
      return absl::DataLossError(absl::StrCat("is after the start of epoch ", epoch_));
    }
    if ((event == "start") != (epoch > epoch_)) {
      return absl::DataLossError(absl::StrCat("has epoch ", epoch, " after ", epoch_));
    }
    epoch_ = epoch;
    if (event == "start") return Start(words);
    if (event == "join") return Join(words);
    if (event == "drop" || event == "move") return Leave(words, event == "drop");
    if (event == "count" || event == "lose") return CountOrLose(words, event == "count");
    if (event == "commit") return Commit(words);
    if (event == "step") return Step(words);
    if (event == "save") return Save(words);
    if (event == "ready" || event == "refuse") return absl::OkStatus();
    return absl::DataLossError("no such event");
  }
  SwarmProof proof() const { return proof_; }

 private:
  using Place = std::tuple<int64_t, int64_t, int64_t>;  // step, stage, micro-batch

  static absl::StatusOr<absl::string_view> Text(const std::vector<absl::string_view>& words,
                                                absl::string_view key) {
    std::vector<absl::string_view> found;  // two, where a line was cut and has another in its end
    for (absl::string_view word : words) {
      if (absl::ConsumePrefix(&word, key) && absl::ConsumePrefix(&word, "=")) found.push_back(word);
    }
    if (found.size() == 1) return found[0];
    return absl::DataLossError(absl::StrCat("has ", found.size(), " words ", key, "="));
  }
  static absl::StatusOr<int64_t> Number(const std::vector<absl::string_view>& words,
                                        absl::string_view key) {
    PIPELAB_ASSIGN_OR_RETURN(const absl::string_view text, Text(words, key));
    return Whole(text, key);
  }
  static absl::StatusOr<int64_t> Whole(absl::string_view text, absl::string_view key) {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= 0 && number <= kMost) return number;
    return absl::DataLossError(absl::StrCat(key, " is \"", text, "\""));
  }

  absl::Status Start(const std::vector<absl::string_view>& words) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t step, Number(words, "step"));
    PIPELAB_ASSIGN_OR_RETURN(stages_, Number(words, "stages"));
    PIPELAB_ASSIGN_OR_RETURN(micro_batches_, Number(words, "micro_batches"));
    if (!started_) first_ = saved_ = step_ = step;
    if (step < saved_ || step > step_) {
      return absl::DataLossError(
          absl::StrCat("starts at step ", step, " after ", step_, ", with ", saved_, " saved"));
    }
    started_ = true;
    proof_.redone += step_ - step;
    counted_.clear();
    members_.clear();
    SetStep(step);
    return absl::OkStatus();
  }

  absl::Status Join(const std::vector<absl::string_view>& words) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t peer, Number(words, "peer"));
    if (members_.insert(peer).second) return absl::OkStatus();
    return absl::DataLossError("is a member already");
  }

  absl::Status Leave(const std::vector<absl::string_view>& words, bool drop) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t peer, Number(words, "peer"));
    if (members_.erase(peer) == 0) return absl::DataLossError("is no member");
    if (drop) ++proof_.drops;
    return absl::OkStatus();
  }

  absl::Status Save(const std::vector<absl::string_view>& words) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t step, Number(words, "step"));
    if (step != step_) return absl::DataLossError(absl::StrCat("is saved at step ", step_));
    saved_ = step;
    return absl::OkStatus();
  }

  absl::Status CountOrLose(const std::vector<absl::string_view>& words, bool count) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t step, Number(words, "step"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t stage, Number(words, "stage"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t micro_batch, Number(words, "micro_batch"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t peer, Number(words, "peer"));
    // With delayed updates the step after the next to be committed may have begun.
    if (!started_ || step < step_ || step > step_ + 1 || stage >= stages_ ||
        micro_batch >= micro_batches_) {
      return absl::DataLossError(absl::StrCat("is not of step ", step_));
    }
    const Place place = {step, stage, micro_batch};
    if (count) {
      if (members_.count(peer) == 0) return absl::DataLossError("is of no member");
      if (counted_.emplace(place, peer).second) return absl::OkStatus();
      return absl::DataLossError("is counted already");
    }
    const auto it = counted_.find(place);
    if (it == counted_.end() || it->second != peer) return absl::DataLossError("was not counted");
    if (members_.count(peer) > 0) return absl::DataLossError("is of a member");
    counted_.erase(it);
    ++proof_.lost;
    return absl::OkStatus();
  }

  absl::Status Commit(const std::vector<absl::string_view>& words) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t step, Number(words, "step"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t stage, Number(words, "stage"));
    PIPELAB_ASSIGN_OR_RETURN(const absl::string_view shares, Text(words, "shares"));
    if (!started_ || step != step_ || stage >= stages_) {
      return absl::DataLossError(absl::StrCat("is not of step ", step_));
    }
    std::set<int64_t> summed;
    for (absl::string_view share : absl::StrSplit(shares, ';')) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(share, absl::MaxSplits(':', 1));
      PIPELAB_ASSIGN_OR_RETURN(const int64_t peer, Whole(parts.first, "peer"));
      for (absl::string_view text : absl::StrSplit(parts.second, ',')) {
        PIPELAB_ASSIGN_OR_RETURN(const int64_t micro_batch, Whole(text, "micro_batch"));
        const auto it = counted_.find({step, stage, micro_batch});
        if (it == counted_.end() || it->second != peer || members_.count(peer) == 0) {
          return absl::DataLossError(
              absl::StrCat("micro-batch ", micro_batch, " was not counted for peer ", peer));
        }
        if (!summed.insert(micro_batch).second) {
          return absl::DataLossError(absl::StrCat("micro-batch ", micro_batch, " twice"));
        }
      }
    }
    if (static_cast<int64_t>(summed.size()) != micro_batches_) {
      return absl::DataLossError(
          absl::StrCat("sums ", summed.size(), " micro-batches of ", micro_batches_));
    }
    if (!committed_.insert(stage).second) return absl::DataLossError("is committed already");
    return absl::OkStatus();
  }

  absl::Status Step(const std::vector<absl::string_view>& words) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t step, Number(words, "step"));
    if (!started_ || step != step_ || static_cast<int64_t>(committed_.size()) != stages_) {
      return absl::DataLossError(absl::StrCat("ends with ", committed_.size(), " of ", stages_,
                                              " stages committed, at step ", step_));
    }
    SetStep(step + 1);
    return absl::OkStatus();
  }

  void SetStep(int64_t step) {
    step_ = step;
    counted_.erase(counted_.begin(), counted_.lower_bound({step, 0, 0}));
    committed_.clear();
    proof_.steps = step_ - first_;
    proof_.gradients = proof_.steps * stages_ * micro_batches_;
  }

  bool started_ = false;
  int64_t epoch_ = -1, first_ = 0, saved_ = 0, step_ = 0, stages_ = 0, micro_batches_ = 0;
  std::set<int64_t> members_;         // peers
  std::map<Place, int64_t> counted_;  // -> peer
  std::set<int64_t> committed_;       // stages
  SwarmProof proof_;
};

}  // namespace

absl::StatusOr<SwarmProof> CheckSwarmLog(absl::string_view log) {
  Checker checker;
  int64_t number = 0;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    if (end == absl::string_view::npos) break;
    ++number;
    const absl::string_view line = log.substr(0, end);
    log.remove_prefix(end + 1);
    const absl::Status read = checker.Line(line);
    if (!read.ok()) {
      return absl::DataLossError(
          absl::StrCat("line ", number, ": \"", line.substr(0, 80), "\" ", read.message()));
    }
  }
  return checker.proof();
}

absl::StatusOr<std::unique_ptr<SwarmLogFile>> SwarmLogFile::Open(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("--log=", path,
                                                   ": cannot be written: ", ErrnoText(errno),
                                                   "; give a file that can be written"));
  }
  std::unique_ptr<SwarmLogFile> log(new SwarmLogFile(path, file));
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return log;
  PIPELAB_ASSIGN_OR_RETURN(log->lock_, FileLock::Take("--log", path));
  std::ifstream old(path, std::ios::binary | std::ios::ate);
  if (old.tellg() > 0 && old.seekg(-1, std::ios::end).get() != '\n') {
    std::fputs(absl::StrCat(" ", kTorn, "\n").c_str(), file);
  }
  return log;
}

SwarmLogFile::~SwarmLogFile() { std::fclose(file_); }

void SwarmLogFile::Add(absl::string_view line) {
  if (!status_.ok()) return;
  absl::ConsumeSuffix(&line, "\n");
  const std::string text = absl::StrCat(line, " t=", absl::ToUnixMillis(absl::Now()), "\n");
  const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size();
  if (written && std::fflush(file_) == 0) return;
  status_ = absl::UnknownError(absl::StrCat(
      "--log=", path_, ": could not be written: ", ErrnoText(errno), ", so it proves nothing"));
}

}  // namespace pipelab
