#include "models/checkpoint/training_state.h"

#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kFormat[] = "pipelab training state 1";
constexpr char kSetting[] = "setting.";  // prefix of metadata keys
constexpr char kRecord[] = "record.";    // of tensors that are no part of the model

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

// The parameter that a key is about: "fc/w" of "fc/w/value".
std::string ParameterOf(absl::string_view key) {
  return std::string(key.substr(0, key.rfind('/')));
}

std::string LayerText(const LayerSpec& layer) {
  std::string text =
      absl::StrCat(layer.name, ": ", layer.kind, " of ", absl::StrJoin(layer.inputs, ","));
  if (!layer.detached.empty()) {
    absl::StrAppend(&text, " without gradients to ", absl::StrJoin(layer.detached, ","));
  }
  for (const auto& [name, value] : layer.attributes) absl::StrAppend(&text, " ", name, "=", value);
  return text;
}

// "layer "a: mlp of 2" there and "a: mlp of 3" in the model", of the first that differs.
std::string NetworkDifference(absl::string_view there, absl::string_view here) {
  const std::vector<absl::string_view> theirs = absl::StrSplit(there, '\n');
  const std::vector<absl::string_view> ours = absl::StrSplit(here, '\n');
  size_t i = 0;
  while (i < theirs.size() && i < ours.size() && theirs[i] == ours[i]) ++i;
  const auto line = [i](const std::vector<absl::string_view>& all) {
    return i < all.size() ? absl::StrCat("\"", all[i], "\"") : std::string("none");
  };
  return absl::StrCat("layer ", i, " is ", line(theirs), " there and ", line(ours),
                      " in the model");
}

// The fingerprint is of names and shapes.
std::string Fingerprint(const std::map<std::string, StoredTensor>& tensors) {
  std::string text;
  for (const auto& [key, tensor] : tensors) {
    absl::StrAppend(&text, key, " ", ShapeText(tensor.shape), "\n");
  }
  return absl::StrFormat("%016x", StableHash(text));
}

template <typename Number>
absl::StatusOr<Number> NumberIn(const Safetensors& file, const char* key, absl::string_view path) {
  const auto it = file.metadata.find(key);
  Number number = 0;
  if (it == file.metadata.end() || !absl::SimpleAtoi(it->second, &number) || number < 0) {
    return absl::DataLossError(absl::StrCat(path, ": metadata \"", key, "\" is no number"));
  }
  return number;
}

}  // namespace

std::string NetworkText(const ModelGraph& graph) {
  return absl::StrJoin(graph.layers, "\n", [](std::string* out, const LayerSpec& layer) {
    absl::StrAppend(out, LayerText(layer));
  });
}

std::vector<StateEntry> StateEntries(const ModelGraph& graph,
                                     absl::Span<const absl::string_view> optimizer_state) {
  std::vector<StateEntry> entries;
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      entries.push_back({absl::StrCat(ValueName(p), "/", kValueState), &p, 0});
      for (size_t i = 0; i < optimizer_state.size(); ++i) {
        entries.push_back(
            {absl::StrCat(ValueName(p), "/", optimizer_state[i]), &p, static_cast<int>(i) + 1});
      }
    }
    for (const ParameterSpec& p : layer.statistics) {
      entries.push_back({absl::StrCat(p.name, "/statistics"), &p, StateEntry::kStatistics});
    }
  }
  return entries;
}

absl::Status CheckState(const TrainingState& state, const StateTarget& target) {
  const auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(state.source, ": ", parts...));
  };
  if (state.model != target.graph->name) {
    return error("of the model \"", state.model, "\", not \"", target.graph->name, "\"");
  }
  // Shapes before the optimizer: a model of another size says more.
  std::map<std::string, const StateEntry*> expected;
  const std::vector<StateEntry> entries = StateEntries(*target.graph, target.optimizer_state);
  for (const StateEntry& entry : entries) {
    expected[entry.key] = &entry;
    const auto it = state.tensors.find(entry.key);
    const bool value = entry.kind <= 0;
    const std::string name = ParameterOf(entry.key);
    if (it == state.tensors.end()) {
      if (!value) continue;  // told by the optimizer's name
      return error("has no parameter \"", name, "\", which is ", ShapeText(entry.spec->shape),
                   " in the model");
    }
    if (it->second.shape != entry.spec->shape) {
      return error("parameter \"", name, "\" is ", ShapeText(it->second.shape), " there and ",
                   ShapeText(entry.spec->shape), " in the model");
    }
    if (!std::holds_alternative<std::vector<float>>(it->second.values)) {
      return error("parameter \"", name, "\": \"", entry.key, "\" is not of F32");
    }
  }
  const std::string network = NetworkText(*target.graph);
  if (!state.network.empty() && state.network != network) {
    return error(NetworkDifference(state.network, network));
  }
  if (state.optimizer != target.optimizer) {
    return error("trained by the optimizer ", state.optimizer, ", not ", target.optimizer);
  }
  for (const StateEntry& entry : entries) {
    if (state.tensors.count(entry.key) == 0) {
      return error("has no \"", entry.key, "\", which the optimizer ", target.optimizer, " keeps");
    }
  }
  for (const auto& [key, tensor] : state.tensors) {
    if (expected.count(key) == 0) {
      return error("has \"", key, "\" of ", ShapeText(tensor.shape),
                   ", which is no part of the training");
    }
  }
  if (state.seed != target.seed) {
    return error("trained with seed ", state.seed, ", not ", target.seed);
  }
  if (state.optimizer_steps != state.step * target.updates_per_step) {
    return error(state.optimizer_steps, " optimizer steps in ", state.step,
                 " training steps; this schedule takes ", target.updates_per_step, " a step");
  }
  return absl::OkStatus();
}

