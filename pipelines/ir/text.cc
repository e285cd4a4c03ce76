#include "pipelines/ir/text.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/ir/text_cursor.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMaxField = std::numeric_limits<int16_t>::max();

void AppendEdges(const StageGraph& graph, std::string* out) {
  absl::StrAppend(out, "edges");
  if (graph.IsPlainChain()) {
    absl::StrAppend(out, " chain");
  } else {
    for (const StageGraph::Edge& e : graph.edges) {
      absl::StrAppend(out, " ", e.from, "-", e.to);
      if (e.gradient.none()) absl::StrAppend(out, ":none");
      if (e.gradient.late()) absl::StrAppend(out, ":", e.gradient.number);
      if (e.output.list()) absl::StrAppend(out, ":carries");
    }
  }
  absl::StrAppend(out, "\n");
}

void AppendPlacement(const Placement& p, std::string* out) {
  for (int r = 0; r < p.num_replicas(); ++r) {
    absl::StrAppend(out, "replica ", r, ":");
    for (const std::vector<int>& group : p.groups[r]) {
      absl::StrAppend(out, " ", absl::StrJoin(group, "+"));
    }
    absl::StrAppend(out, "\n");
  }
  absl::StrAppend(out, "replica_of_micro_batch");
  const std::vector<int>& replicas = p.replica_of_micro_batch;
  for (size_t m = 0, end = 0; m < replicas.size(); m = end) {
    while (end < replicas.size() && replicas[end] == replicas[m]) ++end;
    absl::StrAppend(out, " ", replicas[m], "*", end - m);
  }
  absl::StrAppend(out, "\n");
}

class Parser {
 public:
  explicit Parser(absl::string_view text) : in_(text), limit_(static_cast<int64_t>(text.size())) {}

  absl::StatusOr<Schedule> Parse() {
    PIPELAB_RETURN_IF_ERROR(Name());
    PIPELAB_ASSIGN_OR_RETURN(devices_, Field("devices", std::min(kMaxField, limit_)));
    PIPELAB_ASSIGN_OR_RETURN(micro_batches_, Field("micro_batches", limit_));
    PIPELAB_ASSIGN_OR_RETURN(slices_, Field("slices", std::min(kMaxField, limit_)));
    PIPELAB_ASSIGN_OR_RETURN(stages_, Field("stages", std::min(kMaxField, limit_)));
    s_.num_micro_batches = static_cast<int>(micro_batches_);
    s_.num_slices = static_cast<int>(slices_);
    s_.placement.num_devices = static_cast<int>(devices_);
    PIPELAB_RETURN_IF_ERROR(Flag("forward_only", &s_.forward_only));
    PIPELAB_RETURN_IF_ERROR(Flag("eager_reductions", &s_.eager_reductions));
    PIPELAB_RETURN_IF_ERROR(Flag("merges_passes", &s_.merges_passes));
    PIPELAB_RETURN_IF_ERROR(Flag("weights_travel", &s_.weights_travel));
    PIPELAB_RETURN_IF_ERROR(WeightGroup());
    PIPELAB_RETURN_IF_ERROR(Prepares());
    PIPELAB_RETURN_IF_ERROR(Replay());
    PIPELAB_RETURN_IF_ERROR(StageMicroBatches());
    PIPELAB_RETURN_IF_ERROR(Edges());
    if (replay_ > 0 && stages_ > 1 && s_.stages.ReplayWindow() == 0) {
      return in_.Error(absl::StrCat("no edge reads the last ", replay_, " outputs (replay)"));
    }
    PIPELAB_RETURN_IF_ERROR(Carried());
    PIPELAB_RETURN_IF_ERROR(Replicas());
    PIPELAB_RETURN_IF_ERROR(ReplicaOfMicroBatch());
    for (int64_t d = 0; d < devices_; ++d) PIPELAB_RETURN_IF_ERROR(Device(d));
    in_.SkipEmptyLines();
    if (!in_.AtEnd()) return in_.Expected("nothing after the last device");
    return std::move(s_);
  }

 private:
  // The name is kept to the last blank.
  absl::Status Name() {
    in_.SkipEmptyLines();
    PIPELAB_RETURN_IF_ERROR(in_.Expect("schedule "));
    const TextCursor begin = in_;
    std::string why;
    if (!absl::CUnescape(in_.RestOfLine(), &s_.name, &why)) return begin.Error(why);
    return absl::OkStatus();
  }

