#include "pipelines/runtime/gather_state.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/comm/byte_codec.h"
#include "pipelines/runtime/stage_parameters.h"
#include "pipelines/runtime/whole_state.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Elements of whole tensors that are on their way at a time, or one tensor.
constexpr int64_t kChunk = int64_t{1} << 16;

using Entries = std::vector<StateEntry>;
// The parts of each entry of a chunk.
using Parts = std::vector<std::vector<ParameterPart>>;

// A value that several parameters have by a tie comes once.
std::vector<Entries> ChunksOf(const StateTarget& target) {
  std::vector<Entries> chunks;
  std::set<std::string> keys;
  int64_t elements = kChunk;
  for (StateEntry& entry : StateEntries(*target.graph, target.optimizer_state)) {
    if (!keys.insert(entry.key).second) continue;
    if (elements + entry.spec->size() > kChunk) {
      chunks.emplace_back();
      elements = 0;
    }
    elements += entry.spec->size();
    chunks.back().push_back(std::move(entry));
  }
  return chunks;
}

absl::Status NoState() {
  return absl::DataLossError("what another process sent is not part of a training state");
}

// Which elements a process has.
std::string PlacesToBytes(const Parts& parts) {
  std::string bytes;
  ByteWriter out(&bytes);
  for (const std::vector<ParameterPart>& of_entry : parts) {
    out.Int(static_cast<int64_t>(of_entry.size()));
    for (const ParameterPart& part : of_entry) {
      out.Int(part.begin).Int(static_cast<int64_t>(part.values.size()));
      out.Int(part.cut.parts).Int(part.cut.part).Int(part.cut.run);
      out.Int(part.cut.lead).Int(part.cut.others).Int(part.cut.slices).Int(part.cut.offset);
    }
  }
  return bytes;
}

// Whether `size` elements from part.begin on are some of a whole of so many.
bool FitsWhole(const ParameterPart& part, int64_t size, int64_t whole) {
  const ParameterCut& cut = part.cut;
  if (part.begin < 0 || size < 0 || cut.part < 0 || cut.part >= cut.parts) return false;
  if (cut.slices < 1 || cut.offset < 0 || cut.offset > whole - whole / cut.slices) return false;
  const int64_t of_device = whole / cut.slices / cut.parts;
  if (part.begin > of_device - size) return false;
  return cut.parts == 1 ||
         (0 < cut.run && cut.run <= of_device && 0 < cut.lead && cut.lead <= of_device / cut.run &&
          0 <= cut.others && cut.others <= of_device / cut.run && of_device % cut.period() == 0);
}

// As parts of zeros.
absl::StatusOr<Parts> PlacesFromBytes(const std::string& bytes, const Entries& entries) {
  ByteReader in(bytes);
  Parts parts(entries.size());
  for (size_t e = 0; e < entries.size(); ++e) {
    const int64_t whole = entries[e].spec->size();
    for (int64_t n = in.Int(); n > 0 && in.ok(); --n) {
      ParameterPart part;
      part.begin = in.Int();
      const int64_t size = in.Int();
      part.cut.parts = in.Int();
      part.cut.part = in.Int();
      part.cut.run = in.Int();
      part.cut.lead = in.Int();
      part.cut.others = in.Int();
      part.cut.slices = in.Int();
      part.cut.offset = in.Int();
      if (!in.ok() || !FitsWhole(part, size, whole)) return NoState();
      part.values.resize(static_cast<size_t>(size));
      parts[e].push_back(std::move(part));
    }
  }
  return parts;
}

// Drops of each process's parts those that an earlier process has as well.
void DropRepeated(std::vector<Parts>* of_process) {
  for (size_t p = 1; p < of_process->size(); ++p) {
    for (size_t e = 0; e < (*of_process)[p].size(); ++e) {
      auto& parts = (*of_process)[p][e];
      const auto repeats = [&](const ParameterPart& part) {
        for (size_t earlier = 0; earlier < p; ++earlier) {
          for (const ParameterPart& other : (*of_process)[earlier][e]) {
            if (SameElements(other, part)) return true;
          }
        }
        return false;
      };
      parts.erase(std::remove_if(parts.begin(), parts.end(), repeats), parts.end());
    }
  }
}

// Process 0: the tensors of a chunk. The others: nothing.
absl::StatusOr<std::vector<std::vector<float>>> GatherChunk(ProcessGroup& group,
                                                            const Entries& entries,
                                                            absl::Span<LayerStage* const> stages,
                                                            absl::Duration limit) {
  Parts own;
  for (const StateEntry& entry : entries) own.push_back(PartsOf(entry, stages));
  // Everybody waits here for everybody, so nobody is more than a chunk ahead.
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> places,
                           group.ToAll(PlacesToBytes(own), limit));
  std::vector<Parts> parts(group.size());  // [process]
  for (int p = 0; p < group.size(); ++p) {
    PIPELAB_ASSIGN_OR_RETURN(parts[p], PlacesFromBytes(places[p], entries));
  }
  parts[group.rank()] = std::move(own);
  DropRepeated(&parts);
  std::string bytes;
  for (const std::vector<ParameterPart>& of_entry : parts[group.rank()]) {
    for (const ParameterPart& part : of_entry) {
      ByteWriter(&bytes).Raw(part.values.data(), part.values.size() * sizeof(float));
    }
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> values, group.ToFirst(bytes, limit));
  std::vector<std::vector<float>> tensors;
  if (group.rank() != 0) return tensors;
  for (int p = 1; p < group.size(); ++p) {
    ByteReader in(values[p]);
    for (std::vector<ParameterPart>& of_entry : parts[p]) {
      for (ParameterPart& part : of_entry) {
        in.Raw(part.values.data(), part.values.size() * sizeof(float));
      }
    }
    if (!in.ok() || in.left() > 0) return NoState();
  }
  for (size_t e = 0; e < entries.size(); ++e) {
    std::vector<ParameterPart> all;
    for (Parts& of_process : parts) {
      for (ParameterPart& part : of_process[e]) all.push_back(std::move(part));
    }
    tensors.push_back(PutTogether(entries[e], all));
  }
  return tensors;
}