TrainingState EmptyState(const StateTarget& target, int64_t step) {
  TrainingState state;
  state.model = target.graph->name;
  state.network = NetworkText(*target.graph);
  state.optimizer = target.optimizer;
  state.seed = target.seed;
  state.step = step;
  state.optimizer_steps = step * target.updates_per_step;
  return state;
}

std::string SerializeTrainingState(const TrainingState& state) {
  Safetensors file;
  file.tensors = state.tensors;
  for (const auto& [key, values] : state.records) {
    file.tensors[kRecord + key] = {{static_cast<int64_t>(values.size())}, values};
  }
  file.metadata = {{"format", kFormat},
                   {"model", state.model},
                   {"network", state.network},
                   {"data", state.data},
                   {"optimizer", state.optimizer},
                   {"seed", absl::StrCat(state.seed)},
                   {"step", absl::StrCat(state.step)},
                   {"optimizer_steps", absl::StrCat(state.optimizer_steps)},
                   {"fingerprint", Fingerprint(file.tensors)},
                   {"checksum", ChecksumOf(file.tensors)}};
  for (const auto& [key, value] : state.settings) file.metadata[kSetting + key] = value;
  return SerializeSafetensors(file);
}

absl::StatusOr<TrainingState> ParseTrainingState(absl::string_view contents,
                                                 absl::string_view path) {
  PIPELAB_ASSIGN_OR_RETURN(Safetensors file, ParseSafetensors(contents, path));
  const auto format = file.metadata.find("format");
  if (format == file.metadata.end() || format->second != kFormat) {
    return absl::DataLossError(
        absl::StrCat(path, ": not a training state: its metadata do not say \"", kFormat, "\""));
  }
  TrainingState state;
  state.source = std::string(path);
  state.model = file.metadata["model"];
  state.network = file.metadata["network"];
  state.data = file.metadata["data"];
  state.optimizer = file.metadata["optimizer"];
  PIPELAB_ASSIGN_OR_RETURN(state.seed, NumberIn<uint64_t>(file, "seed", path));
  PIPELAB_ASSIGN_OR_RETURN(state.step, NumberIn<int64_t>(file, "step", path));
  PIPELAB_ASSIGN_OR_RETURN(state.optimizer_steps, NumberIn<int64_t>(file, "optimizer_steps", path));
  for (const auto& [key, value] : file.metadata) {
    absl::string_view name = key;
    if (absl::ConsumePrefix(&name, kSetting)) state.settings[std::string(name)] = value;
  }
  if (file.metadata["fingerprint"] != Fingerprint(file.tensors)) {
    return absl::DataLossError(
        absl::StrCat(path, ": damaged: its tensors are not those that were written"));
  }
  if (file.metadata["checksum"] != ChecksumOf(file.tensors)) {
    return absl::DataLossError(
        absl::StrCat(path, ": damaged: its numbers are not those that were written"));
  }
  for (auto& [key, tensor] : file.tensors) {
    absl::string_view name = key;
    auto* numbers = std::get_if<std::vector<float>>(&tensor.values);
    if (numbers != nullptr && absl::ConsumePrefix(&name, kRecord)) {
      state.records[std::string(name)] = std::move(*numbers);
    } else {
      state.tensors[key] = std::move(tensor);
    }
  }
  return state;
}

absl::Status WriteTrainingState(absl::string_view path, const TrainingState& state) {
  const std::string folder = std::filesystem::path(std::string(path)).parent_path().string();
  if (!folder.empty()) PIPELAB_RETURN_IF_ERROR(MakeDirectories(folder));
  return WriteFileAtomically(path, SerializeTrainingState(state));
}

absl::StatusOr<TrainingState> ReadTrainingState(absl::string_view path) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseTrainingState(contents, path);
}

}  // namespace pipelab
