#include "experiments/vocabulary/vocabulary_logs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr double kLogPoints = 3;  // of MFU
constexpr double kPassOff = 0.1;
constexpr char kSource[] =
    "the authors' repository, artifact/exp_one_host.csv: table 5's runs on 8 A100";

std::vector<Nanoseconds> AsNanoseconds(const std::vector<double>& us) {
  std::vector<Nanoseconds> times;
  for (const double t : us) times.push_back(Nanoseconds(std::llround(t * 1e3)));
  return times;
}

std::string LogPlace(const PublishedVocabularyLog& log) {
  return absl::StrCat(log.system, ", ", log.tokens, " tokens, ", log.vocabulary, " words");
}

// Points of MFU that the replayed step has more than the logged one.
double LogOff(const VocabularyLogSteps& s) {
  return 100 * s.replayed.mfu * (1 - ToMilliseconds(s.replayed.time) / s.log.step_ms);
}

// One kind of pass of a run, of its middle device where devices differ by chance alone.
struct Pass {
  std::string name;
  double logged = 0, simulated = 0;  // ms
};

Nanoseconds Middle(std::vector<Nanoseconds> times) {
  const auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

std::vector<Pass> PassesOfLog(const VocabularyLogSteps& s) {
  const VocabularyPasses& ours = s.simulated.passes;
  const auto forward = AsNanoseconds(s.log.forward_us), backward = AsNanoseconds(s.log.backward_us);
  std::vector<Pass> passes = {
      {"forward", ToMilliseconds(Middle(forward)), ToMilliseconds(Middle(ours.forward))},
      {"backward", ToMilliseconds(Middle(backward)), ToMilliseconds(Middle(ours.backward))},
  };
  if (IsDivided(s.system)) {
    passes.push_back({"part of the head", ToMilliseconds(Middle(AsNanoseconds(s.log.output_us))),
                      ToMilliseconds(Middle(ours.output))});
  } else {
    passes.push_back({"forward with head and loss", ToMilliseconds(forward.back()),
                      ToMilliseconds(ours.forward.back())});
    passes.push_back({"backward with head and loss", ToMilliseconds(backward.back()),
                      ToMilliseconds(ours.backward.back())});
    passes.push_back({"backward with embedding", ToMilliseconds(backward.front()),
                      ToMilliseconds(ours.backward.front())});
  }
  return passes;
}

// `ends`: the first device and the last have their own.
void TakeLonger(const std::vector<Nanoseconds>& logged, const std::vector<Nanoseconds>& there,
                bool ends, std::vector<Nanoseconds>* ours) {
  for (Nanoseconds& time : *ours) {
    if (ends && &time == &ours->front()) {
      time = Scaled(time, logged.front(), there.front());
    } else if (ends && &time == &ours->back()) {
      time = Scaled(time, logged.back(), there.back());
    } else {
      time = Scaled(time, Middle(logged), Middle(there));
    }
  }
}

bool IsShown(const VocabularyLogSteps& s) {
  return s.system == VocabularySystem::kBaseline || s.system == VocabularySystem::kVocab1;
}

Claim ReplayClaim(const std::vector<VocabularyLogSteps>& steps) {
  Claim c = PaperClaim("vocabulary.logs.replayed",
                       "MFU of table 5's runs on 8 GPUs, of the passes that were logged", kSource,
                       "read");
  c.unit = "points";
  std::vector<CellOff> cells;
  for (const VocabularyLogSteps& s : steps) cells.push_back({LogPlace(s.log), LogOff(s)});
  MetWithinPoints(&c, Origin::kReplayed, cells, kLogPoints,
                  "the exchange of parts and chain takes other times there", "run");
  return c;
}

Claim PassesClaim(const std::vector<VocabularyLogSteps>& steps) {
  Claim c = PaperClaim("vocabulary.logs.passes",
                       "passes of blocks, head and parts under 1F1B and Vocab-1", kSource, "read");
  std::vector<ComparedCell> cells;
  for (const VocabularyLogSteps& s : steps) {
    if (!IsShown(s)) continue;
    for (const Pass& p : PassesOfLog(s)) {
      cells.push_back({absl::StrCat(LogPlace(s.log), ", ", p.name), p.logged, p.simulated});
    }
  }
  c.origin = Origin::kSimulated;
  MetWithinErrors(
      &c, ErrorsOf(cells), kPassOff,
      "the machine is calibrated on whole iterations of other models, which do not tell "
      "a forward from a backward; attention of 4096 tokens is slower in this log; and "
      "passes beside collectives take 5 to 9 % longer, which is not simulated");
  return c;
}

}  // namespace