// By key, all parameters that have it: stages know a tie by the name that they use.
std::map<std::string, Entries> UsesOf(const StateTarget& target) {
  std::map<std::string, Entries> uses;
  for (StateEntry& entry : StateEntries(*target.graph, target.optimizer_state)) {
    const std::string key = entry.key;
    uses[key].push_back(std::move(entry));
  }
  return uses;
}

// Process 0's tensors of a chunk to the stages of all.
absl::Status SpreadChunk(ProcessGroup& group, const Entries& entries,
                         const std::map<std::string, Entries>& uses, const TrainingState& state,
                         absl::Span<LayerStage* const> stages, absl::Duration limit) {
  std::string bytes;
  for (const StateEntry& entry : entries) {
    if (group.rank() != 0) break;
    const auto& values = std::get<std::vector<float>>(state.tensors.at(entry.key).values);
    ByteWriter(&bytes).Raw(values.data(), values.size() * sizeof(float));
  }
  PIPELAB_ASSIGN_OR_RETURN(bytes, group.FromFirst(bytes, limit));
  ByteReader in(bytes);
  absl::Status set;
  for (const StateEntry& entry : entries) {
    std::vector<float> whole(entry.spec->size());
    in.Raw(whole.data(), whole.size() * sizeof(float));
    if (!in.ok()) set = NoState();
    for (const StateEntry& use : uses.at(entry.key)) {
      if (set.ok()) set = SetWholeTensor(use, whole, stages);
    }
  }
  return group.Agree(set, limit);
}

}  // namespace

absl::StatusOr<TrainingState> GatherState(ProcessGroup& group, const StateTarget& target,
                                          absl::Span<LayerStage* const> stages,
                                          absl::Duration limit) {
  const absl::StatusOr<int64_t> own = StepOf(stages);
  PIPELAB_RETURN_IF_ERROR(group.Agree(own.status(), limit));
  const std::string step = absl::StrCat(*own);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> steps, group.ToAll(step, limit));
  for (int r = 1; r < group.size(); ++r) {
    if (steps[r] == steps[0]) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", r, " has done ", steps[r], " steps, rank 0 ", steps[0]));
  }
  TrainingState state = EmptyState(target, *own);
  for (const Entries& entries : ChunksOf(target)) {
    PIPELAB_ASSIGN_OR_RETURN(auto tensors, GatherChunk(group, entries, stages, limit));
    for (size_t e = 0; e < tensors.size(); ++e) {
      state.tensors[entries[e].key] = {entries[e].spec->shape, std::move(tensors[e])};
    }
  }
  return state;
}

absl::Status SpreadState(ProcessGroup& group, const TrainingState& state, const StateTarget& target,
                         absl::Span<LayerStage* const> stages, absl::Duration limit) {
  const bool first = group.rank() == 0;
  PIPELAB_RETURN_IF_ERROR(group.Agree(first ? CheckState(state, target) : absl::OkStatus(), limit));
  std::string step;
  ByteWriter(&step).Int(state.step);
  PIPELAB_ASSIGN_OR_RETURN(step, group.FromFirst(step, limit));
  absl::Status set;
  for (LayerStage* stage : stages) {
    if (set.ok()) set = stage->SetTrainingStep(ByteReader(step).Int());
  }
  PIPELAB_RETURN_IF_ERROR(group.Agree(set, limit));
  const std::map<std::string, Entries> uses = UsesOf(target);
  for (const Entries& entries : ChunksOf(target)) {
    PIPELAB_RETURN_IF_ERROR(SpreadChunk(group, entries, uses, state, stages, limit));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> GatherTensor(ProcessGroup& group, const StateEntry& entry,
                                                absl::Span<LayerStage* const> stages,
                                                absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const auto tensors, GatherChunk(group, {entry}, stages, limit));
  std::string bytes;
  if (group.rank() == 0) {
    ByteWriter(&bytes).Raw(tensors[0].data(), tensors[0].size() * sizeof(float));
  }
  PIPELAB_ASSIGN_OR_RETURN(bytes, group.FromFirst(bytes, limit));
  std::vector<float> whole(entry.spec->size());
  ByteReader in(bytes);
  in.Raw(whole.data(), whole.size() * sizeof(float));
  if (!in.ok() || in.left() > 0) return NoState();
  return whole;
}

}  // namespace pipelab
