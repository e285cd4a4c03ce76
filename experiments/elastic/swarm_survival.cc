// tools/bazel run //experiments:swarm_survival -- --seeds=20
//
// A real swarm on this machine: processes that are killed with SIGKILL while a GPT learns the
// novels, compared to the bit with the undisturbed run.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiments/elastic/survival.h"
#include "experiments/elastic/survival_report.h"
#include "experiments/flags/option_checks.h"
#include "experiments/report/report.h"
#include "experiments/report/table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "models/data/austen.h"
#include "models/data/package_cache.h"
#include "models/data/text_corpus.h"
#include "pipelines/swarm/job.h"
#include "pipelines/swarm/swarm.h"
#include "tools/base/file.h"
#include "tools/base/process.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace swarm_survival_study {

STUDY_FLAG(int, seeds, 20, "runs with one peer killed at a time, of seeds 1, 2, ...");
STUDY_FLAG(int, steps, 200, "optimizer steps of a run");
STUDY_FLAG(int, pause_ms, 5000, "shortest time between kills; the longest is three times that");
STUDY_FLAG(bool, synthetic, false, "train on generated text instead of the novels");
STUDY_FLAG(bool, variants, true,
           "also: 4 of 12 killed at once, one stopped, the coordinator killed, float sums, 8-bit "
           "messages, delayed updates");
STUDY_FLAG(bool, paced, true,
           "also peers of set paces: unequal ones, and a run that the simulator replays");

absl::StatusOr<std::string> TextFile(const std::string& folder) {
  if (absl::GetFlag(FLAGS_synthetic)) return std::string();
  PIPELAB_ASSIGN_OR_RETURN(const TextCorpus novels, FetchAusten(DefaultDataCache()));
  const std::string file = JoinPath(folder, "novels.txt");
  PIPELAB_RETURN_IF_ERROR(WriteFileAtomically(file, absl::StrJoin(novels.documents, "\n")));
  return file;
}

double LossOf(const std::string& hexadecimal) { return std::strtod(hexadecimal.c_str(), nullptr); }

class Study {
 public:
  Study(std::string folder, std::string text)
      : folder_(std::move(folder)), text_(std::move(text)) {}

  SurvivalOptions Options() const {
    SurvivalOptions options;
    options.pipelab = BesideOwnProgram("pipelab").value_or("/pipelab");
    options.text = text_;
    options.steps = absl::GetFlag(FLAGS_steps);
    options.job = {"--micro_batch_size=4"};
    return options;
  }
  SurvivalOptions Killed(uint64_t seed) const {
    SurvivalOptions options = Options();
    options.seed = seed;
    options.least_pause = absl::Milliseconds(absl::GetFlag(FLAGS_pause_ms));
    options.most_pause = 3 * options.least_pause;
    return options;
  }
  // Alone.
  absl::StatusOr<SurvivalRow> Run(const std::string& what, SurvivalOptions options) {
    options.folder = JoinPath(folder_, absl::StrCat("run", runs_++));
    PIPELAB_RETURN_IF_ERROR(MakeDirectories(options.folder));
    SurvivalRow row;
    row.what = what;
    row.seed = options.seed;
    PIPELAB_ASSIGN_OR_RETURN(row.run, RunSwarm(options));
    return row;
  }
  // Compared with the last row that was undisturbed, if this one is not.
  absl::Status Add(const std::string& what, const SurvivalOptions& options) {
    PIPELAB_ASSIGN_OR_RETURN(SurvivalRow row, Run(what, options));
    if (options.most_pause == absl::ZeroDuration()) undisturbed_ = rows_.size();
    const SurvivalRun& first = undisturbed_ == rows_.size() ? row.run : rows_[undisturbed_].run;
    row.same = row.run.losses == first.losses;
    row.first_loss = LossOf(first.losses.at(0));
    for (const auto& [step, loss] : row.run.losses) {
      const auto other = first.losses.find(step);
      if (other == first.losses.end()) continue;
      row.apart = std::max(row.apart, std::abs(LossOf(loss) - LossOf(other->second)));
    }
    std::fprintf(stderr, "%s, seed %d: %d killed, losses %s, %.1f s\n", what.c_str(),
                 static_cast<int>(row.seed), row.run.kills, row.same ? "the same" : "others",
                 absl::ToDoubleSeconds(row.run.time));
    rows_.push_back(std::move(row));
    return absl::OkStatus();
  }
  const std::vector<SurvivalRow>& rows() const { return rows_; }

