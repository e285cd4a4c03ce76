#include "experiments/planning/reference_rows.h"

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/files/dnn_partitioning_json.h"
#include "models/files/pipedream_profile.h"
#include "models/files/piper_json.h"
#include "pipelines/planners/plan_inputs.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kFile[] = "reference_results.csv";
constexpr char kTransformer[] = "ParallelTransformerLayer";
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// Cells may be quoted.
std::vector<std::string> Cells(absl::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// "8GiB", "25GiB/s" or "80e9".
bool ParseBytes(absl::string_view text, double* bytes) {
  double unit = 1;
  if (absl::ConsumeSuffix(&text, "GiB/s") || absl::ConsumeSuffix(&text, "GiB")) unit = kGiB;
  if (!absl::SimpleAtod(text, bytes)) return false;
  *bytes *= unit;
  return true;
}

// The words after `flag` up to the next flag, as numbers.
std::vector<double> NumbersAfter(absl::string_view config, absl::string_view flag) {
  std::vector<double> numbers;
  bool inside = false;
  for (absl::string_view word : absl::StrSplit(config, ' ', absl::SkipEmpty())) {
    double number = 0;
    if (word == flag) {
      inside = true;
    } else if (!inside || !absl::SimpleAtod(word, &number)) {
      inside = false;
    } else {
      numbers.push_back(number);
    }
  }
  return numbers;
}

// One more transformer layer, as Piper's own experiments make larger models: after the first, in
// the order of a hash table, that has such a layer on both sides; it takes that one's output alone.
void InsertTransformerLayer(PiperProblem* problem) {
  std::unordered_set<int> layers;
  for (size_t i = 0; i < problem->nodes.size(); ++i) {
    if (problem->nodes[i].name == kTransformer) layers.insert(static_cast<int>(i));
  }
  std::unordered_map<int, int> before, after;
  for (const PiperEdge& edge : problem->edges) {
    if (layers.count(edge.from) > 0 && layers.count(edge.to) > 0) {
      before[edge.to] = edge.from;
      after[edge.from] = edge.to;
    }
  }
  int v = -1;
  for (int w : layers) {
    if (before.count(w) > 0 && after.count(w) > 0) {
      v = w;
      break;
    }
  }
  const int s = after.at(v), added = static_cast<int>(problem->nodes.size());
  double bytes = 0;
  for (PiperEdge& edge : problem->edges) {
    if (edge.from != v || edge.to != s) continue;
    edge.to = added;
    bytes = edge.bytes;
  }
  problem->edges.push_back({added, s, bytes});
  const auto rename = [](std::map<int, double>* sync, int from, int to) {
    const double value = sync->at(from);
    sync->erase(from);
    sync->emplace(to, value);
  };
  for (auto& [degree, variants] : problem->nodes[v].variants) {
    for (PiperVariant& variant : variants) rename(&variant.backward_sync_bytes, s, added);
  }
  for (auto& [degree, variants] : problem->nodes[s].variants) {
    for (PiperVariant& variant : variants) rename(&variant.forward_sync_bytes, v, added);
  }
  PiperNode node = problem->nodes[v];
  node.id = 1000000 + added;
  for (auto& [degree, variants] : node.variants) {
    for (PiperVariant& variant : variants) {
      variant.forward_sync_bytes = {{v, variant.forward_sync_bytes.at(before.at(v))}};
      variant.backward_sync_bytes = {{s, variant.backward_sync_bytes.at(added)}};
    }
  }
  problem->nodes.push_back(std::move(node));
}

absl::StatusOr<PlanProblem> PiperRow(const ReferenceRow& row, absl::string_view text,
                                     absl::string_view file) {
  PIPELAB_ASSIGN_OR_RETURN(PiperProblem piper, ParsePiper(text, file));
  if (absl::StrContains(row.input, "96 layers")) {
    for (int layers = 33; layers <= 96; ++layers) InsertTransformerLayer(&piper);
  }
  PlanProblem problem = PlanProblemOf(piper);
  // Piper's experiments with ResNet have this bandwidth wherever they change anything.
  if (absl::StrContains(row.input, "resnet") && !absl::StrContains(row.config, "defaults")) {
    problem.bandwidth = 25 * kGiB;
  }
  for (absl::string_view word : absl::StrSplit(row.config, ' ')) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(word, '=');
    double number = 0;
    if (pair.second.empty() || !ParseBytes(pair.second, &number)) continue;
    if (pair.first == "k") problem.devices = static_cast<int64_t>(number);
    if (pair.first == "mem") problem.memory_bytes = number;
    if (pair.first == "mbs") problem.micro_batches = static_cast<int64_t>(number);
    if (pair.first == "bw") problem.bandwidth = number;
  }
  if (absl::StrContains(row.config, "no recompute")) {
    for (PlanOperator& o : problem.operators) {
      for (auto& [degree, variants] : o.variants) {
        for (size_t i = variants.size(); i-- > 0;) {
          if (variants[i].recompute) variants.erase(variants.begin() + static_cast<int64_t>(i));
        }
      }
    }
  }
  return problem;
}