  // "NAME number", from 1: what a text of this length can hold is the upper bound.
  absl::StatusOr<int64_t> Field(absl::string_view name, int64_t max) {
    in_.SkipEmptyLines();
    PIPELAB_RETURN_IF_ERROR(in_.Expect(name));
    PIPELAB_RETURN_IF_ERROR(in_.Expect(" "));
    in_.SkipBlanks();
    const TextCursor begin = in_;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t value,
                             in_.Number(max, absl::StrCat("the number of ", name)));
    if (value < 1) return begin.Error(absl::StrCat("the number of ", name, " is at least 1"));
    PIPELAB_RETURN_IF_ERROR(in_.EndLine());
    return value;
  }

  // Lines that most schedules lack.
  absl::Status Flag(absl::string_view word, bool* is_set) {
    in_.SkipEmptyLines();
    *is_set = in_.Take(word);
    return *is_set ? in_.EndLine() : absl::OkStatus();
  }

  absl::Status Prepares() {
    in_.SkipEmptyLines();
    if (!in_.Take("prepares")) return absl::OkStatus();
    for (in_.SkipBlanks(); !in_.AtLineEnd(); in_.SkipBlanks()) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t p, in_.Number(1, "1 for each stage that prepares"));
      s_.prepares.push_back(static_cast<uint8_t>(p));
    }
    return in_.EndLine();
  }

  absl::Status WeightGroup() {
    in_.SkipEmptyLines();
    if (!in_.Take("weight_group ")) return absl::OkStatus();
    in_.SkipBlanks();
    const TextCursor begin = in_;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t size, in_.Number(devices_, "devices of a group"));
    if (size == 0) return begin.Error("a group has at least 1 device");
    s_.weight_group = static_cast<int>(size);
    return in_.EndLine();
  }

  absl::Status Replay() {
    in_.SkipEmptyLines();
    if (!in_.Take("replay ")) return absl::OkStatus();
    in_.SkipBlanks();
    const TextCursor begin = in_;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t window,
                             in_.Number(micro_batches_, "how many outputs a buffer has"));
    if (window == 0) return begin.Error("a buffer has at least 1 output");
    replay_ = static_cast<int>(window);
    return in_.EndLine();
  }

  absl::Status StageMicroBatches() {
    in_.SkipEmptyLines();
    if (!in_.Take("stage_micro_batches")) return absl::OkStatus();
    std::vector<int32_t>& counts = s_.micro_batches_of_stage;
    for (in_.SkipBlanks(); !in_.AtLineEnd(); in_.SkipBlanks()) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t count,
                               in_.Number(micro_batches_, "the micro-batches of each stage"));
      if (count == 0) return in_.Error("a stage runs at least 1 micro-batch");
      counts.push_back(static_cast<int32_t>(count));
    }
    if (static_cast<int64_t>(counts.size()) != stages_) {
      return in_.Error(
          absl::StrCat(counts.size(), " stages have a number of micro-batches, of ", stages_));
    }
    return in_.EndLine();
  }

  absl::Status Edges() {
    in_.SkipEmptyLines();
    PIPELAB_RETURN_IF_ERROR(in_.Expect("edges"));
    in_.SkipBlanks();
    if (in_.Take("chain")) {
      s_.stages = StageGraph::Chain(static_cast<int>(stages_));
      if (replay_ > 0) s_.stages.SetReplayWindow(replay_);
      return in_.EndLine();
    }
    std::vector<StageGraph::Edge> edges;
    for (; !in_.AtLineEnd(); in_.SkipBlanks()) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t from,
                               in_.Number(stages_ - 1, "a stage, as in 0-1, or chain"));
      PIPELAB_RETURN_IF_ERROR(in_.Expect("-"));
      PIPELAB_ASSIGN_OR_RETURN(const int64_t to, in_.Number(stages_ - 1, "a stage, as in 0-1"));
      bool carries = in_.Take(":carries");
      PIPELAB_ASSIGN_OR_RETURN(const Reads gradient, carries ? Reads() : Gradient());
      carries = carries || in_.Take(":carries");
      const Reads within = replay_ > 0 ? Reads::Replay(replay_) : Reads();
      edges.push_back({static_cast<int>(from), static_cast<int>(to), gradient,
                       carries ? Reads::List() : within});
    }
    s_.stages = StageGraph::FromEdges(static_cast<int>(stages_), std::move(edges));
    return in_.EndLine();
  }

  // ":none" or ":2" behind an edge, or nothing.
  absl::StatusOr<Reads> Gradient() {
    if (!in_.Take(":")) return Reads();
    if (in_.Take("none")) return Reads::None();
    const TextCursor begin = in_;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t lag,
                             in_.Number(micro_batches_, "how many micro-batches late, or none"));
    if (lag == 0) return begin.Error("a gradient is at least 1 micro-batch late, or leave it out");
    return Reads::Late(static_cast<int>(lag));
  }

  // A micro-batch, or - for none, for each; only where edges carry.
  absl::Status Carried() {
    in_.SkipEmptyLines();
    if (!in_.Take("carried")) return absl::OkStatus();
    for (in_.SkipBlanks(); !in_.AtLineEnd(); in_.SkipBlanks()) {
      if (in_.Take("-")) {
        s_.carried.push_back(-1);
        continue;
      }
      PIPELAB_ASSIGN_OR_RETURN(const int64_t source,
                               in_.Number(micro_batches_ - 1, "an earlier micro-batch, or -"));
      s_.carried.push_back(static_cast<int32_t>(source));
    }
    return in_.EndLine();
  }

  absl::Status Replicas() {
    while (true) {
      in_.SkipEmptyLines();
      const int64_t r = s_.placement.num_replicas();
      const std::string title = absl::StrCat("replica ", r, ":");
      if (!in_.Take(title)) return r > 0 ? absl::OkStatus() : in_.Expect(title);
      std::vector<std::vector<int>> groups;
      for (in_.SkipBlanks(); !in_.AtLineEnd(); in_.SkipBlanks()) {
        std::vector<int> group;
        do {
          PIPELAB_ASSIGN_OR_RETURN(const int64_t device,
                                   in_.Number(devices_ - 1, "a device for each stage"));
          group.push_back(static_cast<int>(device));
        } while (in_.Take("+"));
        groups.push_back(std::move(group));
      }
      if (static_cast<int64_t>(groups.size()) != stages_) {
        return in_.Error(
            absl::StrCat("replica ", r, " places ", groups.size(), " stages of ", stages_));
      }
      s_.placement.groups.push_back(std::move(groups));
      PIPELAB_RETURN_IF_ERROR(in_.EndLine());
    }
  }

  absl::Status ReplicaOfMicroBatch() {
    PIPELAB_RETURN_IF_ERROR(in_.Expect("replica_of_micro_batch"));
    std::vector<int>& replicas = s_.placement.replica_of_micro_batch;
    for (in_.SkipBlanks(); !in_.AtLineEnd(); in_.SkipBlanks()) {
      const int64_t known = s_.placement.num_replicas();
      PIPELAB_ASSIGN_OR_RETURN(const int64_t replica,
                               in_.Number(known - 1, "a replica, as in 0*8"));
      PIPELAB_RETURN_IF_ERROR(in_.Expect("*"));
      const int64_t left = micro_batches_ - static_cast<int64_t>(replicas.size());
      PIPELAB_ASSIGN_OR_RETURN(const int64_t count,
                               in_.Number(left, "the length of the run, as in 0*8"));
      replicas.insert(replicas.end(), count, static_cast<int>(replica));
    }
    if (static_cast<int64_t>(replicas.size()) != micro_batches_) {
      return in_.Error(
          absl::StrCat(replicas.size(), " micro-batches have a replica, of ", micro_batches_));
    }
    return in_.EndLine();
  }

  absl::Status Device(int64_t d) {
    in_.SkipEmptyLines();
    PIPELAB_RETURN_IF_ERROR(in_.Expect(absl::StrCat("device ", d, ":")));
    std::vector<Action>& list = s_.order.emplace_back();
    for (in_.SkipBlanks(); !in_.AtLineEnd(); in_.SkipBlanks()) {
      PIPELAB_ASSIGN_OR_RETURN(const Action a, in_.OneAction());
      if (!in_.AtLineEnd() && in_.Peek() != ' ' && in_.Peek() != '\t' && in_.Peek() != '\r') {
        return in_.Expected("a blank after the action");
      }
      list.push_back(a);
    }
    return in_.EndLine();
  }

  TextCursor in_;
  const int64_t limit_;
  int64_t devices_ = 0, micro_batches_ = 0, slices_ = 0, stages_ = 0;
  int replay_ = 0;
  Schedule s_;
};

}  // namespace