 private:
  const std::string folder_, text_;
  std::vector<SurvivalRow> rows_;
  size_t undisturbed_ = 0;
  int runs_ = 0;
};

// The same in simulation: peers of the run's paces come and go as they did, on a link without
// limits. Micro-batches a second.
absl::StatusOr<SwarmFigures> Replay(const SurvivalOptions& real, const SurvivalRun& run) {
  SwarmOptions options;
  const Nanoseconds forward = Milliseconds(real.least_pass_ms[0]);
  for (int stage = 0; stage < real.stages; ++stage) {
    SwarmStage s;
    const bool last = stage + 1 == real.stages;  // it has no forward of its own
    s.forward.compute = last ? Nanoseconds(1) : forward;
    s.backward.compute =
        Nanoseconds(std::llround(kBackwardWork * static_cast<double>(forward.value())));
    options.stages.push_back(s);
  }
  options.link.bandwidth = BytesPerSecond(1e12);
  options.notice = Milliseconds(10);
  options.in_flight = real.in_flight;
  options.duration = Nanoseconds(absl::ToInt64Nanoseconds(run.time));
  options.warm_up = Nanoseconds(absl::ToInt64Nanoseconds(run.warm_up));
  options.joining = JoinRule::kNeediest;
  options.step = real.micro_batches;
  options.seed = real.seed;
  return SimulateSwarm(options, run.trace);
}

// What the peers of the slowest stage can do, micro-batches a second.
double Slowest(const SurvivalOptions& real, const SurvivalRun& run) {
  double slowest = std::numeric_limits<double>::infinity();
  for (int stage = 0; stage < real.stages; ++stage) {
    const double work = StageWork(stage, real.stages);
    slowest = std::min(slowest, run.stage_speeds[stage] * 1e3 / (work * real.least_pass_ms[0]));
  }
  return slowest;
}

absl::Status AddPaced(Study* study, Report* report) {
  Table t("paced", "Peers that take set times for their passes");
  t.AddKey("run");
  const char* const rate = "micro-batches/s";
  t.AddColumn({"real", "real", "", rate, Origin::kMeasured, 2, /*varies=*/true});
  t.AddColumn({"simulated", "simulated, or what the slowest stage's peers can do", "", rate,
               Origin::kSimulated, 2, /*varies=*/true});
  SurvivalOptions killed = study->Killed(1);
  killed.job = {"--context=16", "--hidden=16"};
  killed.least_pass_ms = {40};
  killed.steps = 100;
  killed.in_flight = killed.micro_batches = 24;
  PIPELAB_ASSIGN_OR_RETURN(const SurvivalRow replayed, study->Run("replayed", killed));
  PIPELAB_ASSIGN_OR_RETURN(const SwarmFigures figures, Replay(killed, replayed.run));
  t.AddRow({Label("12 equal peers, killed"), Measured(replayed.run.throughput),
            Simulated(figures.throughput)});
  SurvivalOptions unequal = study->Options();
  unequal.job = killed.job;
  unequal.least_pass_ms = {80, 40, 20};
  unequal.speeds = {1, 2, 4};
  unequal.steps = 10;
  unequal.micro_batches = 480;
  unequal.in_flight = 48;
  PIPELAB_ASSIGN_OR_RETURN(const SurvivalRow uneven, study->Run("unequal", unequal));
  const double slowest = Slowest(unequal, uneven.run);
  t.AddRow({Label("12 peers, 1x, 2x, 4x"), Measured(uneven.run.throughput), Simulated(slowest)});
  report->AddTable(std::move(t));
  const auto add = [&](const char* id, const char* text, double value, bool met,
                       const char* accepted, const char* reason) {
    AddMeasured(id, text, ToPercent(value), "%", met, accepted, reason, report);
  };
  const double off = figures.throughput / replayed.run.throughput - 1;
  add("swarm.replayed", "throughput of the simulator that replays a real run's peers, off by", off,
      std::abs(off) <= 0.1, "at most 10 % either way",
      "messages and averages take this machine's cores time that the simulator does not know");
  const double share = uneven.run.throughput / slowest;
  add("swarm.real_unequal", "throughput of real unequal peers, of the slowest stage's", share,
      share >= 0.95, "at least 95 %", "each step fills and drains the stages");
  return absl::OkStatus();
}

