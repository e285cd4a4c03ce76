#include "experiments/elastic/survival_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/report/claim.h"
#include "experiments/training/comparison.h"

namespace pipelab {

Table SurvivalTable(const std::vector<SurvivalRow>& rows) {
  Table t("survival", "12 peers, 3 stages, a GPT: processes killed with SIGKILL");
  t.AddKey("run");
  t.AddKey("seed");
  const Origin measured = Origin::kMeasured;
  t.AddColumn({"kills", "kills", "", "", measured, 0});
  t.AddColumn({"lost", "gradients lost and asked again", "", "", measured, 0});
  t.AddColumn({"redone", "steps redone", "", "", measured, 0});
  t.AddColumn({"apart", "losses apart, at most", "", "nats", measured, 9});
  t.AddColumn({"left", "processes left", "", "", measured, 0});
  t.AddColumn({"step", "median step", "", "s", measured, 3});
  t.AddColumn({"worst", "slowest step with a death", "", "s", measured, 3});
  t.AddColumn({"vain", "longest wait for a peer in vain", "", "s", measured, 3});
  t.AddColumn({"join", "slowest join to its first gradient", "", "s", measured, 2});
  for (const SurvivalRow& row : rows) {
    const SurvivalRun& r = row.run;
    t.AddRow({Label(row.what), Label(static_cast<double>(row.seed)), Measured(r.kills),
              Measured(static_cast<double>(r.proof.lost)),
              Measured(static_cast<double>(r.proof.redone)), Measured(row.apart), Measured(r.left),
              Measured(r.median_step_s),
              r.worst_step_s > 0 ? Measured(r.worst_step_s) : Missing("nobody died"),
              row.what == kCoordinator ? Missing("requests wait for peers that are there")
                                       : Measured(r.longest_lost_s),
              r.worst_join_s > 0 ? Measured(r.worst_join_s) : Missing("nobody joined")});
  }
  return t;
}

void AddMeasured(const char* id, const char* text, double value, const char* unit, bool met,
                 const std::string& accepted, const char* reason, Report* report) {
  Claim claim = OwnClaim(id, text);
  claim.unit = unit;
  Found(&claim, Origin::kMeasured, value);
  MetIf(&claim, met, accepted, reason);
  report->AddClaim(std::move(claim));
}

void AddSurvivalClaims(const std::vector<SurvivalRow>& rows, Report* report) {
  int same = 0, runs = 0, left = 0, gradients = 0;
  double worst = 0, join = 0, lost = 0, apart = -1, tolerance = 0;
  for (const SurvivalRow& row : rows) {
    left += row.run.left;
    if (row.what != kCoordinator) lost = std::max(lost, row.run.longest_lost_s);
    if (row.what == kFloatSums) {
      apart = row.apart;
      tolerance = LossTolerance(static_cast<int>(row.run.losses.size()),
                                SurvivalOptions().micro_batches, row.first_loss);
    }
    if (row.what == kDelayed) {
      AddMeasured("swarm.delayed_bits",
                  "losses with delayed updates and peers killed, apart from undisturbed ones",
                  row.apart, "nats", row.same, "0", "a pass had weights of another step", report);
    }
    gradients += row.run.proof.steps == rows[0].run.proof.steps;
    if (row.what != kKilled) continue;
    ++runs;
    same += row.same;
    worst = std::max(worst, row.run.worst_step_s / row.run.median_step_s);
    join = std::max(join, row.run.worst_join_s);
  }
  const auto add = [&](const char* id, const char* text, double value, bool met,
                       const std::string& accepted, const char* unit, const char* reason) {
    AddMeasured(id, text, value, unit, met, accepted, reason, report);
  };
  add("swarm.same_bits", "seeds whose losses are the undisturbed run's to the bit", same,
      same == runs, absl::StrCat("all ", runs), "seeds", "a gradient counted otherwise than once");
  add("swarm.proof", "runs whose log proves every gradient once", gradients,
      gradients == static_cast<int>(rows.size()), "all", "runs", "the log has too few steps");
  add("swarm.none_left", "processes left at the end", left, left == 0, "none", "processes",
      "some wait for longer than they may");
  add("swarm.death_cost", "slowest step with a death, over the median step", worst, worst <= 2,
      "at most 2", "",
      "a peer's gradients are asked for again one after the other, and the new "
      "process takes a core to start");
  add("swarm.lost_wait", "longest that a request waited for a peer in vain", lost,
      lost <= SurvivalOptions().wait_limit_s + 0.1,
      "at most the wait limit of 5 s, and 0.1 s to see it", "s", "a call outlives its limit");
  if (apart >= 0) {
    add("swarm.float_sums", "losses with float sums and peers killed, apart from undisturbed ones",
        apart, apart <= tolerance,
        absl::StrFormat("at most %.2g: steps (micro-batches - 1) epsilon loss", tolerance), "nats",
        "a gradient counted otherwise than once");
  }
  add("swarm.join_time", "slowest time from a peer's start to its first gradient", join, join <= 5,
      "at most 5 s", "s", "the machine's cores are busy");
}

}  // namespace pipelab
