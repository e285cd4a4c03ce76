// Graph pipelines beside sequential ones on branching networks: the study of GraphPipe (Jeon et
// al., ASPLOS 2025), with our own planners, simulated.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "experiments/graph_plans/case_study.h"
#include "experiments/graph_plans/claims.h"
#include "experiments/graph_plans/comparison.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace graphpipe_scaling_study {

STUDY_FLAG(std::string, cluster, "summit-4gpu", "a cluster's name, or a file (docs/clusters.md)");
STUDY_FLAG(std::string, dtype, "fp32", "that the devices compute with");
STUDY_FLAG(std::string, devices, "4,8,16,32", "numbers of devices, ascending");
STUDY_FLAG(std::string, branches, "2,4,8,16", "branches of CANDLE-Uno, ascending; empty: none");
STUDY_FLAG(std::string, branch_devices, "4,8,16", "devices of these");
STUDY_FLAG(double, batch_factor, 1,
           "of the batches: 2 samples a device of the Transformers, 128 of DLRM, 64 of CANDLE-Uno");
STUDY_FLAG(std::string, batches, "0.5,2,8",
           "further factors of these, on the most devices, ascending; empty: none");
STUDY_FLAG(double, time_limit_s, 10, "seconds of one search");

absl::StatusOr<std::vector<int64_t>> Numbers(absl::string_view option, const std::string& text) {
  std::vector<int64_t> numbers;
  for (absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int64_t n = 0;
    if (!absl::SimpleAtoi(word, &n) || n < 1 || n > 1024) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, "=", text, ": \"", word, "\" is not a whole number from 1 to 1024"));
    }
    numbers.push_back(n);
  }
  return numbers;
}

absl::StatusOr<std::vector<double>> Factors(absl::string_view option, const std::string& text) {
  std::vector<double> factors;
  for (absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    double factor = 0;
    if (!absl::SimpleAtod(word, &factor) || !(factor > 0 && factor <= 1024)) {
      return absl::InvalidArgumentError(absl::StrCat(
          option, "=", text, ": \"", word, "\" is not a number above 0, and at most 1024"));
    }
    factors.push_back(factor);
  }
  return factors;
}

struct Setting {
  ClusterSpec cluster;
  PlanSweepOptions options;
  std::vector<int64_t> devices, branches, branch_devices;
  std::vector<double> batches;
};