absl::StatusOr<std::vector<VocabularyLogSteps>> SimulateLogs(const VocabularyPaper& paper,
                                                             const ClusterSpec& cluster) {
  std::vector<VocabularyLogSteps> all;
  for (const PublishedVocabularyLog& log : paper.logs) {
    VocabularyLogSteps steps;
    steps.log = log;
    PIPELAB_ASSIGN_OR_RETURN(steps.system, FindVocabularySystem(log.system));
    const VocabularySizes sizes = SizesOf(paper.logs_run, log.tokens, log.vocabulary);
    PIPELAB_ASSIGN_OR_RETURN(steps.simulated, SimulateVocabulary(steps.system, sizes, cluster));
    VocabularyOptions logged;
    logged.passes = {AsNanoseconds(log.forward_us),
                     AsNanoseconds(log.backward_us),
                     AsNanoseconds(log.output_us),
                     {}};
    PIPELAB_ASSIGN_OR_RETURN(steps.replayed,
                             SimulateVocabulary(steps.system, sizes, cluster, logged));
    all.push_back(std::move(steps));
  }
  return all;
}

const VocabularyLogSteps* FindLog(const std::vector<VocabularyLogSteps>& logs,
                                  VocabularySystem system, int64_t tokens, int64_t vocabulary) {
  for (const VocabularyLogSteps& s : logs) {
    if (s.system == system && s.log.tokens == tokens && s.log.vocabulary == vocabulary) return &s;
  }
  return nullptr;
}

VocabularyPasses ToldPasses(const VocabularyLogSteps& log, VocabularyPasses ours) {
  const VocabularyPasses& there = log.simulated.passes;
  const bool ends = !IsDivided(log.system);
  TakeLonger(AsNanoseconds(log.log.forward_us), there.forward, ends, &ours.forward);
  TakeLonger(AsNanoseconds(log.log.backward_us), there.backward, ends, &ours.backward);
  TakeLonger(AsNanoseconds(log.log.output_us), there.output, false, &ours.output);
  return ours;
}

Table VocabularyLogsTable(const std::vector<VocabularyLogSteps>& steps) {
  Table t("logs", "Steps of table 5's runs on 8 GPUs, as their authors logged them");
  for (const char* key : {"tokens", "system", "vocabulary"}) t.AddKey(key);
  t.AddColumn({"logged", "step", "", "ms", Origin::kPublished, 0});
  t.AddColumn({"simulated", "step", "", "ms", Origin::kSimulated, 0});
  t.AddColumn({"replayed", "of the logged passes", "", "ms", Origin::kReplayed, 0});
  for (const VocabularyLogSteps& s : steps) {
    t.AddRow({Label(static_cast<double>(s.log.tokens)), Label(s.log.system),
              Label(static_cast<double>(s.log.vocabulary)), Published(s.log.step_ms, s.log.tag),
              Simulated(ToMilliseconds(s.simulated.time)),
              Value(Origin::kReplayed, ToMilliseconds(s.replayed.time))});
  }
  t.AddNote(
      "Replayed: passes of blocks, of the whole head and of its parts take what was logged, the "
      "rest what it takes in \"simulated\".");
  return t;
}

Table VocabularyPassesTable(const std::vector<VocabularyLogSteps>& steps) {
  Table t("passes", "A micro-batch's passes in these runs, of 4 blocks");
  for (const char* key : {"tokens", "system", "vocabulary", "pass"}) t.AddKey(key);
  t.AddColumn({"logged", "the authors' log", "", "ms", Origin::kPublished, 2});
  t.AddColumn({"simulated", "the same", "", "ms", Origin::kSimulated, 2});
  for (const VocabularyLogSteps& s : steps) {
    if (!IsShown(s)) continue;
    for (const Pass& p : PassesOfLog(s)) {
      t.AddRow({Label(static_cast<double>(s.log.tokens)), Label(s.log.system),
                Label(static_cast<double>(s.log.vocabulary)), Label(p.name),
                Published(p.logged, s.log.tag), Simulated(p.simulated)});
    }
  }
  return t;
}

std::vector<Claim> VocabularyLogClaims(const std::vector<VocabularyLogSteps>& steps) {
  return {ReplayClaim(steps), PassesClaim(steps)};
}

}  // namespace pipelab