absl::StatusOr<PlanProblem> PipeDreamRow(const ReferenceRow& row, absl::string_view text,
                                         absl::string_view file) {
  PIPELAB_ASSIGN_OR_RETURN(const PipeDreamProfile profile, ParsePipeDreamProfile(text, file));
  PlanProblem problem = PlanProblemOf(profile);
  const std::vector<double> devices = NumbersAfter(row.config, "-n");
  const std::vector<double> bandwidths = NumbersAfter(row.config, "-b");
  for (size_t i = 0; i < devices.size() && i < bandwidths.size(); ++i) {
    problem.levels.push_back({static_cast<int64_t>(devices[i]), bandwidths[i]});
    problem.devices *= problem.levels.back().devices;
  }
  return problem;
}

absl::StatusOr<PlanProblem> ParseProblem(const ReferenceRow& row, absl::string_view text,
                                         const std::string& file) {
  if (row.planner == "piper") return PiperRow(row, text, file);
  if (row.planner == "pipedream") return PipeDreamRow(row, text, file);
  PIPELAB_ASSIGN_OR_RETURN(const PlacementProblem placement, ParsePlacement(text, file));
  return PlanProblemOf(placement, file);
}

}  // namespace

absl::StatusOr<std::vector<ReferenceRow>> ReadReferenceRows(absl::string_view folder) {
  const std::string path = JoinPath(folder, kFile);
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<ReferenceRow> rows;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    if (line_number == 1 || line.empty()) continue;
    const std::vector<std::string> cells = Cells(line);
    const auto error = [&](const auto&... parts) {
      return absl::FailedPreconditionError(absl::StrCat(path, ":", line_number, ": ", parts...));
    };
    if (cells.size() < 7) return error("a row must have at least 7 cells");
    ReferenceRow row;
    row.line = line_number;
    row.peer = cells[0];
    row.input = cells[1];
    row.config = cells[2];
    row.planner = absl::StartsWith(row.peer, "dnn") ? "max_load" : row.peer;
    double number = 0;
    if (absl::SimpleAtod(cells[3], &number)) row.objective = number;
    row.infeasible = cells[3] == "infeasible";
    if (!row.objective.has_value() && !row.infeasible && cells[3] != "FAIL") {
      return error("objective ", cells[3], ": must be a number, infeasible or FAIL");
    }
    if (absl::SimpleAtod(cells[6], &number)) row.seconds = number;
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<PlanProblem> ProblemOf(const ReferenceRow& row, absl::string_view folder) {
  const std::string file = row.input.substr(0, row.input.find(' '));
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(folder, file)));
  PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem, FaultOfFile(ParseProblem(row, text, file)));
  problem.name = file;
  PIPELAB_RETURN_IF_ERROR(FaultOfFile(FinishProblem(&problem, file)));
  return problem;
}

}  // namespace pipelab