absl::Status Read(Setting* s) {
  PIPELAB_ASSIGN_OR_RETURN(s->cluster, LoadCluster("--cluster", absl::GetFlag(FLAGS_cluster)));
  s->options.cluster = &s->cluster;
  const std::string type = absl::GetFlag(FLAGS_dtype);
  const absl::StatusOr<NumberType> found = FindNumberType(type);
  if (!found.ok() || s->cluster.device.peaks.count(*found) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--dtype=", type, ": not of ", s->cluster.name));
  }
  s->options.type = *found;
  const double seconds = absl::GetFlag(FLAGS_time_limit_s);
  if (!(seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--time_limit_s=", seconds, ": must be above 0"));
  }
  s->options.time_limit = absl::Seconds(seconds);
  s->options.batch_factor = absl::GetFlag(FLAGS_batch_factor);
  if (!(s->options.batch_factor > 0 && s->options.batch_factor <= 1024)) {
    return absl::InvalidArgumentError(absl::StrCat("--batch_factor=", s->options.batch_factor,
                                                   ": must be above 0, and at most 1024"));
  }
  PIPELAB_ASSIGN_OR_RETURN(s->devices, Numbers("--devices", absl::GetFlag(FLAGS_devices)));
  PIPELAB_ASSIGN_OR_RETURN(s->branches, Numbers("--branches", absl::GetFlag(FLAGS_branches)));
  PIPELAB_ASSIGN_OR_RETURN(s->branch_devices,
                           Numbers("--branch_devices", absl::GetFlag(FLAGS_branch_devices)));
  PIPELAB_ASSIGN_OR_RETURN(s->batches, Factors("--batches", absl::GetFlag(FLAGS_batches)));
  if (s->devices.empty()) return absl::InvalidArgumentError("--devices=: must name one");
  for (const auto* all : {&s->devices, &s->branch_devices}) {
    for (const int64_t n : *all) {
      if (n <= s->cluster.max_devices()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--devices: ", n, ": ", s->cluster.name, " has ", s->cluster.max_devices()));
    }
  }
  return absl::OkStatus();
}

absl::Status Add(const Setting& s, const StudyNet& net, const std::vector<int64_t>& devices,
                 std::vector<Comparison>* all) {
  PlanSweepOptions options = s.options;
  for (const int64_t n : devices) {
    options.devices = n;
    std::fprintf(stderr, "%s on %d devices\n", net.name.c_str(), static_cast<int>(n));
    PIPELAB_ASSIGN_OR_RETURN(Comparison c, ComparePlanners(net, options));
    all->push_back(std::move(c));
  }
  return absl::OkStatus();
}

// `net` on `devices` at every factor of the batch, ascending; `own` has what is there of factor 1.
absl::Status AddBatches(const Setting& s, const StudyNet& net, int64_t devices,
                        const std::vector<Comparison>& own, std::vector<Comparison>* all) {
  const size_t first = all->size();
  for (const Comparison& c : own) {
    if (c.net == net.name && c.devices == devices) all->push_back(c);
  }
  for (const double factor : s.batches) {
    Setting other = s;
    other.options.batch_factor *= factor;
    PIPELAB_RETURN_IF_ERROR(Add(other, net, {devices}, all));
  }
  std::sort(all->begin() + static_cast<std::ptrdiff_t>(first), all->end(),
            [](const Comparison& a, const Comparison& b) { return a.batch < b.batch; });
  return absl::OkStatus();
}

absl::StatusOr<StudyResults> Compare(const Setting& s) {
  StudyResults results;
  for (const StudyNet& net : StudyNets()) {
    PIPELAB_RETURN_IF_ERROR(Add(s, net, s.devices, &results.nets));
  }
  PIPELAB_RETURN_IF_ERROR(Add(s, CaseStudyNet(), s.devices, &results.case_nets));
  PIPELAB_RETURN_IF_ERROR(Add(s, SequentialNet(), s.devices, &results.control));
  for (const int64_t branches : s.branches) {
    PIPELAB_RETURN_IF_ERROR(
        Add(s, CandleUnoOf(static_cast<int>(branches)), s.branch_devices, &results.branches));
  }
  PIPELAB_ASSIGN_OR_RETURN(results.case_study, RunCaseStudy(s.options));
  for (const StudyNet& net : StudyNets()) {
    PIPELAB_RETURN_IF_ERROR(AddBatches(s, net, s.devices.back(), results.nets, &results.batches));
  }
  PIPELAB_RETURN_IF_ERROR(
      AddBatches(s, CaseStudyNet(), kCaseStudyDevices, results.case_nets, &results.case_batches));
  return results;
}

void AddTables(const StudyResults& results, Report* report) {
  std::vector<Comparison> all = results.nets;
  all.insert(all.end(), results.case_nets.begin(), results.case_nets.end());
  bool stopped = false;
  // What searches found that were cut short is not what every machine must find.
  const auto add = [&](Table table, const std::vector<Comparison>& of) {
    if (Stopped(of) > 0) {
      table.SetVaries();
      stopped = true;
    }
    report->AddTable(std::move(table));
  };
  add(ThroughputTable("throughput", "Throughput of the best plans", all), all);
  add(PlansTable(all), all);
  add(AblationTable(all), all);
  if (!results.branches.empty()) {
    add(ThroughputTable("branches", "CANDLE-Uno with more branches", results.branches),
        results.branches);
  }
  std::vector<Comparison> batches = results.batches;
  batches.insert(batches.end(), results.case_batches.begin(), results.case_batches.end());
  add(BatchesTable(batches), batches);
  report->AddTable(CaseStudyTable(results.case_study));
  add(ThroughputTable("control", "A plain Transformer: nothing to put side by side",
                      results.control),
      results.control);
  report->AddTable(SearchTable(all));
  add(SizesTable(all), all);
  if (stopped) {
    report->AddNote(
        "Some searches were ended by their limit of time (--time_limit_s): tables with what they "
        "found are not among the deterministic columns.");
  }
}

// All that is not about the time of a search.
bool NeedsMostDevices(const Claim& claim) { return claim.id != "graphpipe.search"; }

absl::Status Run(StudyRun* study) {
  Setting setting;
  PIPELAB_RETURN_IF_ERROR(Read(&setting));
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  PIPELAB_ASSIGN_OR_RETURN(const StudyResults results, Compare(setting));
  AddTables(results, &report);
  for (Claim& claim : Claims(results)) {
    if (study->quick() && NeedsMostDevices(claim)) {
      NotMade(&claim, "it is of more devices or branches than --quick has");
    }
    report.AddClaim(std::move(claim));
  }
  report.AddTable(SpecificationTable({setting.cluster}));
  return absl::OkStatus();
}

}  // namespace graphpipe_scaling_study

int RunGraphpipeScalingStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "graphpipe_scaling";
  info.title = "Graph pipelines and sequential ones on branching networks";
  info.summary = "Compares plans of GraphPipe, PipeDream and Piper on branching networks.";
  info.description =
      "Plans of GraphPipe's, PipeDream's and Piper's planners, all our own, for every size of "
      "micro-batches, each run through the simulator for a whole training step. Sequential "
      "planners' plans run as a chain: each stage after the one before it. Batches (one "
      "micro-batch of the authors' size a device), number type and the networks' missing widths "
      "are assumed; nothing is fitted to the paper's figures. Every planner is asked once at "
      "each size, and the best of its plans by simulation counts.";
  info.quick = {{"devices", "4"},
                {"branches", "2,4"},
                {"branch_devices", "4"},
                {"batches", ""},
                // None of these takes more than some seconds: what is found is no clock's doing.
                {"time_limit_s", "120"}};
  info.quick_leaves_out = "8 to 32 devices, and 8 and 16 branches, of which the paper's claims are";
  return RunStudyMain(argc, argv, info, graphpipe_scaling_study::Run);
}

}  // namespace pipelab
