#include "models/graph/context_parallel.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {

ContextPart ContextPartOf(const ModelGraph& graph, int64_t parts, int64_t part) {
  if (parts == 1) return {};
  const bool causal = std::any_of(
      graph.layers.begin(), graph.layers.end(),
      [](const LayerSpec& layer) { return layer.split.context == ContextUse::kCausalKeys; });
  return {parts, part, causal};
}

namespace {

// Each device has a share of the heads that it exchanges, of queries and of keys.
absl::Status CheckHeads(const LayerSpec& layer, TensorParallel split, const std::string& given,
                        absl::string_view option) {
  const bool attends =
      layer.split.context == ContextUse::kKeys || layer.split.context == ContextUse::kCausalKeys;
  if (!attends || split.exchange != ContextExchange::kHeads) return absl::OkStatus();
  for (const TensorDimension& d : layer.split.dimensions) {
    const int64_t heads = d.size / split.degree;
    if (d.sequence || heads % split.context == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        given, ": with context_exchange=heads it must divide the ", heads, " ", d.name,
        " of layer \"", layer.name, "\" that a device has",
        split.degree > 1 ? absl::StrCat(" of ", d.size, " in a group of ", split.degree) : "",
        "; the nearest ", option, " that does is ", NearestDivisor(split.context, heads)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckContextParallel(const ModelGraph& graph, TensorParallel split,
                                  absl::string_view option) {
  const std::string given = absl::StrCat(option, "=", split.context);
  if (split.context < 1) {
    return absl::InvalidArgumentError(absl::StrCat(given, ": must be at least 1"));
  }
  if (split.context == 1) return absl::OkStatus();
  const ContextPart part = ContextPartOf(graph, split.context, 0);
  for (const LayerSpec& layer : graph.layers) {
    const std::string name = absl::StrCat("layer \"", layer.name, "\"");
    if (layer.split.context == ContextUse::kNone) {
      return absl::InvalidArgumentError(absl::StrCat(
          given, ": ", name, " (", layer.kind,
          ") cannot be computed by devices with parts of the tokens; ", option, " must be 1"));
    }
    if (layer.split.context == ContextUse::kKeys && part.balanced) {
      return absl::InvalidArgumentError(
          absl::StrCat(given, ": ", name, " has no causal mask, and another layer has one; ",
                       option, " must be 1"));
    }
    const int64_t tokens = TokensOf(layer);
    if (tokens % part.divisor() != 0) {
      const int64_t nearest =
          tokens % part.chunks() == 0 ? NearestDivisor(split.context, tokens / part.chunks()) : 1;
      const char* const what = part.balanced ? ": twice it must divide the " : ": must divide the ";
      return absl::InvalidArgumentError(absl::StrCat(given, what, tokens, " tokens of ", name,
                                                     part.balanced ? ", for a causal mask" : "",
                                                     "; the nearest that does is ", nearest));
    }
    PIPELAB_RETURN_IF_ERROR(CheckHeads(layer, split, given, option));
    if (split.sequence && tokens / split.context % split.degree != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(given, ": the ", tokens / split.context, " tokens of ", name,
                       " that a device has must divide among its tensor-parallel group of ",
                       split.degree, ", which splits rows by tokens"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