std::string ToText(const Schedule& s) {
  std::string out = absl::StrCat("schedule ", absl::CEscape(s.name), "\ndevices ", s.num_devices(),
                                 "\nmicro_batches ", s.num_micro_batches, "\nslices ", s.num_slices,
                                 "\nstages ", s.num_stages(), "\n");
  if (s.forward_only) absl::StrAppend(&out, "forward_only\n");
  if (s.eager_reductions) absl::StrAppend(&out, "eager_reductions\n");
  if (s.merges_passes) absl::StrAppend(&out, "merges_passes\n");
  if (s.weights_travel) absl::StrAppend(&out, "weights_travel\n");
  if (s.weight_group > 1) absl::StrAppend(&out, "weight_group ", s.weight_group, "\n");
  if (!s.prepares.empty()) {
    absl::StrAppend(&out, "prepares");
    for (const uint8_t p : s.prepares) absl::StrAppend(&out, " ", p);
    absl::StrAppend(&out, "\n");
  }
  if (const int window = s.stages.ReplayWindow(); window > 0) {
    absl::StrAppend(&out, "replay ", window, "\n");
  }
  if (!s.micro_batches_of_stage.empty()) {
    absl::StrAppend(&out, "stage_micro_batches ", absl::StrJoin(s.micro_batches_of_stage, " "),
                    "\n");
  }
  AppendEdges(s.stages, &out);
  if (!s.carried.empty()) {
    absl::StrAppend(&out, "carried");
    for (int32_t m : s.carried.sources()) absl::StrAppend(&out, " ", m < 0 ? "-" : absl::StrCat(m));
    absl::StrAppend(&out, "\n");
  }
  AppendPlacement(s.placement, &out);
  for (size_t d = 0; d < s.order.size(); ++d) {
    absl::StrAppend(&out, "device ", d, ":");
    for (const Action& a : s.order[d]) absl::StrAppend(&out, " ", ToString(a));
    absl::StrAppend(&out, "\n");
  }
  return out;
}

absl::StatusOr<Schedule> ParseSchedule(absl::string_view text) { return Parser(text).Parse(); }

}  // namespace pipelab
