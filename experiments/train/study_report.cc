#include "experiments/train/study_report.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {
namespace {

constexpr size_t kLastSteps = 20;  // whose mean is the training loss of the table

std::string NameOf(const Study& study, const StudyPart& part) {
  return part.name.empty() ? study.name : part.name;
}

double LastMean(const std::vector<double>& losses) {
  const size_t n = std::min(kLastSteps, losses.size());
  return std::accumulate(losses.end() - n, losses.end(), 0.0) / static_cast<double>(n);
}

std::string WhyNoClaim(const TrainSettings& settings) {
  if (settings.synthetic) return "the data are synthetic";
  if (settings.validation) return "a part of the training data was held out (--validation)";
  return "the run is shorter than the study";
}

Claim Record(const TrainSettings& settings, const Quality::Claim& claim) {
  Claim c = OwnClaim(absl::StrCat(settings.study, ".", claim.id), claim.text);
  c.unit = claim.unit;
  Found(&c, Origin::kMeasured, claim.ours);
  MetIf(&c, claim.holds, claim.accepted, "see the table of what the networks are worth");
  if (settings.whole_study) return c;
  NotMade(&c, absl::StrCat(WhyNoClaim(settings), claim.holds ? "" : "; it does not hold here"));
  return c;
}

Quality::Claim Decide(std::string id, std::string text, double ours, double other, std::string unit,
                      bool above) {
  const std::string accepted = absl::StrFormat("%s %.4g%s%s", above ? "above" : "below", other,
                                               unit.empty() ? "" : " ", unit);
  return {std::move(id),  std::move(text), ours,
          other,          accepted,        above ? ours > other : ours < other,
          std::move(unit)};
}

}  // namespace

Quality::Claim Quality::Above(std::string id, std::string text, double ours, double other,
                              std::string unit) {
  return Decide(std::move(id), std::move(text), ours, other, std::move(unit), true);
}

Quality::Claim Quality::Below(std::string id, std::string text, double ours, double other,
                              std::string unit) {
  return Decide(std::move(id), std::move(text), ours, other, std::move(unit), false);
}

void AddQuality(const TrainSettings& settings, const StudyWork& work, const Quality& quality,
                Report* report) {
  Table t("quality", absl::StrCat(quality.caption, ". Data: ", work.data));
  t.AddKey("model");
  for (const Quality::Metric& m : quality.metrics) {
    t.AddColumn({m.id, m.title, "", m.unit, Origin::kMeasured, m.decimals});
  }
  for (const Quality::Row& row : quality.rows) {
    std::vector<Cell> cells = {Label(row.name)};
    for (const absl::optional<double>& value : row.values) {
      cells.push_back(value.has_value() ? Measured(*value) : Missing("does not apply"));
    }
    if (!row.note.empty()) cells[1].note = row.note;
    t.AddRow(std::move(cells));
  }
  for (const std::string& note : quality.notes) t.AddNote(note);
  for (const Quality::Claim& claim : quality.claims) report->AddClaim(Record(settings, claim));
  report->AddTable(std::move(t));
}

void AddTrainings(const TrainSettings& settings, const Study& study, const StudyWork& work,
                  const std::vector<TrainedPart>& trained, Report* report) {
  Table t("training", absl::StrCat("Training under ", settings.scheme, ", ", settings.micro_batches,
                                   " micro-batches of ", settings.samples, " samples a step"));
  t.AddKey("part");
  t.AddColumn({"parameters", "parameters", "", "", Origin::kComputed, 0});
  t.AddColumn({"steps", "steps", "", "", Origin::kComputed, 0});
  t.AddColumn({"time", "training time", "time", "s", Origin::kMeasured, 1});
  t.AddColumn({"samples_per_second", "samples per second", "samples", "1/s", Origin::kMeasured, 0});
  t.AddColumn({"training_loss", absl::StrCat("training loss, mean of the last ", kLastSteps),
               "training", study.loss_unit, Origin::kMeasured, 4});
  t.AddColumn({"held_out_loss", settings.validation ? "validation loss" : "held-out loss",
               "held out", study.loss_unit, Origin::kMeasured, 4});
  const Cell not_here = Missing("all steps were done before this run");
  for (size_t i = 0; i < trained.size(); ++i) {
    const TrainedPart& done = trained[i];
    const double seconds = absl::ToDoubleSeconds(done.time);
    const auto samples = static_cast<double>(done.steps_here * settings.batch_samples());
    const bool here = done.steps_here > 0;
    t.AddRow({Label(NameOf(study, work.parts[i])),
              Computed(static_cast<double>(work.parts[i].graph.num_parameters())),
              Computed(static_cast<double>(done.steps)), here ? Measured(seconds) : not_here,
              here ? Measured(samples / seconds) : not_here,
              Measured(LastMean(done.training.values)),
              done.held_out.values.empty() ? Missing("nothing is held out")
                                           : Measured(done.held_out.values.back())});
  }
  report->AddTable(std::move(t));
  for (size_t i = 0; i < trained.size(); ++i) {
    const std::string& name = work.parts[i].name;
    report->AddLossCurves(name.empty() ? "Loss" : absl::StrCat("Loss of ", name),
                          absl::StrCat("loss [", study.loss_unit, "]"),
                          {trained[i].training, trained[i].held_out});
  }
}

absl::Status CheckClaims(const TrainSettings& settings, const Quality& quality) {
  if (!settings.whole_study) return absl::OkStatus();
  for (const Quality::Claim& claim : quality.claims) {
    if (!claim.holds) {
      return absl::FailedPreconditionError(absl::StrCat(settings.study, " misses: ", claim.text));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