absl::Status RunStudy(StudyRun* frame) {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--seeds", absl::GetFlag(FLAGS_seeds), 0, 1000));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--steps", absl::GetFlag(FLAGS_steps), 10, kMostSteps));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--pause_ms", absl::GetFlag(FLAGS_pause_ms), 100, 600'000));
  PIPELAB_RETURN_IF_ERROR(frame->Begin());
  PIPELAB_ASSIGN_OR_RETURN(const std::string folder,
                           MakeTemporaryDirectory("/tmp/swarm_survival."));
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, TextFile(folder));
  Study study(folder, text);
  PIPELAB_RETURN_IF_ERROR(study.Add("undisturbed", study.Options()));
  for (int seed = 1; seed <= absl::GetFlag(FLAGS_seeds); ++seed) {
    PIPELAB_RETURN_IF_ERROR(study.Add(kKilled, study.Killed(static_cast<uint64_t>(seed))));
  }
  if (absl::GetFlag(FLAGS_variants)) {
    SurvivalOptions options = study.Killed(1);
    options.at_once = 4;
    PIPELAB_RETURN_IF_ERROR(study.Add("4 of 12 killed at once", options));
    options = study.Killed(1);
    options.kill_coordinator = true;
    PIPELAB_RETURN_IF_ERROR(study.Add(kCoordinator, options));
    options = study.Killed(1);
    options.stall = true;
    PIPELAB_RETURN_IF_ERROR(study.Add("a peer stopped", options));
    options = study.Killed(1);
    options.job.push_back("--noorder_free");
    PIPELAB_RETURN_IF_ERROR(study.Add(kFloatSums, options));
    options = study.Killed(1);
    options.job.push_back("--eight_bits");
    PIPELAB_RETURN_IF_ERROR(study.Add("a peer killed, 8-bit messages", options));
    options = study.Options();
    options.job.push_back("--update_delay=1");
    PIPELAB_RETURN_IF_ERROR(study.Add("undisturbed, delayed updates", options));
    options = study.Killed(1);
    options.job.push_back("--update_delay=1");
    PIPELAB_RETURN_IF_ERROR(study.Add(kDelayed, options));
  }
  frame->report().AddTable(SurvivalTable(study.rows()));
  AddSurvivalClaims(study.rows(), &frame->report());
  if (absl::GetFlag(FLAGS_paced)) PIPELAB_RETURN_IF_ERROR(AddPaced(&study, &frame->report()));
  return RemoveTree(folder);
}

}  // namespace swarm_survival_study

int RunSwarmSurvivalStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "swarm_survival";
  info.title = "A swarm that survives";
  info.summary =
      "A real swarm on this machine, its processes killed with SIGKILL while a GPT learns the "
      "novels; its losses, step times and joins, beside the undisturbed run and the simulator.";
  info.quick = {{"seeds", "2"}, {"steps", "40"}, {"pause_ms", "1000"}, {"paced", "false"}};
  info.quick_leaves_out = "18 of 20 seeds, and peers of set paces";
  return RunStudyMain(argc, argv, info, swarm_survival_study::RunStudy);
}

}  // namespace pipelab
